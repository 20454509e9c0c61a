"""Whether an object already holds what we want of it, so that nothing is written when it does."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gemmaserve_operator.api import names
from gemmaserve_operator.api.quantity import parse_quantity
from gemmaserve_operator.planning.types import Json

_LIST_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "ownerReferences": ("uid",),
    "containers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "imagePullSecrets": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
"""Lists that server-side apply merges by key, so that others may add items. Every other list is ours as a whole."""
_PORT_KEYS: Final = (("containerPort", "protocol"), ("port", "protocol"))
_WHOLE_MAPS: Final = frozenset({"selector", "matchLabels", "nodeSelector"})
"""Maps in which a key more changes the meaning: compared as a whole (`x-kubernetes-map-type: atomic`)."""
_QUANTITY_PARENTS: Final = frozenset({"requests", "limits"})
_OURS: Final = f"{names.GROUP}/"


_Path = tuple[str, ...]


def needs_apply(desired: Json, observed: Json) -> str | None:
    """The path of the first thing in which `observed` is not as `desired` says; None when it is.

    Fields, list items, labels and annotations that others have added are no difference. Labels and annotations of
    our own group that are no longer wanted are one. Quantities are compared by value, and a field that is absent
    equals one that is empty.
    """
    for kind in ("labels", "annotations"):
        wanted = desired["metadata"].get(kind) or {}
        present = observed["metadata"].get(kind) or {}
        for key in present:
            if key.startswith(_OURS) and key not in wanted:
                return f"metadata.{kind}.{key}"
    # Items of a list bear no apiVersion and kind of their own; a store may hold them so.
    content = {key: value for key, value in desired.items() if key not in ("apiVersion", "kind")}
    path = _differs(content, observed, ())
    return None if path is None else ".".join(path)


def _differs(desired: Any, observed: Any, path: _Path) -> _Path | None:  # noqa: ANN401 - JSON of any shape
    if isinstance(desired, dict):
        return _map_differs(desired, observed, path)
    if isinstance(desired, list):
        return _list_differs(desired, observed, path)
    if desired == observed or (observed is None and desired == ""):
        return None
    return None if _is_quantity(path) and _equal_quantities(desired, observed) else path


def _map_differs(desired: Mapping[str, Any], observed: Any, path: _Path) -> _Path | None:  # noqa: ANN401
    present = observed if isinstance(observed, dict) else {}
    if path[-1:] and path[-1] in _WHOLE_MAPS and _is_flat(desired) and set(present) != set(desired):
        return path
    for key, value in desired.items():
        if (found := _differs(value, present.get(key), (*path, key))) is not None:
            return found
    return None


def _list_differs(desired: Sequence[Any], observed: Any, path: _Path) -> _Path | None:  # noqa: ANN401
    present = observed if isinstance(observed, list) else []
    keys = _merge_keys(path[-1], desired)
    if keys is None:
        if len(present) != len(desired):
            return path
        found = list(present)
    else:
        by_key = {tuple(item.get(key) for key in keys): item for item in present}
        found = [by_key.get(tuple(item.get(key) for key in keys)) for item in desired]
    for index, (wanted, item) in enumerate(zip(desired, found, strict=True)):
        if item is None:
            return (*path, str(index))
        if (difference := _differs(wanted, item, (*path, str(index)))) is not None:
            return difference
    return None


def _merge_keys(field: str, desired: Sequence[Any]) -> tuple[str, ...] | None:
    if field == "ports":
        return next((keys for keys in _PORT_KEYS if desired and all(key in desired[0] for key in keys)), None)
    return _LIST_KEYS.get(field)


def _is_flat(value: Mapping[str, Any]) -> bool:
    """A Deployment's `selector` holds `matchLabels`; a Service's is itself the map."""
    return not any(isinstance(item, dict) for item in value.values())


def _is_quantity(path: _Path) -> bool:
    return path[-1] == "sizeLimit" or (len(path) > 1 and path[-2] in _QUANTITY_PARENTS)


def _equal_quantities(desired: str | int, observed: object) -> bool:
    if not isinstance(observed, str | int):
        return False
    try:
        return parse_quantity(desired) == parse_quantity(observed)
    except ValueError:
        return False
