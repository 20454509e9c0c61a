"""Plots as inline SVG: no library, no network, readable in light and dark (colours come from the page's CSS)."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH = 720
_LEFT = 110
_ROW = 34
_BAR = 20
_HEIGHT = 220
_TICKS = 4


def stacked_bars(rows: Sequence[tuple[str, Mapping[Any, int]]], colours: Mapping[str, str], *, title: str) -> str:
    """A horizontal bar a row, its parts as shares of the row.

    Args:
        rows: The row's name, and its parts by name.
        colours: A CSS colour for each part, in the order in which they stand.
        title: For readers who cannot see it.
    """
    inner = _WIDTH - _LEFT - 20
    shapes: list[str] = []
    for number, (name, parts) in enumerate(rows):
        top, left, total = number * _ROW + 8, float(_LEFT), sum(parts.values()) or 1
        shapes.append(_text(_LEFT - 10, top + 15, name, anchor="end"))
        for part in (part for part in colours if parts.get(part)):
            width = parts[part] / total * inner
            label = f"{part}: {parts[part]} of {total}"
            shapes.append(
                f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}" fill="{colours[part]}">'
                f"<title>{escape(label)}</title></rect>"
            )
            left += width
    return _svg(len(rows) * _ROW + 10, shapes, title)


def lines(
    names: Sequence[str], series: Mapping[str, Sequence[float | None]], colours: Mapping[str, str], *, title: str
) -> str:
    """Lines over named steps, from zero.

    Args:
        names: The steps.
        series: A value a step by the line's name; None leaves a gap.
        colours: A CSS colour for each line.
        title: For readers who cannot see it.
    """
    top = _nice(max((value for values in series.values() for value in values if value is not None), default=1.0))
    bottom, inner = _HEIGHT - 30, _WIDTH - _LEFT - 40
    step = inner / max(len(names) - 1, 1)
    shapes: list[str] = []
    for tick in range(_TICKS + 1):
        y = bottom - tick / _TICKS * (bottom - 20)
        shapes.append(f'<line class="grid" x1="{_LEFT}" x2="{_LEFT + inner}" y1="{y:.1f}" y2="{y:.1f}"/>')
        shapes.append(_text(_LEFT - 10, y + 4, f"{top * tick / _TICKS:g}", anchor="end"))
    shapes += [_text(_LEFT + at * step, _HEIGHT - 8, name, anchor="middle") for at, name in enumerate(names)]
    for line, values in series.items():
        points = [
            (_LEFT + at * step, bottom - value / top * (bottom - 20), value)
            for at, value in enumerate(values)
            if value is not None
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{colours[line]}" stroke-width="2"/>')
        shapes += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colours[line]}">'
            f"<title>{escape(line)}: {value:g}</title></circle>"
            for x, y, value in points
        ]
    return _svg(_HEIGHT, shapes, title)


def legend(colours: Mapping[str, str]) -> str:
    """Names and colours, as HTML."""
    items = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>' for name, colour in colours.items()
    )
    return f'<div class="legend">{items}</div>'


def _nice(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten: an axis that ends on a round number."""
    power = 1.0
    while power < value:
        power *= 10
    while power / 10 >= value > 0:
        power /= 10
    return next((power * part for part in (0.2, 0.5) if power * part >= value), power)


def _text(x: float, y: float, text: str, *, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(height: float, shapes: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(shapes)}</svg>"
    )
