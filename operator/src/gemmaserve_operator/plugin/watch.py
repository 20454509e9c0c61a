"""Going on looking: a view that is redrawn in a terminal, a line for each change anywhere else."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from gemmaserve_operator.plugin.kubectl import KubectlError
from gemmaserve_operator.plugin.report import Report
from gemmaserve_operator.plugin.view import line_of

REFRESH_SECONDS: Final = 1.0

Look = Callable[[], Sequence[Report]]
Show = Callable[[Sequence[Report]], RenderableType]
Pause = Callable[[], None]
"""Waits until it is time to look again; tests end a watch by raising from it."""


def pause() -> None:
    """Wait a moment."""
    time.sleep(REFRESH_SECONDS)


def watch_screen(out: Console, look: Look, show: Show, wait: Pause = pause) -> None:
    """Redraw for ever. Once there was something to show, trouble is shown below it and does not end the watch.

    Raises:
        KubectlError: The very first look fails.
    """
    shown = show(look())
    with Live(shown, console=out, auto_refresh=False, vertical_overflow="visible") as live:
        while True:
            live.refresh()
            wait()
            try:
                shown = show(look())
            except KubectlError as error:
                note = Text(f"\n{error}\nThe above is what was seen last; trying again", "bold red")
                live.update(Group(shown, note))
            else:
                live.update(shown)


def watch_lines(out: Console, look: Look, wait: Pause = pause) -> None:
    """Print a line for each change, for ever.

    Raises:
        KubectlError: The very first look fails.
    """
    told: dict[str, str] = {}
    lines = _lines(look)
    while True:
        for about, line in lines.items():
            if told.get(about) != line:
                told[about] = line
                out.print(f"{datetime.now(UTC):%H:%M:%S} {line}", markup=False)
        wait()
        try:
            lines = _lines(look)
        except KubectlError as error:
            lines = {"kubectl": str(error).replace("\n", "; ")}


def _lines(look: Look) -> dict[str, str]:
    return {
        f"{report.namespace}/{report.name}": f"{report.namespace}/{report.name} {report.phase}: {line_of(report)}"
        for report in look()
    }
