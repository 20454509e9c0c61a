"""Reading Kubernetes objects as plain JSON, where any part may be missing."""

from collections.abc import Iterable
from typing import Any

from gemmaserve_operator.planning.types import Json


def dig(value: Any, *path: str) -> Any:  # noqa: ANN401 - JSON of any shape, narrowed by the caller
    """The value at a path of keys; None where the path ends early."""
    for key in path:
        # Not any Mapping: that check is an order of magnitude slower, and JSON has no other.
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def name_of(obj: Json) -> str:
    """`metadata.name`."""
    return str(obj["metadata"]["name"])


def uid_of(obj: Json) -> str:
    """`metadata.uid`."""
    return str(dig(obj, "metadata", "uid") or "")


def label(obj: Json, key: str) -> str | None:
    """The value of a label."""
    value = dig(obj, "metadata", "labels", key)
    return value if isinstance(value, str) else None


def annotation(obj: Json | None, key: str) -> str | None:
    """The value of an annotation; None also for no object."""
    value = dig(obj, "metadata", "annotations", key)
    return value if isinstance(value, str) else None


def owned_by(obj: Json, uid: str) -> bool:
    """Whether the object's controller is the one with this uid."""
    references = dig(obj, "metadata", "ownerReferences") or []
    return any(reference.get("uid") == uid and reference.get("controller") for reference in references)


def is_leaving(obj: Json) -> bool:
    """Whether the object is being deleted."""
    return bool(dig(obj, "metadata", "deletionTimestamp"))


def created(obj: Json) -> str:
    """`metadata.creationTimestamp`, which sorts as text."""
    return str(dig(obj, "metadata", "creationTimestamp") or "")


def condition(obj: Json | None, kind: str) -> Json | None:
    """The condition of that type in the object's status, if it is True."""
    found = _condition(obj, kind)
    return found if found is not None and found.get("status") == "True" else None


def condition_false(obj: Json | None, kind: str) -> Json | None:
    """The condition of that type in the object's status, if it is False."""
    found = _condition(obj, kind)
    return found if found is not None and found.get("status") == "False" else None


def _condition(obj: Json | None, kind: str) -> Json | None:
    conditions: Iterable[Json] = dig(obj, "status", "conditions") or []
    return next((item for item in conditions if item.get("type") == kind), None)


def container_status(pod: Json, container: str) -> Json:
    """The status of a container of a pod; empty when there is none yet."""
    statuses: Iterable[Json] = dig(pod, "status", "containerStatuses") or []
    return next((item for item in statuses if item.get("name") == container), {})
