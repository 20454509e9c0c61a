"""Revisions: a name for each distinct serving pod, and the record from which its children can be made again."""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

from gemmaserve_operator.api.spec import GemmaServeSpec, RevisionSpec

HASH_INPUT_VERSION: Final = 1
"""Raised only together with a way to keep the revisions of older operators: a new hash restarts every GPU pod."""
REVISION_LENGTH: Final = 10


def canonical_fields(spec: RevisionSpec) -> dict[str, Any]:
    """The fields of a revision that are not their default, so that fields added later change no existing hash."""
    dumped = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=set(RevisionSpec.model_fields))
    return {key: value for key, value in dumped.items() if value != {}}


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def attempt_of(retry: str | None) -> str:
    """A retry annotation's value, of any length, as a short token; empty for none."""
    return hashlib.sha256(retry.encode()).hexdigest()[:REVISION_LENGTH] if retry else ""


def revision_hash(spec: RevisionSpec, attempt: str = "") -> str:
    """The name of a revision: ten hexadecimal digits over what changes a serving pod, and which attempt at it."""
    source = {"version": HASH_INPUT_VERSION, "spec": canonical_fields(spec)}
    if attempt:
        source["attempt"] = attempt
    return hashlib.sha256(_compact(source).encode()).hexdigest()[:REVISION_LENGTH]


@dataclass(frozen=True, slots=True)
class VerifiedRevision:
    """A revision whose image has passed the gate: only of such a one are serving children made."""

    revision: "Revision"
    digest: str
    """`sha256:...` of the image that passed."""
    record: str
    """The gate's record, as JSON."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision as its children are made from it."""

    name: str
    spec: RevisionSpec
    spec_hash: str
    """The name of the first attempt at the same spec: what all attempts at it have in common."""
    drain_timeout_seconds: int
    """As it was when the revision was made: part of the pod, though no reason for a new revision."""
    attempt: str = ""

    @classmethod
    def of(cls, spec: GemmaServeSpec, attempt: str = "") -> Self:
        """The revision that a spec asks for."""
        return cls(
            name=revision_hash(spec, attempt),
            spec=RevisionSpec.model_validate(canonical_fields(spec)),
            spec_hash=revision_hash(spec),
            drain_timeout_seconds=spec.rollout.drain_timeout_seconds,
            attempt=attempt,
        )

    def to_record(self) -> str:
        """The annotation from which `read_revision` makes this revision again."""
        record = {
            "version": HASH_INPUT_VERSION,
            "spec": canonical_fields(self.spec),
            "drainTimeoutSeconds": self.drain_timeout_seconds,
        }
        if self.attempt:
            record["attempt"] = self.attempt
        return _compact(record)


@lru_cache(maxsize=4096)
def read_revision(name: str, record: str) -> Revision | None:
    """The revision of that name from its record; None when the record is missing or not that revision's.

    Cached: every plan reads the records of all children, and they hardly ever change.
    """
    try:
        content = json.loads(record)
        spec = RevisionSpec.model_validate(content["spec"])
        attempt = str(content.get("attempt", ""))
        drain = int(content["drainTimeoutSeconds"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if revision_hash(spec, attempt) != name:
        return None
    return Revision(name=name, spec=spec, spec_hash=revision_hash(spec), drain_timeout_seconds=drain, attempt=attempt)
