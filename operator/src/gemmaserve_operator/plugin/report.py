"""What there is to tell of one GemmaServe, read from its status and its children. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from gemmaserve_operator.api import names, reasons
from gemmaserve_operator.api.times import parse_time
from gemmaserve_operator.planning.objects import condition_false, dig, label, name_of
from gemmaserve_operator.planning.types import Json

Tone = Literal["good", "busy", "bad", "plain"]

_TONES: Final[dict[str, Tone]] = {
    "Serving": "good",
    "Running": "good",
    "Completed": "good",
    "Failed": "bad",
    "Degraded": "bad",
    "Pending": "busy",
    "Terminating": "busy",
}
_GATES: Final = (("parser", "ParserVerified"), ("live", "LiveVerified"))


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate of the revision that is to serve, or serves."""

    name: str
    state: str
    tone: Tone
    details: str


@dataclass(frozen=True, slots=True)
class RevisionLine:
    """The active or the candidate revision."""

    role: str
    name: str
    pods: str
    image: str


@dataclass(frozen=True, slots=True)
class PodLine:
    """One pod, of a gate or serving."""

    name: str
    role: str
    revision: str
    state: str
    tone: Tone
    restarts: str
    node: str
    age: str


@dataclass(frozen=True, slots=True)
class Report:
    """One GemmaServe as a person wants to see it."""

    name: str
    namespace: str
    phase: str
    tone: Tone
    url: str | None
    replicas: str
    revisions: tuple[RevisionLine, ...]
    gates: tuple[Gate, ...]
    pods: tuple[PodLine, ...]
    waits_for: tuple[str, str] | None
    """Reason and sentence of the step that is being taken; None when nothing is left to do."""
    trouble: tuple[str, str] | None
    """Reason and sentence of what is wrong; None when nothing is."""


def build_report(resource: Json, children: Sequence[Json], now: datetime) -> Report:
    """The report on a GemmaServe.

    Args:
        resource: The GemmaServe.
        children: Its Deployments and pods; others are passed over.
        now: For ages.
    """
    status = resource.get("status") or {}
    phase = str(status.get("phase") or "New")
    return Report(
        name=name_of(resource),
        namespace=str(resource["metadata"]["namespace"]),
        phase=phase,
        tone=_TONES.get(phase, "busy"),
        url=status.get("url"),
        replicas=str(dig(status, "summary", "replicas") or "0"),
        revisions=tuple(_revisions(status, children)),
        gates=tuple(_gates(status)),
        pods=tuple(_pod(pod, now) for pod in _by_role(children)),
        waits_for=_waits_for(resource),
        trouble=_trouble(status),
    )


def age(then: str | None, now: datetime) -> str:
    """How long ago, as kubectl writes it; `-` when unknown."""
    moment = parse_time(then)
    if moment is None:
        return "-"
    seconds = max(0, int((now - moment).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _condition(status: Json, kind: str) -> Json:
    return next((item for item in status.get("conditions") or [] if item.get("type") == kind), {})


def _words(condition: Json) -> tuple[str, str]:
    return str(condition.get("reason") or ""), str(condition.get("message") or "")


def _waits_for(resource: Json) -> tuple[str, str] | None:
    status = resource.get("status") or {}
    if int(status.get("observedGeneration") or 0) < int(dig(resource, "metadata", "generation") or 0):
        return "NotSeenYet", "The operator has not seen this spec yet. If this stays, is it running?"
    progressing = _condition(status, "Progressing")
    if progressing.get("status") == "True" or progressing.get("reason") == reasons.PAUSED:
        return _words(progressing)
    return None


def _trouble(status: Json) -> tuple[str, str] | None:
    degraded = _condition(status, "Degraded")
    return _words(degraded) if degraded.get("status") == "True" else None


def _revisions(status: Json, children: Iterable[Json]) -> Iterable[RevisionLine]:
    deployments = {label(obj, names.LABEL_REVISION): obj for obj in children if obj.get("kind") == "Deployment"}
    for role in ("active", "candidate"):
        revision = status.get(f"{role}Revision")
        if revision:
            deployment = deployments.get(revision["name"])
            ready, asked = dig(deployment, "status", "readyReplicas") or 0, dig(deployment, "spec", "replicas") or 0
            pods = f"{ready}/{asked} ready" if deployment else "no pods yet"
            yield RevisionLine(role, str(revision["name"]), pods, str(revision.get("image") or ""))


def _gates(status: Json) -> Iterable[Gate]:
    revision = status.get("candidateRevision") or status.get("activeRevision") or {}
    for name, kind in _GATES:
        condition = _condition(status, kind)
        record = dig(revision, "verification", name)
        if record:
            whole = condition.get("status") != "False" and not record.get("failed") and not record.get("error")
            yield Gate(name, "passed" if whole else "failed", "good" if whole else "bad", _record(record))
        elif condition:
            reason, message = _words(condition)
            yield Gate(name, reason, "bad" if condition.get("status") == "False" else "busy", message)


def _record(record: Json) -> str:
    parts = [f"{record.get('passed', 0)}/{record.get('total', 0)}"]
    begin, end = parse_time(record.get("startedAt")), parse_time(record.get("finishedAt"))
    if begin and end:
        parts.append(f"in {(end - begin).total_seconds():.0f} s")
    parts += [
        f"{label} {record[key]}" for key, label in (("vllmVersion", "vLLM"), ("parser", "parser")) if record.get(key)
    ]
    failures = [str(failure.get("name")) for failure in record.get("failures") or []]
    return ", ".join([*parts, *failures, *([str(record["error"])] if record.get("error") else [])])


def _by_role(children: Iterable[Json]) -> list[Json]:
    pods = [obj for obj in children if obj.get("kind") == "Pod"]
    return sorted(pods, key=lambda pod: (label(pod, names.LABEL_COMPONENT) or "", name_of(pod)))


def _pod(pod: Json, now: datetime) -> PodLine:
    containers = dig(pod, "status", "containerStatuses") or []
    state, tone = _pod_state(pod, containers)
    return PodLine(
        name=name_of(pod),
        role=label(pod, names.LABEL_COMPONENT) or "",
        revision=label(pod, names.LABEL_REVISION) or "",
        state=state,
        tone=tone,
        restarts=str(sum(int(container.get("restartCount") or 0) for container in containers)),
        node=str(dig(pod, "spec", "nodeName") or "-"),
        age=age(dig(pod, "metadata", "creationTimestamp"), now),
    )


def _pod_state(pod: Json, containers: Sequence[Json]) -> tuple[str, Tone]:
    if dig(pod, "metadata", "deletionTimestamp"):
        return "Terminating", "busy"
    for container in containers:
        waiting, terminated = dig(container, "state", "waiting"), dig(container, "state", "terminated")
        if isinstance(waiting, dict) and waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return str(waiting["reason"]), "bad"
        if isinstance(terminated, dict):
            reason = str(terminated.get("reason") or "Ended")
            return reason, "good" if terminated.get("exitCode") == 0 else "bad"
    unscheduled = condition_false(pod, "PodScheduled")
    if unscheduled is not None:
        return str(unscheduled.get("reason") or "Pending"), "busy"
    phase = str(dig(pod, "status", "phase") or "Pending")
    if phase == "Running" and not all(container.get("ready") for container in containers):
        return "Starting", "busy"
    return phase, _TONES.get(phase, "plain")
