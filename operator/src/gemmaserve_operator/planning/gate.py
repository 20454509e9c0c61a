"""The parser gate: nothing that serves is made of a revision before the regressions passed in its image."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pydantic import ValidationError

from gemmaserve_operator.api import names, reasons
from gemmaserve_operator.api.status import ParserRecord
from gemmaserve_operator.api.times import parse_time
from gemmaserve_operator.desired.gate_job import build_gate_job
from gemmaserve_operator.planning.objects import condition, created, dig, is_leaving
from gemmaserve_operator.planning.problems import PodContext, Problem, find_problem
from gemmaserve_operator.planning.types import Json, Write
from gemmaserve_operator.planning.verdict import Verdict, read_verdict
from gemmaserve_operator.planning.view import View
from gemmaserve_operator.planning.writes import annotate_job, delete, ensure

GATE_RETRY_DELAY: Final = timedelta(seconds=30)
"""Between a Job that ended without a verdict and the next try."""
GATE_POD_DELAY: Final = timedelta(seconds=20)
"""A Job that has no pod by then gets none; its controller makes them within a second, when it is not swamped."""
GATE_SLOT_POLL_SECONDS: Final = 5.0
"""A slot freed by another resource's gate gives this one no event."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Where the target's gate stands: a verdict, or what is being done about one."""

    verdict: Verdict | None = None
    writes: tuple[Write, ...] = ()
    progress: Problem | None = None
    """What is being waited for, while there is no verdict."""
    problem: Problem | None = None
    """What the world has against it, while there is no verdict."""
    requeue_after: float | None = None


def pass_gate(view: View) -> Gate:
    """The target's verdict, or the next step towards one.

    A verdict counts from where it is recorded (a serving child, the Job), or from any gate of the namespace that
    passed the same digest with the same parser.
    """
    state = view.state(view.target.name)
    verdict = state.verdict or _verdict_of_namespace(view)
    if verdict is not None:
        return Gate(verdict=verdict)
    if state.job is None:
        return _start(view)
    if is_leaving(state.job):
        return Gate(progress=_running("the gate's last Job is being removed"))
    return _watch(view, state.job, state.gate_pods)


def _running(what: str) -> Problem:
    return Problem(reasons.PARSER_REGRESSIONS_RUNNING, what)


def _verdict_of_namespace(view: View) -> Verdict | None:
    spec = view.target.spec
    content = (view.snapshot.verifications or {}).get(spec.image.digest or "")
    if content is None:
        return None
    try:
        verdict = Verdict(ParserRecord.model_validate(content), spec.image.digest)
    except ValidationError:
        return None
    same_parser = verdict.record.parser == spec.engine.effective_tool_call_parser
    return verdict if verdict.passed and same_parser else None


def _start(view: View) -> Gate:
    if view.spec.rollout.paused:
        return Gate(progress=Problem(reasons.PAUSED, "Paused before the parser gate; set spec.rollout.paused: false"))
    if view.snapshot.free_gates <= 0:
        message = "As many gates are running as the operator allows (--max-concurrent-gates)"
        return Gate(progress=Problem(reasons.WAITING_FOR_GATE_SLOT, message), requeue_after=GATE_SLOT_POLL_SECONDS)
    timeout = view.spec.verification.parser.timeout_seconds
    job = build_gate_job(view.owner, view.target, timeout_seconds=timeout)
    name = job["metadata"]["name"]
    return Gate(writes=ensure(job, None, view.strangers), progress=_running(f"Job {name} runs the parser regressions"))


def _watch(view: View, job: Json, pods: tuple[Json, ...]) -> Gate:
    spec = view.target.spec
    verdict = read_verdict(job, pods, parser=spec.engine.effective_tool_call_parser, written_digest=spec.image.digest)
    name = names.gate_job_name(view.owner.name, view.target.name)
    if verdict is not None:
        # Acted on only once it stands on the Job, so that it holds when the pod is gone.
        return Gate(writes=(annotate_job(job, verdict.to_annotations()),), progress=_running(f"Job {name} has ended"))
    ended = condition(job, "Failed") or condition(job, "Complete")
    if ended is not None:
        return _try_again(view, job, ended)
    if not pods and not dig(job, "spec", "suspend"):
        return _without_pod(view, job)
    progress = _running(f"Job {name} runs the parser regressions since {created(job)}")
    context = PodContext(names.CONTAINER_GATE, spec.resources.gpu.resource, spec.startup_timeout_seconds)
    waiting = [pod for pod in pods if condition(pod, "DisruptionTarget") is None and _waits(pod)]
    return Gate(progress=progress, problem=find_problem(waiting, context))


def _without_pod(view: View, job: Json) -> Gate:
    """No pod is there yet. Why one is refused, Kubernetes tells in an event of the Job's only."""
    name, made = job["metadata"]["name"], parse_time(created(job)) or view.now
    progress = _running(f"Job {name} runs the parser regressions since {created(job)}")
    wait = (made + GATE_POD_DELAY - view.now).total_seconds()
    if wait > 0:
        return Gate(progress=progress, requeue_after=wait)
    message = (
        f"Kubernetes has made no pod of Job {name} since {created(job)}: a quota, a limit range or an admission "
        f"webhook may forbid it. kubectl describe job {name} tells"
    )
    return Gate(progress=progress, problem=Problem(reasons.PODS_REFUSED, message))


def _waits(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in (None, "Pending")


def _try_again(view: View, job: Json, ended: Json) -> Gate:
    """The Job is over and no pod gave a verdict: evicted, never pulled, or removed by somebody."""
    progress = _running("the gate ended without a verdict and is tried again")
    since = parse_time(ended.get("lastTransitionTime"))
    wait = (since + GATE_RETRY_DELAY - view.now).total_seconds() if since else 0.0
    if wait > 0:
        return Gate(progress=progress, requeue_after=wait)
    return Gate(writes=delete("Job", job, "the gate ended without a verdict"), progress=progress)
