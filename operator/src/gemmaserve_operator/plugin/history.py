"""Past revisions: how they ended, and what is known to go back to them. Pure."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import canonical_fields
from gemmaserve_operator.api.spec import RevisionSpec
from gemmaserve_operator.planning.objects import annotation, dig, label, name_of
from gemmaserve_operator.planning.types import Json

SOURCES: Final = "controllerrevisions.apps,deployments.apps,jobs.batch"
"""The kinds of children that say what a revision was made from."""
_FIELDS: Final = tuple(field.alias or name for name, field in RevisionSpec.model_fields.items())


class UndoError(Exception):
    """There is nothing to go back to; the message says what there is instead."""


@dataclass(frozen=True, slots=True)
class Past:
    """One revision of the history."""

    revision: str
    outcome: str
    reason: str
    verified: str
    image: str
    started: str | None
    finished: str | None
    restorable: bool


@dataclass(frozen=True, slots=True)
class Source:
    """What a revision was made from, as one of its children says."""

    spec: Json
    digest: str | None
    """`sha256:...` of the image that its gate passed."""
    lives: bool
    """Its Deployment is there: the very same spec goes back to it without making anything anew."""
    left: int = 0
    """When it left, by its ControllerRevision: the higher, the later."""


def read_sources(children: Iterable[Json]) -> dict[str, Source]:
    """What revisions were made from, by revision."""
    found: dict[str, Source] = {}
    for child in children:
        revision, spec = label(child, names.LABEL_REVISION), _spec_of(child)
        if revision is None or spec is None:
            continue
        known = found.get(revision)
        found[revision] = Source(
            spec=spec,
            digest=annotation(child, names.ANNOTATION_IMAGE_DIGEST) or (known.digest if known else None),
            lives=child.get("kind") == "Deployment" or (known is not None and known.lives),
            left=max(int(child.get("revision") or 0), known.left if known else 0),
        )
    return found


def read_history(resource: Json, children: Sequence[Json]) -> list[Past]:
    """Past revisions, newest first: what the status tells, then what only ControllerRevisions know of."""
    sources = read_sources(children)
    records = _records(resource, children)
    entries = list(dig(resource, "status", "history") or [])
    told = {entry.get("revision") for entry in entries}
    entries += [
        {"revision": revision, "outcome": "Unknown", "reason": "", "image": _image(source)}
        for revision, source in sorted(sources.items(), key=lambda item: -item[1].left)
        if revision not in told and source.left
    ]
    return [
        Past(
            revision=str(entry.get("revision")),
            outcome=str(entry.get("outcome")),
            reason=str(entry.get("reason") or ""),
            verified=records.get(str(entry.get("revision")), "-"),
            image=str(entry.get("image") or ""),
            started=entry.get("startedAt"),
            finished=entry.get("finishedAt"),
            restorable=entry.get("revision") in sources,
        )
        for entry in entries
    ]


def choose(resource: Json, children: Sequence[Json], wanted: str | None) -> tuple[str, Source]:
    """The revision to go back to.

    Args:
        resource: The GemmaServe.
        children: Its children of the kinds in `SOURCES`.
        wanted: A revision or the beginning of one; None for the one before: the active one while a rollout is under way
            or has failed, else the last one that was replaced.

    Raises:
        UndoError: There is none, or more than one that begins so.
    """
    sources = read_sources(children)
    active = dig(resource, "status", "activeRevision", "name")
    candidate = dig(resource, "status", "candidateRevision", "name")
    if wanted is not None:
        matching = [revision for revision in sources if revision.startswith(wanted)]
        if len(matching) != 1:
            what = f"{len(matching)} revisions begin" if matching else "no revision begins"
            raise UndoError(
                f"{what} with {wanted}; what can be gone back to: {', '.join(sorted(sources)) or 'nothing'}"
            )
        return matching[0], sources[matching[0]]
    if candidate and active in sources:
        return active, sources[active]
    replaced = [past.revision for past in read_history(resource, children) if past.outcome == "Replaced"]
    left = sorted((r for r, source in sources.items() if source.left), key=lambda r: -sources[r].left)
    for revision in (*replaced, *left):
        if revision in sources and revision not in (active, candidate):
            return revision, sources[revision]
    raise UndoError(f"{name_of(resource)} has no earlier revision to go back to; kubectl gemmaserve history shows all")


def build_undo(resource: Json, source: Source) -> list[Json]:
    """The JSON patch that makes the spec ask for a past revision again; empty when it does.

    Only the fields that make a revision change. Pods of a tag are made anew from the digest that the tag stood for
    then: it may stand for another image now.
    """
    wanted = source.spec if source.lives else source.spec | {"image": _pinned(source)}
    current = _current(resource)
    operations: list[Json] = []
    for name in _FIELDS:
        if wanted.get(name) == current.get(name):
            continue
        change = {"op": "add", "value": wanted[name]} if name in wanted else {"op": "remove"}
        operations.append(change | {"path": f"/spec/{name}"})
    if operations:
        version = resource["metadata"]["resourceVersion"]
        operations.insert(0, {"op": "test", "path": "/metadata/resourceVersion", "value": version})
    return operations


def _current(resource: Json) -> Json:
    """The fields of the spec that make a revision, as a record has them: without what is only a default."""
    present = {name: value for name, value in (resource.get("spec") or {}).items() if name in _FIELDS}
    try:
        return canonical_fields(RevisionSpec.model_validate(present))
    except ValidationError:
        return present


def _pinned(source: Source) -> Json:
    image: Json = dict(source.spec["image"])
    if source.digest and image.pop("tag", None):
        image["digest"] = source.digest
    return image


def _image(source: Source) -> str:
    image = source.spec.get("image") or {}
    return f"{image.get('repository')}@{source.digest or image.get('digest') or image.get('tag')}"


def _records(resource: Json, children: Iterable[Json]) -> dict[str, str]:
    """Passed and run regressions, by revision."""
    records: dict[str, Json | None] = {}
    for child in children:
        revision, text = label(child, names.LABEL_REVISION), annotation(child, names.ANNOTATION_VERIFICATION)
        if revision and text:
            records[revision] = _json(text)
    for role in ("active", "candidate"):
        revision = dig(resource, "status", f"{role}Revision", "name")
        if revision:
            records[revision] = dig(resource, "status", f"{role}Revision", "verification", "parser")
    return {name: f"{found.get('passed')}/{found.get('total')}" for name, found in records.items() if found}


def _json(text: str | None) -> Json | None:
    try:
        content = json.loads(text or "")
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _spec_of(child: Json) -> Json | None:
    if child.get("kind") == "ControllerRevision":
        spec = dig(child, "data", "spec")
        return spec if isinstance(spec, dict) else None
    spec = (_json(annotation(child, names.ANNOTATION_REVISION_SPEC)) or {}).get("spec")
    return spec if isinstance(spec, dict) else None
