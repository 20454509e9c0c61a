"""The history: how past revisions ended. It lives in the status alone and is the only thing lost with it."""

from typing import TypeVar

from pydantic import ValidationError

from gemmaserve_operator.api import reasons
from gemmaserve_operator.api.base import ApiModel
from gemmaserve_operator.api.status import HistoryEntry, RevisionStatus
from gemmaserve_operator.api.times import format_time
from gemmaserve_operator.planning.rollout import Rollout
from gemmaserve_operator.planning.types import Json
from gemmaserve_operator.planning.view import View

_T = TypeVar("_T", bound=ApiModel)


def build_history(
    view: View, rollout: Rollout, previous: Json, active: RevisionStatus | None, candidate: RevisionStatus | None
) -> list[HistoryEntry]:
    """Past revisions, newest first: the last status's entries, and what has changed since that status."""
    now = format_time(view.now)
    entries = {entry.revision: entry for entry in _read(HistoryEntry, previous.get("history") or [])}
    gone = next(iter(_read(RevisionStatus, [previous.get("candidateRevision") or {}])), None)
    if gone is not None and gone.name not in (view.active, view.candidate, *entries):
        entries = {gone.name: _entry(gone, "Superseded", reasons.ROLLOUT_UNFINISHED, now, now)} | entries
    for name, entry in entries.items():
        if entry.outcome == "Active" and name != view.active:
            entries[name] = entry.model_copy(
                update={"outcome": "Replaced", "reason": reasons.UP_TO_DATE, "finished_at": now}
            )
    if active is not None and (active.name not in entries or entries[active.name].outcome != "Active"):
        entries.pop(active.name, None)
        entries = {active.name: _entry(active, "Active", reasons.SERVING, now, None)} | entries
    if candidate is not None and rollout.failed and rollout.problem is not None:
        failed = entries.pop(candidate.name, None)
        if failed is None or failed.outcome != "Failed":
            failed = _entry(candidate, "Failed", rollout.problem.reason, now, now)
        entries = {candidate.name: failed} | entries
    return list(entries.values())[: view.spec.revision_history_limit + 1]


def _read(model: type[_T], items: list[Json]) -> list[_T]:
    """What of the last status can be read: another version of the operator may have written it."""
    found = []
    for item in items:
        try:
            found.append(model.model_validate(item))
        except ValidationError:
            continue
    return found


def _entry(revision: RevisionStatus, outcome: str, reason: str, now: str, finished: str | None) -> HistoryEntry:
    return HistoryEntry.model_validate(
        {
            "revision": revision.name,
            "image": revision.image,
            "outcome": outcome,
            "reason": reason,
            "startedAt": revision.created_at or now,
            "finishedAt": finished,
        }
    )
