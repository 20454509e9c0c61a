"""How the pods of a gate's Job have ended: which of them has the last word, and what it said."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from gemmaserve_operator.planning.objects import condition, container_status, created, dig
from gemmaserve_operator.planning.types import Json

_MAX_WORDS: Final = 512


@dataclass(frozen=True, slots=True)
class Ending:
    """The end that decides."""

    pod: Json
    exit_code: int | None
    message: str
    """The container's termination message."""
    last_try: bool
    """The Job has given up: it ended otherwise than with a verdict, as often as it may."""
    trouble: str
    """For people, when there is no report: what became of it."""


def find_ending(
    job: Json, pods: tuple[Json, ...], *, container: str, verdicts: Collection[int], limit: str
) -> Ending | None:
    """The end that decides; None while there is none.

    Pods that were evicted or whose node was lost say nothing. Pods that ended otherwise than with a verdict's exit code
    (out of memory, out of time) count only when the Job has given up; a pod whose container never ran counts never.

    Args:
        job: The Job.
        pods: Its pods.
        container: The container that reports.
        verdicts: Exit codes that decide at once.
        limit: The field of the spec that bounds the time, for people.
    """
    ended = [
        pod
        for pod in sorted(pods, key=created)
        if condition(pod, "DisruptionTarget") is None and _terminated(pod, container)
    ]
    for pod in ended:
        if _terminated(pod, container).get("exitCode") in verdicts:
            return _ending(pod, container, limit, last_try=False)
    if ended and condition(job, "Failed") is not None:
        return _ending(ended[-1], container, limit, last_try=True)
    return None


def _terminated(pod: Json, container: str) -> Json:
    terminated = dig(container_status(pod, container), "state", "terminated")
    return terminated if isinstance(terminated, dict) else {}


def _ending(pod: Json, container: str, limit: str, *, last_try: bool) -> Ending:
    terminated = _terminated(pod, container)
    code, message = terminated.get("exitCode"), str(terminated.get("message") or "").strip()
    if dig(pod, "status", "reason") == "DeadlineExceeded":
        trouble = f"it did not finish within {limit}"
    elif terminated.get("reason") == "OOMKilled":
        trouble = "it ran out of memory"
    else:
        trouble = f"exit code {code}, {message[-_MAX_WORDS:] or 'without a word'}"
    return Ending(pod, code, message, last_try, trouble)
