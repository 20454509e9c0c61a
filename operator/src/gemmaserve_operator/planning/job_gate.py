"""What both gates do with their Job: start it, watch it, keep its verdict, and try again what gave none."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, Protocol, TypeVar

from gemmaserve_operator.api import reasons
from gemmaserve_operator.api.times import parse_time
from gemmaserve_operator.planning.objects import condition, created, dig, is_leaving, name_of
from gemmaserve_operator.planning.problems import PodContext, Problem, find_problem
from gemmaserve_operator.planning.types import Json, Write
from gemmaserve_operator.planning.view import View
from gemmaserve_operator.planning.writes import annotate_job, delete, ensure

GATE_RETRY_DELAY: Final = timedelta(seconds=30)
"""Between a Job that ended without a verdict and the next try."""
GATE_POD_DELAY: Final = timedelta(seconds=20)
"""A Job that has no pod by then gets none; its controller makes them within a second, when it is not swamped."""
GATE_SLOT_POLL_SECONDS: Final = 5.0
"""A slot freed by another resource's gate gives this one no event."""


class Recordable(Protocol):
    """A verdict, as far as it matters here."""

    def to_annotations(self) -> dict[str, str]:
        """The durable form."""


V_co = TypeVar("V_co", bound=Recordable, covariant=True)


@dataclass(frozen=True, slots=True)
class Gate(Generic[V_co]):
    """Where a gate stands: a verdict, or what is being done about one."""

    verdict: V_co | None = None
    writes: tuple[Write, ...] = ()
    progress: Problem | None = None
    """What is being waited for, while there is no verdict."""
    problem: Problem | None = None
    """What the world has against it, while there is no verdict."""
    requeue_after: float | None = None


@dataclass(frozen=True, slots=True)
class GateJob(Generic[V_co]):
    """One gate's Job, and what is particular to it."""

    job: Json | None
    pods: tuple[Json, ...]
    container: str
    running: str
    """The reason while it runs."""
    does: str
    """What it does, for people, as in "runs the parser regressions"."""
    build: Callable[[], Json]
    read: Callable[[Json], V_co | None]
    """The verdict that the pods of this Job give; None when there is none, or none that counts."""


def run_job(view: View, gate: GateJob[V_co]) -> Gate[V_co]:
    """The next step towards a verdict that stands on the Job."""
    if gate.job is None:
        return _start(view, gate)
    if is_leaving(gate.job):
        return Gate(progress=Problem(gate.running, "The gate's last Job is being removed"))
    return _watch(view, gate, gate.job)


def _start(view: View, gate: GateJob[V_co]) -> Gate[V_co]:
    job = gate.build()
    name = name_of(job)
    if view.spec.rollout.paused:
        message = f"Paused before Job {name} {gate.does}; set spec.rollout.paused: false"
        return Gate(progress=Problem(reasons.PAUSED, message))
    if view.snapshot.free_gates <= 0:
        message = "As many gates are running as the operator allows (--max-concurrent-gates)"
        return Gate(progress=Problem(reasons.WAITING_FOR_GATE_SLOT, message), requeue_after=GATE_SLOT_POLL_SECONDS)
    progress = Problem(gate.running, f"Job {name} {gate.does}")
    return Gate(writes=ensure(job, None, view.strangers), progress=progress)


def _watch(view: View, gate: GateJob[V_co], job: Json) -> Gate[V_co]:
    verdict = gate.read(job)
    if verdict is not None:
        # Acted on only once it stands on the Job, so that it holds when the pod is gone.
        progress = Problem(gate.running, f"Job {name_of(job)} has ended")
        return Gate(writes=(annotate_job(job, verdict.to_annotations()),), progress=progress)
    ended = condition(job, "Failed") or condition(job, "Complete")
    if ended is not None:
        return _try_again(view, gate, job, ended)
    progress = Problem(gate.running, f"Job {name_of(job)} {gate.does} since {created(job)}")
    if not gate.pods and not dig(job, "spec", "suspend"):
        return _without_pod(view, job, progress)
    spec = view.target.spec
    context = PodContext(gate.container, spec.resources.gpu.resource, spec.startup_timeout_seconds)
    waiting = [pod for pod in gate.pods if condition(pod, "DisruptionTarget") is None and _waits(pod)]
    return Gate(progress=progress, problem=find_problem(waiting, context))


def _without_pod(view: View, job: Json, progress: Problem) -> Gate[V_co]:
    """No pod is there yet. Why one is refused, Kubernetes tells in an event of the Job's only."""
    name, made = name_of(job), parse_time(created(job)) or view.now
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


def _try_again(view: View, gate: GateJob[V_co], job: Json, ended: Json) -> Gate[V_co]:
    """The Job is over and no pod gave a verdict: evicted, never pulled, or removed by somebody."""
    progress = Problem(gate.running, "The gate ended without a verdict and is tried again")
    since = parse_time(ended.get("lastTransitionTime"))
    wait = (since + GATE_RETRY_DELAY - view.now).total_seconds() if since else 0.0
    if wait > 0:
        return Gate(progress=progress, requeue_after=wait)
    return Gate(writes=delete("Job", job, "the gate ended without a verdict"), progress=progress)
