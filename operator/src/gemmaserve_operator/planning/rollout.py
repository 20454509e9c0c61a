"""The rollout: which revision serves, which comes, which goes, and in what order."""

from dataclasses import dataclass
from datetime import timedelta

from gemmaserve_operator.api import names, reasons
from gemmaserve_operator.api.revision import VerifiedRevision
from gemmaserve_operator.api.times import format_time
from gemmaserve_operator.planning.candidate import Serving, bring_up, pod_problem, serve, short_of_gpus_since
from gemmaserve_operator.planning.gate import pass_gate
from gemmaserve_operator.planning.job_gate import Gate
from gemmaserve_operator.planning.live import hold, pass_live_gate
from gemmaserve_operator.planning.live_verdict import LiveVerdict
from gemmaserve_operator.planning.objects import condition, created, dig
from gemmaserve_operator.planning.problems import Problem
from gemmaserve_operator.planning.records import forget_oldest, record
from gemmaserve_operator.planning.traffic import is_confirmed, receives_traffic, route_to, scale_down_wait
from gemmaserve_operator.planning.types import Write
from gemmaserve_operator.planning.verdict import Verdict
from gemmaserve_operator.planning.view import RevisionState, View, verified_revision
from gemmaserve_operator.planning.writes import delete


@dataclass(frozen=True, slots=True)
class Rollout:
    """What is to be written, and what there is to tell."""

    gate: Gate[Verdict]
    """The parser gate."""
    writes: tuple[Write, ...]
    live: Gate[LiveVerdict] | None = None
    """The live gate, while the candidate has to pass it."""
    progress: Problem | None = None
    """The step being taken; None when nothing is left to do."""
    problem: Problem | None = None
    """What is in the way."""
    failed: bool = False
    """The candidate has failed for good; a new spec or a retry is needed."""
    requeue_after: float | None = None


def roll_out(view: View) -> Rollout:
    """All writes in a safe order: what serves is put right first, then the next step is taken, then leftovers go."""
    gate = pass_gate(view)
    verified = verified_revision(view.target, gate.verdict) if gate.verdict else None
    candidate = bring_up(view, verified) if verified and view.candidate else None
    live = pass_live_gate(view, verified, candidate) if verified and candidate else None
    candidate = hold(live) if live else candidate
    step = _next_step(view, gate, verified, candidate)
    leaving, going, wait = _clean_up(view)
    return Rollout(
        gate=gate,
        live=live,
        writes=(*_keep_active(view, verified, candidate), *gate.writes, *step.writes, *leaving),
        progress=step.progress or going,
        problem=step.problem,
        failed=step.failed,
        requeue_after=_soonest(gate.requeue_after, step.requeue_after, wait),
    )


def _soonest(*waits: float | None) -> float | None:
    return min((wait for wait in waits if wait is not None), default=None)


def _next_step(
    view: View, gate: Gate[Verdict], verified: VerifiedRevision | None, candidate: Serving | None
) -> Serving:
    if gate.verdict is None:
        return Serving(progress=gate.progress, problem=gate.problem)
    if verified is None:
        return Serving(problem=Problem(gate.verdict.reason, gate.verdict.message), failed=True)
    if candidate is None:
        return Serving(problem=pod_problem(view, view.state(view.target.name)))
    if candidate.ready:
        return _switch(view, verified)
    return candidate if view.active is None else _with_capacity(view, candidate)


def _switch(view: View, verified: VerifiedRevision) -> Serving:
    name = view.target.name
    if view.spec.rollout.paused:
        message = f"Revision {name} is ready; paused before traffic moves to it. Set spec.rollout.paused: false"
        return Serving(progress=Problem(reasons.PAUSED, message))
    progress = Problem(reasons.SWITCHING_TRAFFIC, f"Traffic moves to revision {name}")
    marked = serve(view, verified, replicas=view.spec.replicas, marks=_serving_since_now(view))
    return Serving(writes=(*marked, *route_to(view, name)), progress=progress)


def _serving_since_now(view: View) -> dict[str, str]:
    return {names.ANNOTATION_SERVING_SINCE: format_time(view.now)}


def _with_capacity(view: View, candidate: Serving) -> Serving:
    """While the active revision serves, waiting for GPUs is a step of the rollout and no fault."""
    since = short_of_gpus_since(view.state(view.target.name), candidate.problem)
    if since is None or candidate.problem is None:
        return candidate
    rollout = view.spec.rollout
    limit = since + timedelta(seconds=rollout.capacity_timeout_seconds)
    gives_way = rollout.on_insufficient_capacity == "Recreate"
    wait = (limit - view.now).total_seconds() if gives_way else None
    then = (
        f"the old revision gives way at {limit:%Y-%m-%dT%H:%M:%SZ}"
        if gives_way
        else "the old revision serves on (spec.rollout.onInsufficientCapacity: Wait)"
    )
    return Serving(
        writes=candidate.writes,
        progress=Problem(reasons.INSUFFICIENT_GPU, f"{candidate.problem.message}; {then}"),
        requeue_after=wait if wait is not None and wait > 0 else None,
    )


def _keep_active(view: View, verified: VerifiedRevision | None, candidate: Serving | None) -> tuple[Write, ...]:
    """What serves is kept as it should be, whatever becomes of the candidate."""
    if view.active is None:
        return ()
    state = view.state(view.active)
    if (serving := state.verified) is None:
        return ()
    replicas = 0 if _gives_way(view, state, verified, candidate) else view.spec.replicas
    moves = candidate is not None and candidate.ready and not view.spec.rollout.paused
    marks = {} if state.serving_since else _serving_since_now(view)
    kept = serve(view, serving, replicas=replicas, marks=marks)
    return kept if moves else (*route_to(view, view.active), *kept)


def _gives_way(view: View, active: RevisionState, verified: VerifiedRevision | None, candidate: Serving | None) -> bool:
    """Whether the active revision's pods stop before the candidate's are ready: only behind a passed gate."""
    if verified is None or candidate is None or candidate.failed:
        return False
    stopped = bool(dig(active.deployment, "spec", "replicas") == 0)
    rollout = view.spec.rollout
    if rollout.paused:
        return stopped
    if rollout.strategy == "Recreate":
        return True
    if rollout.on_insufficient_capacity != "Recreate":
        return False
    since = short_of_gpus_since(view.state(view.target.name), candidate.problem)
    timeout = timedelta(seconds=rollout.capacity_timeout_seconds)
    return stopped or (since is not None and since + timeout <= view.now)


def _clean_up(view: View) -> tuple[tuple[Write, ...], Problem | None, float | None]:
    """Deletes of what is no longer wanted, the step that this is, and the seconds until more may go."""
    if view.spec.rollout.paused:
        return (), None, None
    writes: list[Write] = []
    progress: Problem | None = None
    wait: float | None = None
    for state in view.states.values():
        if state.name in (view.active, view.target.name):
            continue
        if receives_traffic(view, state.name) or (state.serving_since and not is_confirmed(view)):
            progress = Problem(reasons.SWITCHING_TRAFFIC, f"Waiting until only revision {view.active} has endpoints")
        elif state.serving_since and state.pods and (delay := scale_down_wait(view)) > 0:
            wait = delay
            progress = Problem(reasons.DRAINING_OLD_REVISION, f"Revision {state.name} stays for the scale-down delay")
        else:
            why = f"revision {state.name} is neither active nor wanted"
            # The live verdict goes with the pods that it is about: a revision that comes back is checked again.
            writes += record(view, state) + delete("Job", state.live_job, why)
            writes += delete("Service", state.service, why) + delete("Deployment", state.deployment, why)
            if state.pods:
                message = f"Revision {state.name} finishes its requests: {len(state.pods)} pods left"
                progress = Problem(reasons.DRAINING_OLD_REVISION, message)
    return (*writes, *_old_jobs(view), *forget_oldest(view)), progress, wait


def _old_jobs(view: View) -> tuple[Write, ...]:
    """Gate Jobs of revisions that are gone: those that still run, and the oldest beyond the history limit."""
    past = [s.job for s in view.states.values() if s.job and s.name not in (view.active, view.target.name)]
    ended = [job for job in past if condition(job, "Complete") or condition(job, "Failed")]
    newest_first = sorted(ended, key=created, reverse=True)
    running = [job for job in past if job not in ended]
    surplus = newest_first[view.spec.revision_history_limit :]
    return tuple(
        write
        for jobs, why in ((running, "its revision is no longer wanted"), (surplus, "beyond revisionHistoryLimit"))
        for job in jobs
        for write in delete("Job", job, why)
    )
