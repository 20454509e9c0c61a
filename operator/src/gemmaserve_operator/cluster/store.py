"""The operator's picture of the cluster: fed by watches, by the sweeper's lists and by the answers to our own writes.

The three may arrive in any order. An object is replaced only by a newer one, by resourceVersion (an integer that
grows with every write of a kind: Kubernetes 1.35, KEP-5504), and what was deleted does not come back through a late
event.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gemmaserve_operator.cluster.gates import GateIndex
from gemmaserve_operator.cluster.kinds import (
    CONTROLLER_REVISION,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    GEMMASERVE,
    JOB,
    POD,
    SERVICE,
    WATCHED,
    Json,
    Key,
    Kind,
)
from gemmaserve_operator.planning.types import Refusal, Snapshot

_MEMORY_OF_THE_DEAD: Final = 900.0
"""Seconds for which a deleted object's uid is remembered: longer than any event or list can be under way."""
_FOR_EVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class _Death:
    resource_version: float
    noticed: float


class Store:
    """Objects by kind and name, and by the GemmaServe they belong to. Holds no managedFields. Not thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._objects: dict[Kind, dict[Key, Json]] = {kind: {} for kind in WATCHED}
        self._children: dict[Key, dict[Kind, dict[str, Json]]] = defaultdict(lambda: defaultdict(dict))
        self._dead: dict[Kind, dict[str, _Death]] = {kind: {} for kind in WATCHED}
        self._heard: dict[Kind, float] = {}
        self._gates = GateIndex()

    def put(self, kind: Kind, obj: Json) -> bool:
        """Take an object in; False when nothing newer was learnt from it."""
        metadata = obj["metadata"]
        version = int(metadata["resourceVersion"])
        death = self._dead[kind].get(metadata["uid"])
        if death is not None and version <= death.resource_version:
            return False
        held = self.get(kind, metadata["namespace"], metadata["name"])
        if held is not None and int(held["metadata"]["resourceVersion"]) >= version:
            return False
        if held is not None:
            self._unindex(kind, held)
        self._index(kind, _slim(kind, obj))
        return True

    def remove(self, kind: Kind, obj: Json) -> bool:
        """Take note of a deletion as a watch tells it; False when it was known."""
        metadata = obj["metadata"]
        return self._bury(kind, metadata["namespace"], metadata["name"], metadata["uid"], metadata["resourceVersion"])

    def forget(self, kind: Kind, namespace: str, name: str, uid: str) -> bool:
        """Take note that the API server no longer has the object with this uid, and will never again."""
        return self._bury(kind, namespace, name, uid, _FOR_EVER)

    def replace(self, kind: Kind, namespace: str | None, items: Iterable[Json], resource_version: int) -> set[Key]:
        """Take a whole list in, and drop the ghosts: what is held, is older than the list, and is not in it.

        Returns:
            The GemmaServes about which something new was learnt.
        """
        changed: set[Key | None] = set()
        present: set[str] = set()
        for item in items:
            present.add(item["metadata"]["uid"])
            held = self.get(kind, item["metadata"]["namespace"], item["metadata"]["name"])
            if self.put(kind, item):
                changed |= {kind.owner_key(item), kind.owner_key(held) if held else None}
        for obj in self._older_than(kind, namespace, resource_version):
            metadata = obj["metadata"]
            if metadata["uid"] not in present:
                changed.add(kind.owner_key(obj))
                self._bury(kind, metadata["namespace"], metadata["name"], metadata["uid"], resource_version)
        self._forget_the_dead(kind)
        self.heard(kind)
        return {key for key in changed if key is not None}

    def heard(self, kind: Kind) -> None:
        """The API server has told something about this kind just now."""
        self._heard[kind] = self._clock()

    def staleness(self, kind: Kind) -> float:
        """Seconds since anything was heard about a kind; infinite before the first time."""
        heard = self._heard.get(kind)
        return _FOR_EVER if heard is None else self._clock() - heard

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """One object; not to be changed."""
        return self._objects[kind].get((namespace, name))

    def gemmaserves(self) -> tuple[Key, ...]:
        """Namespace and name of every GemmaServe."""
        return tuple(self._objects[GEMMASERVE])

    def count_phase(self, phase: str) -> int:
        """How many GemmaServes are in a phase, by their status."""
        return sum((obj.get("status") or {}).get("phase") == phase for obj in self._objects[GEMMASERVE].values())

    @property
    def running_gates(self) -> int:
        """Gate Jobs that have been made and have not ended, over all namespaces."""
        return self._gates.running

    def snapshot(self, key: Key, *, free_gates: int, refusals: Mapping[str, Refusal] | None = None) -> Snapshot | None:
        """A GemmaServe and everything of it, children in the order of their names; None when it is gone."""
        resource = self._objects[GEMMASERVE].get(key)
        if resource is None:
            return None
        children = self._children.get(key, {})

        def of(kind: Kind) -> tuple[Json, ...]:
            return tuple(obj for _, obj in sorted(children.get(kind, {}).items()))

        return Snapshot(
            resource=resource,
            jobs=of(JOB),
            deployments=of(DEPLOYMENT),
            services=of(SERVICE),
            pods=of(POD),
            endpoint_slices=of(ENDPOINT_SLICE),
            revision_records=of(CONTROLLER_REVISION),
            free_gates=free_gates,
            verifications=self._gates.verifications(key[0]),
            refusals=refusals or {},
        )

    def _index(self, kind: Kind, obj: Json) -> None:
        metadata = obj["metadata"]
        self._objects[kind][metadata["namespace"], metadata["name"]] = obj
        key = kind.owner_key(obj)
        if kind != GEMMASERVE and key is not None:
            self._children[key][kind][metadata["name"]] = obj
        if kind == JOB:
            self._gates.put(obj)

    def _unindex(self, kind: Kind, obj: Json) -> None:
        metadata = obj["metadata"]
        del self._objects[kind][metadata["namespace"], metadata["name"]]
        key = kind.owner_key(obj)
        if kind != GEMMASERVE and key is not None:
            del self._children[key][kind][metadata["name"]]
            if not any(self._children[key].values()):
                del self._children[key]
        if kind == JOB:
            self._gates.discard(obj)

    def _bury(self, kind: Kind, namespace: str, name: str, uid: str, version: float | str) -> bool:
        self._dead[kind][uid] = _Death(float(version), self._clock())
        held = self.get(kind, namespace, name)
        if held is None or held["metadata"]["uid"] != uid or int(held["metadata"]["resourceVersion"]) > float(version):
            return False
        self._unindex(kind, held)
        return True

    def _older_than(self, kind: Kind, namespace: str | None, resource_version: int) -> list[Json]:
        return [
            obj
            for (where, _), obj in self._objects[kind].items()
            if namespace in (None, where) and int(obj["metadata"]["resourceVersion"]) <= resource_version
        ]

    def _forget_the_dead(self, kind: Kind) -> None:
        limit = self._clock() - _MEMORY_OF_THE_DEAD
        self._dead[kind] = {uid: death for uid, death in self._dead[kind].items() if death.noticed > limit}


def _slim(kind: Kind, obj: Json) -> Json:
    """The object without managedFields, its strings shared: a quarter of its size.

    Items of lists get the kind that they lack.
    """
    metadata = {field: value for field, value in obj["metadata"].items() if field != "managedFields"}
    slim: Json = _share({**obj, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata})
    return slim


def _share(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The same with each string held once in the process: keys, labels and images recur in thousands of objects."""
    if isinstance(value, str):
        return sys.intern(value)
    if isinstance(value, dict):
        return {sys.intern(key): _share(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_share(item) for item in value]
    return value
