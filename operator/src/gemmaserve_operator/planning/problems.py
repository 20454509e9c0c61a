"""What keeps pods from running, read from their status: an ordered chain of checks, each with one reason."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gemmaserve_operator.api import reasons
from gemmaserve_operator.api.times import parse_time
from gemmaserve_operator.desired.deployment import STARTUP_PROBE_PERIOD_SECONDS
from gemmaserve_operator.planning.objects import condition_false, container_status, created, dig, name_of
from gemmaserve_operator.planning.types import Json

_IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_CONFIG_REASONS = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_SECRET_MISSING = re.compile(r'secrets? "(?P<name>[^"]+)" not found')
_SECRET_KEY_MISSING = re.compile(r"couldn't find key (?P<key>\S+) in Secret (?:\S+/)?(?P<name>\S+)")
_CLAIM_MISSING = re.compile(r'persistentvolumeclaim "(?P<name>[^"]+)" not found')
_MAX_WORDS = 512


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that needs a person, or time: a reason, and a sentence with the next step."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodContext:
    """What the checks need to know of the pods they look at."""

    container: str
    gpu_resource: str
    startup_timeout_seconds: int
    stop_timeout_seconds: int = 0
    """How long the container may take to end once the kubelet has told it to."""


Check = Callable[[Json, Json, PodContext], str | None]
"""Pod, its container's status, context -> the message when the check finds its problem."""


def find_problem(pods: Iterable[Json], context: PodContext) -> Problem | None:
    """The first problem by the order of the checks, in the oldest pod that has it; None when there is none."""
    by_age = sorted(pods, key=lambda pod: (created(pod), name_of(pod)))
    for reason, check in _CHECKS:
        for pod in by_age:
            message = check(pod, container_status(pod, context.container), context)
            if message is not None:
                return Problem(reason, message)
    return None


def _waiting(status: Json, among: frozenset[str]) -> str | None:
    waiting = dig(status, "state", "waiting")
    if isinstance(waiting, dict) and waiting.get("reason") in among:
        return str(waiting.get("message") or waiting["reason"]).strip()[:_MAX_WORDS]
    return None


def _secret_missing(_pod: Json, status: Json, _context: PodContext) -> str | None:
    words = _waiting(status, _CONFIG_REASONS) or ""
    if found := _SECRET_MISSING.search(words):
        return (
            f"Secret {found['name']} not found in this namespace: create it, or change spec.model.tokenSecretRef; "
            "the pod goes on by itself"
        )
    if found := _SECRET_KEY_MISSING.search(words):
        return (
            f"Secret {found['name']} has no key {found['key']}: add it, or set spec.model.tokenSecretRef.key; "
            "the pod goes on by itself"
        )
    return None


def _image_unpullable(_pod: Json, status: Json, _context: PodContext) -> str | None:
    words = _waiting(status, _IMAGE_REASONS)
    return None if words is None else f"{words}. Check spec.image and spec.image.pullSecrets"


def _misconfigured(pod: Json, status: Json, _context: PodContext) -> str | None:
    words = _waiting(status, _CONFIG_REASONS)
    return None if words is None else f"Pod {name_of(pod)} cannot start: {words}"


def _unscheduled(pod: Json) -> str:
    condition = condition_false(pod, "PodScheduled")
    if condition is None or condition.get("reason") != "Unschedulable":
        return ""
    return str(condition.get("message") or "no node fits")


def _claim_unbound(pod: Json, _status: Json, _context: PodContext) -> str | None:
    words = _unscheduled(pod)
    if found := _CLAIM_MISSING.search(words):
        return (
            f"PersistentVolumeClaim {found['name']} not found in this namespace: create it; the pod goes on by itself"
        )
    if "unbound immediate PersistentVolumeClaims" in words:
        volumes = dig(pod, "spec", "volumes") or []
        claims = [str(claim) for volume in volumes if (claim := dig(volume, "persistentVolumeClaim", "claimName"))]
        return f"PersistentVolumeClaim {' or '.join(claims)} is not bound: check its StorageClass and size"
    return None


def _gpus_short(pod: Json, _status: Json, context: PodContext) -> str | None:
    words = _unscheduled(pod)
    if f"Insufficient {context.gpu_resource}" not in words:
        return None
    return f"Too few free {context.gpu_resource} for pod {name_of(pod)}: {words}"


def _unschedulable(pod: Json, _status: Json, _context: PodContext) -> str | None:
    words = _unscheduled(pod)
    return f"No node takes pod {name_of(pod)}: {words}" if words else None


def _last_end(status: Json) -> Json:
    """The container's latest end, whether it has been started again since or not."""
    for state in ("state", "lastState"):
        terminated = dig(status, state, "terminated")
        if isinstance(terminated, dict):
            return terminated
    return {}


def _out_of_memory(pod: Json, status: Json, _context: PodContext) -> str | None:
    if _last_end(status).get("reason") != "OOMKilled" or status.get("ready"):
        return None
    return f"Pod {name_of(pod)} was killed for want of memory: raise spec.resources.limits.memory"


def _started_too_slowly(pod: Json, status: Json, context: PodContext) -> str | None:
    end = _last_end(status)
    started, finished = parse_time(end.get("startedAt")), parse_time(end.get("finishedAt"))
    if started is None or finished is None or status.get("ready"):
        return None
    # The kubelet says so in an event only. It ends the container after the last failed probe, so that one which ended
    # much later had been ready, and one which ended earlier did so by itself.
    excess = (finished - started).total_seconds() - context.startup_timeout_seconds
    if not -STARTUP_PROBE_PERIOD_SECONDS <= excess <= STARTUP_PROBE_PERIOD_SECONDS + context.stop_timeout_seconds:
        return None
    return (
        f"Pod {name_of(pod)} was not ready within {context.startup_timeout_seconds} s and was started again: "
        f"raise spec.startupTimeoutSeconds. Its last words: {_words(end)}"
    )


def _crashed(pod: Json, status: Json, _context: PodContext) -> str | None:
    end = _last_end(status)
    if not end or status.get("ready"):
        return None
    return f"Pod {name_of(pod)} ended with exit code {end.get('exitCode')}: {_words(end)}"


def _words(end: Json) -> str:
    return str(end.get("message") or end.get("reason") or "none").strip()[-_MAX_WORDS:]


_CHECKS: tuple[tuple[str, Check], ...] = (
    (reasons.SECRET_NOT_FOUND, _secret_missing),
    (reasons.IMAGE_PULL_ERROR, _image_unpullable),
    (reasons.CONTAINER_CONFIG_ERROR, _misconfigured),
    (reasons.CLAIM_NOT_BOUND, _claim_unbound),
    (reasons.INSUFFICIENT_GPU, _gpus_short),
    (reasons.UNSCHEDULABLE, _unschedulable),
    (reasons.CONTAINER_OOM_KILLED, _out_of_memory),
    (reasons.STARTUP_TIMEOUT, _started_too_slowly),
    (reasons.CRASH_LOOP, _crashed),
)
