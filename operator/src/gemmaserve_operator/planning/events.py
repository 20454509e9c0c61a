"""Events: each change of phase or reason is told once, because it is read off two statuses and not remembered."""

from typing import Any, Final

from gemmaserve_operator.api.conditions import DEGRADED, LIVE_VERIFIED, PARSER_VERIFIED, PROGRESSING, READY
from gemmaserve_operator.planning.types import Event, Json

_TOLD: Final = (DEGRADED, PARSER_VERIFIED, LIVE_VERIFIED, PROGRESSING, READY)


def build_events(previous: Json, status: Json) -> tuple[Event, ...]:
    """One event for each reason that stands in a condition now and stood in none before."""
    before = {reason for reason, _, _ in _reasons(previous)}
    events: dict[str, Event] = {}
    for reason, message, warns in _reasons(status):
        if reason not in before and reason not in events:
            events[reason] = Event("Warning" if warns else "Normal", reason, message)
    return tuple(events.values())


def _reasons(status: Json) -> list[tuple[str, str, bool]]:
    """Reason, message and whether it is a warning, of the conditions that say something worth an event."""
    conditions: dict[Any, Any] = {item.get("type"): item for item in status.get("conditions") or []}
    told = []
    for kind in _TOLD:
        item = conditions.get(kind)
        if item is None or (kind == DEGRADED and item.get("status") != "True"):
            continue
        if kind == LIVE_VERIFIED and item.get("status") == "Unknown":
            continue
        told.append((str(item.get("reason")), str(item.get("message")), kind == DEGRADED))
    return told
