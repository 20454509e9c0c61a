"""Conditions by the Kubernetes conventions (KEP-1623): a transition time moves only when the status does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from gemmaserve_operator.api.times import format_time

AVAILABLE: Final = "Available"
READY: Final = "Ready"
PROGRESSING: Final = "Progressing"
PARSER_VERIFIED: Final = "ParserVerified"
LIVE_VERIFIED: Final = "LiveVerified"
DEGRADED: Final = "Degraded"

MAX_MESSAGE_LENGTH: Final = 1024


@dataclass(frozen=True, slots=True)
class Condition:
    """One statement about the resource; `message` is a sentence for people, with the next step where there is one."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


def render_conditions(
    conditions: Iterable[Condition], previous: Sequence[dict[str, Any]], generation: int, now: datetime
) -> list[dict[str, Any]]:
    """The conditions as JSON, each with the transition time of `previous` unless its status has changed."""
    before = {condition.get("type"): condition for condition in previous}
    rendered = []
    for condition in conditions:
        old = before.get(condition.type, {})
        unchanged = old.get("status") == condition.status and "lastTransitionTime" in old
        rendered.append(
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": shorten(condition.message, MAX_MESSAGE_LENGTH),
                "lastTransitionTime": old["lastTransitionTime"] if unchanged else format_time(now),
                "observedGeneration": generation,
            }
        )
    return rendered


def shorten(text: str, limit: int) -> str:
    """The text, cut in its middle to at most `limit` characters: what ran stands first, what failed last."""
    if len(text) <= limit:
        return text
    head = limit // 3
    return f"{text[:head]} ... {text[len(text) - (limit - head - 5) :]}"
