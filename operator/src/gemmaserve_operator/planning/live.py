"""The live gate: traffic moves only to pods whose streamed tool calls were whole and strict.

A verdict is about a revision's pods. It is kept on the Job, and on the Deployment and the Service that were checked,
for as long as one of them is there; what serves is not checked again.
"""

from gemmaserve_operator.api import names, reasons
from gemmaserve_operator.api.conditions import LIVE_VERIFIED, Condition
from gemmaserve_operator.api.revision import VerifiedRevision
from gemmaserve_operator.api.times import parse_time
from gemmaserve_operator.desired.live_job import build_live_job
from gemmaserve_operator.planning.candidate import Serving, deadline
from gemmaserve_operator.planning.job_gate import Gate, GateJob, run_job
from gemmaserve_operator.planning.live_verdict import LiveVerdict, read_live_verdict
from gemmaserve_operator.planning.objects import condition, created, is_leaving
from gemmaserve_operator.planning.problems import Problem
from gemmaserve_operator.planning.traffic import reachable_pods
from gemmaserve_operator.planning.types import Json
from gemmaserve_operator.planning.view import RevisionState, View


def pass_live_gate(view: View, verified: VerifiedRevision, candidate: Serving) -> Gate[LiveVerdict] | None:
    """The next step towards a verdict about a candidate; None when none is needed, or its pods are not ready for one.

    A failed verdict is acted upon earlier, by `bring_up`, from where it is recorded.
    """
    state = view.state(verified.revision.name)
    needed = view.spec.verification.live.enabled and state.live is None
    return _next_step(view, verified, state) if candidate.ready and needed else None


def hold(gate: Gate[LiveVerdict]) -> Serving:
    """A candidate whose pods are ready, and that has to pass this gate."""
    return Serving(writes=gate.writes, progress=gate.progress, problem=gate.problem, requeue_after=gate.requeue_after)


def _next_step(view: View, verified: VerifiedRevision, state: RevisionState) -> Gate[LiveVerdict]:
    if view.spec.replicas == 0:
        message = f"Revision {state.name} has no pods to check: scale up, and traffic moves once they have passed"
        return Gate(progress=Problem(reasons.SCALED_TO_ZERO, message))
    if state.live_job is None and reachable_pods(view, state.name) < view.spec.replicas:
        message = f"Revision {state.name} is ready; its Service does not have all of its endpoints yet"
        return Gate(progress=Problem(reasons.LIVE_CHECK_PENDING, message))
    return run_job(view, _job(view, verified, state))


def _job(view: View, verified: VerifiedRevision, state: RevisionState) -> GateJob[LiveVerdict]:
    parser = verified.revision.spec.engine.effective_tool_call_parser

    def read(job: Json) -> LiveVerdict | None:
        verdict = read_live_verdict(job, state.live_pods, parser=parser)
        return verdict if verdict is not None and (verdict.passed or _counts(view, state, job)) else None

    return GateJob(
        job=state.live_job,
        pods=state.live_pods,
        container=names.CONTAINER_LIVE,
        running=reasons.LIVE_CHECK_RUNNING,
        does=f"asks the pods of revision {state.name} for tool calls",
        build=lambda: build_live_job(view.owner, verified, view.spec.verification.live),
        read=read,
    )


def _counts(view: View, state: RevisionState, job: Json) -> bool:
    """Whether a failure is the pods' own: all were ready before the check began and have been since.

    Else a pod that was evicted or started anew while it was asked would condemn the revision. It does when it is past
    the revision's progress deadline, so that a check which breaks its pods comes to an end.
    """
    missed, _ = deadline(view, state, None)
    return missed is not None or all(_steady(pod, job) for pod in state.pods if not is_leaving(pod))


def _steady(pod: Json, job: Json) -> bool:
    ready, began = condition(pod, "Ready"), parse_time(created(job))
    since = parse_time(ready.get("lastTransitionTime")) if ready else None
    return since is not None and began is not None and since <= began


def live_condition(view: View, gate: Gate[LiveVerdict] | None) -> Condition:
    """What is known of the target's pods.

    Args:
        view: The snapshot.
        gate: The gate, while the candidate has to pass it.
    """
    state, enabled = view.state(view.target.name), view.spec.verification.live.enabled
    if not enabled and not (state.live and view.candidate is None):
        message = f"Revision {state.name} is not checked: spec.verification.live.enabled is false"
        return Condition(LIVE_VERIFIED, "Unknown", reasons.LIVE_CHECK_SKIPPED, message)
    if state.live is not None:
        passed = state.live.passed
        return Condition(LIVE_VERIFIED, "True" if passed else "False", state.live.reason, state.live.message)
    if view.candidate is None:
        message = f"Revision {state.name} took the traffic when nothing was to be checked; the next one will be"
        return Condition(LIVE_VERIFIED, "Unknown", reasons.LIVE_CHECK_SKIPPED, message)
    if gate is not None and (why := gate.problem or gate.progress) is not None:
        return Condition(LIVE_VERIFIED, "Unknown", why.reason, why.message)
    message = f"Revision {state.name} is checked once its pods are ready"
    return Condition(LIVE_VERIFIED, "Unknown", reasons.LIVE_CHECK_PENDING, message)
