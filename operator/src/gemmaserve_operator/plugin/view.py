"""Reports as a terminal shows them, and as a file or a pipe gets them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gemmaserve_operator.plugin.history import Past
from gemmaserve_operator.plugin.report import Gate, Report, Tone, age

_STYLES: Final[dict[Tone, str]] = {"good": "green", "busy": "yellow", "bad": "bold red", "plain": ""}
_MARKS: Final[dict[Tone, str]] = {"good": "✔", "busy": "…", "bad": "✘", "plain": " "}


def show_report(report: Report) -> RenderableType:
    """One GemmaServe: phase, revisions, gates, pods, and what it waits for."""
    head = Text.assemble((report.name, "bold"), f" in {report.namespace}: ", (report.phase, _STYLES[report.tone]))
    parts: list[RenderableType] = [head]
    if report.url:
        parts.append(Text(f"  {report.url}"))
    parts += [Text(), _sentence("Waits for", report.waits_for, "busy", "nothing")]
    if report.trouble and report.trouble != report.waits_for:
        parts.append(_sentence("Trouble", report.trouble, "bad", ""))
    parts.append(Text())
    if report.revisions:
        lines = ((line.role, line.name, line.pods, line.image) for line in report.revisions)
        parts += [_table(("REVISION", "NAME", "PODS", "IMAGE"), lines), Text()]
    if report.gates:
        parts += [_table(("GATE", "STATE", "DETAILS"), (_gate_row(gate) for gate in report.gates)), Text()]
    if report.pods:
        rows = (
            (pod.name, pod.role, Text(pod.state, _STYLES[pod.tone]), pod.restarts, pod.node, pod.age)
            for pod in report.pods
        )
        parts.append(_table(("POD", "ROLE", "STATE", "RESTARTS", "NODE", "AGE"), rows))
    return Group(*parts)


def show_reports(reports: Sequence[Report], *, with_namespace: bool) -> RenderableType:
    """Many GemmaServes, a line each."""
    head = (("NAMESPACE",) if with_namespace else ()) + ("NAME", "PHASE", "REPLICAS", "WAITS FOR")
    rows = (
        (
            *((report.namespace,) if with_namespace else ()),
            report.name,
            Text(report.phase, _STYLES[report.tone]),
            report.replicas,
            line_of(report),
        )
        for report in reports
    )
    return _table(head, rows)


def line_of(report: Report) -> str:
    """What it waits for, or what is wrong, in a line."""
    said = report.waits_for or report.trouble
    return f"{said[0]}: {said[1]}" if said else "nothing"


def show_history(past: Iterable[Past], now: datetime) -> RenderableType:
    """Past revisions, a line each, newest first."""
    rows = (
        (
            entry.revision,
            entry.outcome,
            entry.reason,
            entry.verified,
            age(entry.started, now),
            age(entry.finished, now),
            "yes" if entry.restorable else "no",
            entry.image,
        )
        for entry in past
    )
    return _table(("REVISION", "OUTCOME", "REASON", "VERIFIED", "STARTED", "ENDED", "UNDO", "IMAGE"), rows)


def _sentence(title: str, said: tuple[str, str] | None, tone: Tone, nothing: str) -> Text:
    if said is None:
        return Text.assemble(f"{title}: ", nothing)
    return Text.assemble(f"{title}: ", (said[0], _STYLES[tone]), f": {said[1]}")


def _gate_row(gate: Gate) -> tuple[str, Text, str]:
    return gate.name, Text(f"{_MARKS[gate.tone]} {gate.state}", _STYLES[gate.tone]), gate.details


def _table(head: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    table = Table(*head, box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table
