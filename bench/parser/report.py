"""The figures as a table and a plot, and their place in docs/performance.md."""

from __future__ import annotations

import math
import os
import re
import time
from pathlib import Path

from scenarios import LENGTHS, SIZES

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "performance.md"
PLOT = DOCS / "parser-speed.svg"
BEGIN, END = "<!-- parser:begin -->", "<!-- parser:end -->"
_NAMES = {
    "argument": "one call, argument of {}",
    "calls": "{} of 200 characters",
    "content": "content of {}, no call",
    "reasoning": "reasoning of {}",
}
_HARMONY = {
    "harmony argument": "one call, argument of {}",
    "harmony calls": "{} of 200 characters",
    "harmony content": "content of {}, no call",
}


def line(row):
    """A row for the terminal."""
    cells = [f"{row['kind']:16} {row['amount']:8} deltas of {row['size']:2}"]
    for who in ("core", "ours", "vllm", "floor"):
        if who in row:
            cells.append(f"{who} {row[who]['us']:7.2f} us")
            if "kept" in row[who]:
                cells.append(f"{row[who]['kept']:5.0f} B kept {row[who]['at_most']:6.0f} B at most")
    if "vllm" in row:
        cells.append(f"{row['vllm']['us'] / row['ours']['us']:5.1f} x")
    return "  ".join(cells)


def write(results):
    """Put the section between its markers, and draw the plot."""
    page = PAGE.read_text(encoding="utf-8")
    if BEGIN not in page or END not in page:
        raise ValueError(f"{PAGE} has no {BEGIN} and {END}: put them where the section belongs")
    before, rest = page.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{section(results)}\n{END}{after}", encoding="utf-8")
    PLOT.write_text(plot(results), encoding="utf-8")


def section(results):
    """Everything between the markers."""
    rows = results["rows"]
    by_cell = {(row["kind"], row["amount"], row["size"]): row for row in rows if "vllm" in row}
    floor = next(row["floor"]["us"] for row in rows if "floor" in row)
    beginning, passing = results["beginning_us"], results["passing_on_us"]
    return "\n".join(
        [
            _machine(results),
            "",
            f"How many times as much a delta costs vLLM {results['vllm']}'s parser (microseconds, ours / theirs):",
            "",
            "| model output | " + " | ".join(_deltas(size) for size in SIZES) + " |",
            "|---|" + "---|" * len(SIZES),
            *(_times(kind, amount, by_cell) for kind, amount in _rows(by_cell, _NAMES)),
            "",
            f"![Microseconds a delta by the length of the argument]({PLOT.name})",
            "",
            "Deltas of 4 characters, ours / theirs: the deltas that close the call, and the bytes that a delta",
            "leaves allocated, and those that it has allocated at most while it is read:",
            "",
            "| model output | closing the call, ms | bytes left a delta | bytes at most |",
            "|---|---|---|---|",
            *(
                _allocations(kind, amount, by_cell[kind, amount, 4])
                for kind, amount in _rows(by_cell, _NAMES)
                if kind != "reasoning"
            ),
            "",
            "gpt-oss, a token a delta, the same way:",
            "",
            "| model output | a delta |",
            "|---|---|",
            *(_times(kind, amount, by_cell, sizes=(1,)) for kind, amount in _rows(by_cell, _HARMONY)),
            "",
            f"- The least that a delta of content costs is vLLM's message for it, {floor:.1f} us: both sides make one.",
            f"- A request begins once, with a new parser and its first delta: {beginning['ours']:.0f} us, vLLM's "
            f"{beginning['vllm']:.0f} us.",
            f"- An engine's output passes through us on its way to the server, to learn how an answer ended: "
            f"{passing['ours'] - passing['vllm']:.1f} us more a step.",
            f"- Importing the core takes {results['import_ms']:.0f} ms in a new interpreter; in vLLM's process less, "
            "because most of that is Python's own `typing` and `re`.",
        ]
    )


def _rows(by_cell, names):
    return sorted(
        {(kind, amount) for kind, amount, _ in by_cell if kind in names}, key=lambda each: _order(each, names)
    )


def _order(row, names):
    return [*names].index(row[0]), row[1]


def _name(kind, amount):
    form = {**_NAMES, **_HARMONY}[kind]
    if kind.endswith("calls"):
        return form.format(f"{amount} call{'s' if amount > 1 else ''}, argument{'s' if amount > 1 else ''}")
    return form.format(_kilobytes(amount))


def _kilobytes(characters):
    return f"{characters // 1024} KB" if characters < 1 << 20 else f"{characters >> 20} MB"


def _deltas(size):
    return f"deltas of {size} character{'s' if size > 1 else ''}"


def _times(kind, amount, by_cell, *, sizes=SIZES):
    cells = [_name(kind, amount)]
    for size in sizes:
        row = by_cell[kind, amount, size]
        ours, theirs = row["ours"]["us"], row["vllm"]["us"]
        cells.append(f"**{theirs / ours:.1f} x** ({ours:.2f} / {theirs:.1f})")
    return "| " + " | ".join(cells) + " |"


def _allocations(kind, amount, row):
    ours, theirs = row["ours"], row["vllm"]
    closing = "-" if kind != "argument" else f"{ours['closing_ms']:.2f} / {theirs['closing_ms']:.1f}"
    kept, most = (f"{ours[what]:.0f} / {theirs[what]:.0f}" for what in ("kept", "at_most"))
    return f"| {_name(kind, amount)} | {closing} | {kept} | {most} |"


def _machine(results):
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return (
        f"Measured {time.strftime('%Y-%m-%d')} on {os.cpu_count()} cores of {cpu[1] if cpu else 'an unknown kind'}, "
        f"Python {results['python']}; load average at the end {results['load']:.0f}."
    )


# The plot: both axes logarithmic, a line a parser and a size of deltas.

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 390, 60, 170, 34, 340
_STYLE = """
text { font: 13px sans-serif; fill: #333 } .grid { stroke: #ddd } .ours { stroke: #0969da } .vllm { stroke: #c2410c }
.name.ours { fill: #0969da; stroke: none } .name.vllm { fill: #c2410c; stroke: none }
path { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #ccc } .grid { stroke: #444 } .ours { stroke: #58a6ff }
.vllm { stroke: #fb923c } .name.ours { fill: #58a6ff } .name.vllm { fill: #fb923c } }
"""


def plot(results):
    """Microseconds a delta by the length of one argument."""
    series = {}
    for row in results["rows"]:
        if row["kind"] == "argument" and "vllm" in row:
            for who in ("ours", "vllm"):
                series.setdefault((who, row["size"]), []).append((row["amount"], row[who]["us"]))
    values = [us for points in series.values() for _, us in points]
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))

    def x(length):
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(length / LENGTHS[0]) / math.log(LENGTHS[-1] / LENGTHS[0])

    def y(us):
        return _BOTTOM - (_BOTTOM - _TOP) * math.log(us / low) / math.log(high / low)

    shapes = ['<text x="4" y="14">microseconds a delta</text>']
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        at = y(10.0**power)
        shapes.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        shapes.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    shapes += [
        f'<text x="{x(length):.1f}" y="{_BOTTOM + 22}" text-anchor="middle">{_kilobytes(length)}</text>'
        for length in LENGTHS
    ]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    shapes.append(f'<text x="{middle}" y="{_BOTTOM + 44}" text-anchor="middle">length of the argument</text>')
    labels = _apart({key: y(points[-1][1]) for key, points in series.items()})
    for (who, size), points in series.items():
        path = " L".join(f"{x(length):.1f},{y(us):.1f}" for length, us in points)
        shapes.append(f'<path class="{who}" d="M{path}"/>')
        name = f"{'ours' if who == 'ours' else 'vLLM ' + results['vllm']}, {size} char{'s' if size > 1 else ''}"
        shapes.append(
            f'<text class="name {who}" x="{_WIDTH - _RIGHT + 8}" y="{labels[who, size] + 4:.1f}">{name}</text>'
        )
    title = "Microseconds a delta by the length of the argument, both axes logarithmic"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"><title>{title}</title>'
        f"<style>{_STYLE}</style>\n" + "\n".join(shapes) + "\n</svg>\n"
    )


def _apart(heights, *, least=15):
    """The heights of labels, moved down where they would touch the one above."""
    moved, last = {}, -math.inf
    for key, height in sorted(heights.items(), key=lambda each: each[1]):
        last = moved[key] = max(height, last + least)
    return moved
