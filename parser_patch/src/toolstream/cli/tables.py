"""Results for people, as rich tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from toolstream.core.levels import OK, Level, percentiles
from toolstream.core.outcomes import CLASSES, MEANINGS, OutcomeClass
from toolstream.core.rules import MUST
from toolstream.core.verdicts import FAILED, INCONCLUSIVE, PASSED, Judged, RuleTally, tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from toolstream.commands.selftest import Selftest
    from toolstream.core.rules import Profile

_STYLES = {PASSED: "green", FAILED: "bold red", INCONCLUSIVE: "yellow"}
_SHOWN_BREACHES = 2


def check_table(judged: Sequence[Judged], profiles: Sequence[Profile]) -> RenderableType:
    """Rules with their outcomes, then each rule that failed with its chunks and what breaks for whom."""
    rows = tally(judged)
    table = Table("rule", "severity", "outcome", "passed", "failed", "no call", title="Rules")
    for row in rows:
        outcome = Text(row.outcome, style=_STYLES[row.outcome])
        table.add_row(row.rule.name, row.severity, outcome, str(row.passed), str(row.failed), str(row.inconclusive))
    failed = [_failed(row, profiles) for row in rows if row.outcome == FAILED]
    return Group(table, *failed, *_notes(judged), _verdict_line(judged, rows))


def _failed(row: RuleTally, profiles: Sequence[Profile]) -> Text:
    text = Text(f"\n{row.rule.name} ({row.severity})\n", style="bold")
    by_words: dict[str, list[str]] = {}
    for profile, words in row.rule.breaks.items():
        if profile in profiles:
            by_words.setdefault(words, []).append(profile)
    for words, names in by_words.items():
        text.append(f"  {', '.join(names)}: {words}\n", style="not bold")
    for breach in row.breaches[:_SHOWN_BREACHES]:
        where = "end of the answer" if breach.chunk is None else f"chunk {breach.chunk}"
        text.append(f"  {breach.question}, {where}: {breach.detail}\n", style="not bold")
        if breach.quote:
            text.append(f"    {' '.join(breach.quote.split())}\n", style="not bold dim")
    return text


def _notes(judged: Sequence[Judged]) -> list[Text]:
    notes: dict[str, int] = {}
    for each in judged:
        if each.note:
            notes[each.note] = notes.get(each.note, 0) + 1
    return [
        Text(f"{note}: {count} of {len(judged)} requests, inconclusive", style="yellow")
        for note, count in notes.items()
    ]


def _verdict_line(judged: Sequence[Judged], rows: Sequence[RuleTally]) -> Text:
    musts = [row.rule.name for row in rows if row.severity == MUST and row.outcome == FAILED]
    count = {outcome: sum(each.outcome == outcome for each in judged) for outcome in _STYLES}
    requests = f"{count[PASSED]} of {len(judged)} requests passed, {count[INCONCLUSIVE]} inconclusive"
    if musts:
        return Text(f"FAILED: {len(musts)} must-rules broken ({', '.join(musts)}); {requests}", style="bold red")
    return Text(f"no must-rule broken; {requests}", style="bold green")


def load_table(levels: Sequence[Level]) -> RenderableType:
    """Levels with their figures, then every class that was seen."""
    table = Table(
        "at a time", "answers", "ok", "req/s", "first chunk p50, p99", "whole p50, p99", title="Load (seconds)"
    )
    for level in levels:
        table.add_row(
            str(level.concurrency),
            f"{level.done} of {level.planned}",
            str(level.outcomes[OK]),
            f"{level.per_second:.1f}",
            _seconds(level.first_chunk),
            _seconds(level.total),
        )
    seen = [each for each in CLASSES if any(level.faults[each] for level in levels)]
    if not seen:
        return table
    classes = Table(title="Outcomes by requests at a time (+n: answers of a graver class that this fits, too)")
    classes.add_column("class", no_wrap=True)
    for level in levels:
        classes.add_column(str(level.concurrency), no_wrap=True)
    classes.add_column("means")
    for each in seen:
        classes.add_row(each, *(_count(level, each) for level in levels), MEANINGS[each])
    return Group(table, classes)


def _count(level: Level, each: OutcomeClass) -> str:
    gravest = level.outcomes[each]
    also = level.faults[each] - gravest
    return f"{gravest} (+{also})" if also else str(gravest)


def _seconds(values: Sequence[float]) -> str:
    figures = percentiles(values)
    if figures["p50"] is None:
        return "-"
    return f"{figures['p50']:.3f}, {figures['p99']:.3f}"


def selftest_table(result: Selftest) -> RenderableType:
    """The client's ceiling."""
    table = Table("what", "figure", title="This client on this machine")
    table.add_row("streams open at one time", f"{result.streams}, {result.whole} whole")
    table.add_row("their time", f"{result.seconds:.1f} s, {result.cpu_seconds:.1f} s of it on the CPU")
    table.add_row("ceiling, answers of 50 chunks", f"{result.requests_per_second:.0f} requests/s")
    table.add_row("the same, with a core to itself", f"{result.requests_per_cpu_second:.0f} requests/s")
    table.add_row("ceiling, chunks", f"{result.chunks_per_second:.0f} chunks/s")
    return table
