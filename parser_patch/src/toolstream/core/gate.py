"""The live gate's verdict, small enough for a Kubernetes termination message.

The shape is that of `gemmaserve-parser regressions --report`, with `inconclusive` beside `passed` and `failed`; they
count requests. `failures` name rules.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolstream.core.printable import printable
from toolstream.core.rules import MUST
from toolstream.core.verdicts import FAILED, INCONCLUSIVE, PASSED, RuleTally, tally

if TYPE_CHECKING:
    from toolstream.core.verdicts import Judged

REPORT_LIMIT = 4096
"""Bytes: what the kubelet keeps of a termination message."""

FAILURES_LIMIT = 5
CALL_SEEN = "call-seen"
_MESSAGE_LIMITS = (500, 200, 80, 0)


@dataclass(frozen=True)
class GateContext:
    """What the gate says of its surroundings.

    Attributes:
        parser: The parser that the server was started with, as the caller knows it.
        parser_version: Of this distribution, which the gate's image shares with the server's.
        vllm_version: As the server says.
        started_at: RFC 3339, UTC.
        finished_at: RFC 3339, UTC.
        total: Requests that were planned.
        trouble: Why it ended before its time or did not begin; empty for neither.
    """

    parser: str
    parser_version: str
    vllm_version: str
    started_at: str
    finished_at: str
    total: int
    trouble: str = ""


def gate_failures(judged: Sequence[Judged], context: GateContext) -> list[dict[str, str]]:
    """Every reason to hold a candidate back; none lets it pass.

    A gate that saw no tool call has shown nothing, so that is a reason, too.
    """
    found = [{"name": "unfinished", "message": printable(context.trouble)}] if context.trouble else []
    found += [
        {"name": row.rule.name, "message": _message(row)}
        for row in tally(judged)
        if row.severity == MUST and row.outcome == FAILED
    ]
    if not found and not any(_saw_call(each) for each in judged):
        notes = "; ".join(dict.fromkeys(each.note for each in judged if each.note)) or "nothing came"
        found.append({"name": CALL_SEEN, "message": f"nothing could be judged in {len(judged)} answers: {notes}"})
    return found


def gate_report(judged: Sequence[Judged], context: GateContext) -> str:
    """The report's JSON, at most `REPORT_LIMIT` bytes: messages are shortened until it fits."""
    failures = gate_failures(judged, context)
    count = {outcome: sum(each.outcome == outcome for each in judged) for outcome in (PASSED, FAILED, INCONCLUSIVE)}
    report: dict[str, Any] = {
        "parser": printable(context.parser[:100]),
        "parserVersion": context.parser_version,
        "vllmVersion": printable(context.vllm_version[:100]),
        "passed": count[PASSED],
        "failed": count[FAILED],
        "inconclusive": count[INCONCLUSIVE],
        "total": context.total,
        "startedAt": context.started_at,
        "finishedAt": context.finished_at,
    }
    for limit in _MESSAGE_LIMITS:
        shown = [{"name": each["name"], "message": each["message"][:limit]} for each in failures[:FAILURES_LIMIT]]
        text = json.dumps({**report, "failures": shown}, ensure_ascii=False)
        if len(text.encode()) <= REPORT_LIMIT:
            break
    return text


def _message(row: RuleTally) -> str:
    first = row.breaches[0]
    return f"{first.question}: {first.detail} ({row.failed} of {row.failed + row.passed}): {first.quote}"


def _saw_call(judged: Judged) -> bool:
    return judged.question.calls_are_due and any(
        verdict.rule.needs_call and verdict.outcome != INCONCLUSIVE for verdict in judged.verdicts
    )
