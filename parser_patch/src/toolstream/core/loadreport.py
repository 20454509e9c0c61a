"""A load's results as JSON and as one HTML file that needs nothing from anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from toolstream.core.levels import OK, PERCENTS, Level, percentiles
from toolstream.core.outcomes import CLASSES, MEANINGS
from toolstream.core.svg import legend, lines, stacked_bars

if TYPE_CHECKING:
    from collections.abc import Sequence

COLOURS: Mapping[str, str] = {
    "ok": "#2e9e5b",
    "http_error": "#7a1f1f",
    "timeout": "#b3402e",
    "disconnect": "#d9694a",
    "truncated": "#e8955e",
    "no_tool_calls": "#9a9a9a",
    "args_invalid_json": "#c2276b",
    "wrong_arguments": "#8e44ad",
    "wrong_index": "#5b4fc7",
    "id_changed": "#3b6fd1",
    "missing_id": "#2f93c4",
    "missing_name": "#2aa5a0",
    "missing_type": "#7fb069",
    "split_call": "#e0b13a",
    "content_and_call_in_one_chunk": "#a67c37",
}
"""A colour for each class, the same in every plot of every report."""

_LINES = {50: "#2e9e5b", 90: "#e0b13a", 95: "#e8955e", 99: "#c2276b"}

_STYLE = """
:root{color-scheme:light dark;--fg:#1d2329;--soft:#66707a;--bg:#fff;--line:#d9dee3}
@media(prefers-color-scheme:dark){:root{--fg:#e6e9ec;--soft:#9aa4ae;--bg:#14181c;--line:#333b43}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:60rem;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.5rem;margin-bottom:.2rem}h2{font-size:1.1rem;margin-top:2.2rem}p.soft{color:var(--soft);margin-top:0}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .7rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}td.words{text-align:left;white-space:normal}
svg{width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:var(--soft)}.grid{stroke:var(--line)}
.legend span{margin-right:1rem;white-space:nowrap}
.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.35em}
""".strip()


class LoadFacts(NamedTuple):
    """What was asked of whom.

    Attributes:
        url: The server's.
        model: What was asked for.
        extra: Fields that every request carried beside what is built in.
        stopped: Why it ended early; empty when it did not.
    """

    url: str
    model: str
    extra: Mapping[str, Any]
    stopped: str


def load_json(levels: Sequence[Level], facts: LoadFacts) -> dict[str, Any]:
    """For machines."""
    return {
        "url": facts.url,
        "model": facts.model,
        "extraBody": dict(facts.extra),
        "stopped": facts.stopped,
        "levels": [level.as_json() for level in levels],
    }


def load_html(levels: Sequence[Level], facts: LoadFacts, *, made: str) -> str:
    """One HTML document with tables and plots; `made` is when, in words."""
    done, right = sum(level.done for level in levels), sum(level.outcomes[OK] for level in levels)
    model = escape(facts.model)
    early = f" Ended early: {escape(facts.stopped)}." if facts.stopped else ""
    fields = escape(json.dumps(dict(facts.extra), ensure_ascii=False))
    carried = f" Each request carried also: {fields}." if facts.extra else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>toolstream load: {model}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{right} of {done} answers ok</h1>"
        f'<p class="soft">{model} at {escape(facts.url)}, {escape(made)}.{early}{carried}</p>'
        f"{_outcomes(levels)}{_latency(levels)}{_throughput(levels)}{_classes(levels)}</body></html>\n"
    )


def _outcomes(levels: Sequence[Level]) -> str:
    seen: dict[str, str] = {each: COLOURS[each] for each in CLASSES if any(level.outcomes[each] for level in levels)}
    rows = [(f"{level.concurrency} at a time", {each: level.outcomes[each] for each in CLASSES}) for level in levels]
    plot = stacked_bars(rows, seen, title="Outcomes by concurrency")
    return f"<h2>Outcomes</h2>{legend(seen)}{plot}{_table(levels)}"


def _table(levels: Sequence[Level]) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("concurrency", "answers", "ok", "requests/s", "seconds"))
    rows = "".join(
        f"<tr><td>{level.concurrency}</td><td>{level.done}</td><td>{level.outcomes[OK]}</td>"
        f"<td>{level.per_second:.1f}</td><td>{level.seconds:.1f}</td></tr>"
        for level in levels
    )
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _latency(levels: Sequence[Level]) -> str:
    parts = [
        _percentile_plot(
            "Seconds to the first chunk, by requests at a time", levels, [level.first_chunk for level in levels]
        ),
        _percentile_plot(
            "Seconds to the whole answer, by requests at a time", levels, [level.total for level in levels]
        ),
    ]
    return "".join(parts)


def _percentile_plot(title: str, levels: Sequence[Level], values: Sequence[Sequence[float]]) -> str:
    figures = [percentiles(each) for each in values]
    if not any(values):
        return ""
    series = {f"p{percent}": [each[f"p{percent}"] for each in figures] for percent in PERCENTS}
    colours = {f"p{percent}": _LINES[percent] for percent in PERCENTS}
    names = [str(level.concurrency) for level in levels]
    return f"<h2>{title}</h2>{legend(colours)}{lines(names, series, colours, title=title)}"


def _throughput(levels: Sequence[Level]) -> str:
    name = "requests a second"
    colours = {name: COLOURS["ok"]}
    series = {name: [round(level.per_second, 2) for level in levels]}
    names = [str(level.concurrency) for level in levels]
    heading = "Requests a second, by requests at a time"
    plot = lines(names, series, colours, title=heading)
    return f"<h2>{heading}</h2>{legend(colours)}{plot}"


def _classes(levels: Sequence[Level]) -> str:
    rows = []
    for each in CLASSES[1:]:
        counts = [level.faults[each] for level in levels]
        if any(counts):
            cells = "".join(f"<td>{count}</td>" for count in counts)
            examples = [detail for level in levels for detail in level.details.get(each, [])]
            words = escape(MEANINGS[each] + (f" ({examples[0]})" if examples else ""))
            rows.append(f'<tr><td>{each}</td>{cells}<td class="words">{words}</td></tr>')
    if not rows:
        return ""
    head = "".join(f"<th>{level.concurrency}</th>" for level in levels)
    return (
        "<h2>Every fault, gravest or not</h2><p class='soft'>An answer counts once above, and here under each class "
        f'that fits it.</p><div class="wide"><table><tr><th>class</th>{head}<th></th></tr>{"".join(rows)}</table></div>'
    )
