"""`gemmaserve-operator plan`: what would be done and why, from files, by the same code that runs in the cluster."""

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import GEMMASERVE, WATCHED, Json, Key
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.planning import Apply, Plan, Write, plan
from gemmaserve_operator.runtime.settings import Settings

_UNKNOWN_UID: Final = "00000000-0000-0000-0000-000000000000"
"""Stands for the uid that the API server would give."""
_DEFAULT_NAMESPACE: Final = "default"
_KINDS: Final = {kind.kind: kind for kind in WATCHED}


class InputError(Exception):
    """A file cannot be read as Kubernetes objects; the message says which and why."""


def show_plans(file: Path, state: Path | None, *, output: Literal["text", "yaml"], now: datetime | None = None) -> str:
    """The plans for all GemmaServes of a file, in a cluster that holds what the state file says.

    Args:
        file: GemmaServes as a user writes them; `-` for stdin.
        state: Objects as `kubectl get -o yaml` prints them; None for an empty cluster.
        output: Text for people, or YAML documents with the whole bodies.
        now: The moment to plan for. Default: the present.

    Raises:
        InputError: A file cannot be read, or holds no GemmaServe.
    """
    store = Store()
    for obj in _read_objects(state) if state else ():
        if obj["kind"] in _KINDS:
            store.put(_KINDS[obj["kind"]], _complete(obj))
    wanted = [_merge(obj, store) for obj in _read_objects(file) if obj["kind"] == names.KIND]
    if not wanted:
        raise InputError(f"{file} holds no {names.KIND}")
    for resource in wanted:
        store.put(GEMMASERVE, resource)
    free = max(0, Settings().max_concurrent_gates - store.running_gates)
    shown = []
    for key in map(_key_of, wanted):
        snapshot = store.snapshot(key, free_gates=free)
        if snapshot is not None:
            made = plan(snapshot, now or datetime.now(UTC))
            shown.append(_as_text(key, made) if output == "text" else _as_yaml(key, made))
    return "\n".join(shown)


def _read_objects(path: Path) -> Iterator[Json]:
    """The objects of a YAML file: documents, and the items of lists."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    for document in documents:
        yield from _flatten(path, document)


def _flatten(path: Path, document: Any) -> Iterator[Json]:  # noqa: ANN401 - YAML of any shape
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _flatten(path, item)
    elif isinstance(document, dict) and "kind" in document and isinstance(document.get("metadata"), dict):
        if not document["metadata"].get("name"):
            raise InputError(f"{path}: a {document['kind']} has no metadata.name")
        yield document
    else:
        raise InputError(f"{path}: not a Kubernetes object: {str(document)[:60]!r}")


def _complete(obj: Json) -> Json:
    """The object with the metadata that the API server would have given it."""
    given = {"namespace": _DEFAULT_NAMESPACE, "uid": _UNKNOWN_UID, "resourceVersion": "1", "generation": 1}
    return obj | {"metadata": given | obj["metadata"]}


def _merge(resource: Json, store: Store) -> Json:
    """The GemmaServe as it would be once the file was applied: the cluster's, with the file's spec."""
    wanted = _complete(resource)
    held = store.get(GEMMASERVE, *_key_of(wanted))
    if held is None:
        return wanted
    metadata = held["metadata"] | {
        "resourceVersion": str(int(held["metadata"]["resourceVersion"]) + 1),
        "annotations": (held["metadata"].get("annotations") or {}) | (resource["metadata"].get("annotations") or {}),
        "generation": held["metadata"]["generation"] + (wanted.get("spec") != held.get("spec")),
    }
    return held | {"metadata": metadata, "spec": wanted.get("spec")}


def _key_of(resource: Json) -> Key:
    return resource["metadata"]["namespace"], resource["metadata"]["name"]


def _as_text(key: Key, made: Plan) -> str:
    lines = [f"{names.KIND} {key[0]}/{key[1]}: {made.status.get('phase', 'being deleted')}"]
    lines += [f"  {number}. {_say(write)}" for number, write in enumerate(made.writes, start=1)]
    if not made.writes:
        lines.append("  nothing to write")
    lines += [_condition_line(condition) for condition in made.status.get("conditions") or []]
    if made.requeue_after is not None:
        lines.append(f"  looked at again in {made.requeue_after:.0f} s, or as soon as something changes")
    return "\n".join([*lines, ""])


def _say(write: Write) -> str:
    return write.why if isinstance(write, Apply) else f"delete {write.kind} {write.name}: {write.why}"


def _condition_line(condition: Json) -> str:
    return f"  {condition['type']}={condition['status']} {condition['reason']}: {condition['message']}"


def _as_yaml(key: Key, made: Plan) -> str:
    documents: Iterable[Json] = (
        {
            "resource": f"{key[0]}/{key[1]}",
            "writes": [_write_document(write) for write in made.writes],
            "status": made.status,
            "requeueAfterSeconds": made.requeue_after,
        },
    )
    return yaml.safe_dump_all(documents, sort_keys=False, explicit_start=True)


def _write_document(write: Write) -> Json:
    if isinstance(write, Apply):
        return {"why": write.why, "apply": write.body}
    target = {"apiVersion": write.api_version, "kind": write.kind, "name": write.name, "uid": write.uid}
    return {"why": write.why, "delete": target}
