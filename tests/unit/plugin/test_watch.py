"""Going on looking."""

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console

from gemmaserve_operator.plugin.kubectl import KubectlError
from gemmaserve_operator.plugin.report import build_report
from gemmaserve_operator.plugin.view import show_report
from gemmaserve_operator.plugin.watch import watch_lines, watch_screen


@pytest.fixture
def report(kubectl):
    return build_report(kubectl.get("gemma4"), (), datetime.now(UTC))


@pytest.fixture
def watch(report):
    """What is written while looks give these things one after the other; an exception is raised."""

    def run(how, *looks, terminal):
        left = list(looks)

        def look():
            found = left.pop(0)
            if isinstance(found, Exception):
                raise found
            return [found]

        def wait():
            if not left:
                raise KeyboardInterrupt

        out = Console(file=io.StringIO(), force_terminal=terminal, width=200)
        with pytest.raises(KeyboardInterrupt):
            how(out, look, wait)
        return out.file.getvalue()

    return run


def test_a_line_for_each_change(watch, report):
    changed = replace(report, phase="RollingOut", waits_for=("StartingPods", "0 of 1"))
    lines = watch(watch_lines, report, report, changed, changed, terminal=False).splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines] == [
        "team/gemma4 Serving: nothing",
        "team/gemma4 RollingOut: StartingPods: 0 of 1",
    ]


def test_trouble_is_a_line_too_and_the_watch_goes_on(watch, report):
    changed = replace(report, phase="RollingOut")
    lines = watch(watch_lines, report, KubectlError("refused"), changed, terminal=False).splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines][1] == "refused"
    assert len(lines) == 3


def test_the_screen_shows_the_latest_and_trouble_below_what_was_seen_last(watch, report):
    def on_screen(out, look, wait):
        watch_screen(out, look, lambda reports: show_report(reports[0]), wait)

    shown = watch(on_screen, report, replace(report, phase="RollingOut"), KubectlError("refused"), terminal=True)
    assert "RollingOut" in shown
    assert "seen last; trying again" in shown


def test_a_first_look_that_fails_is_the_end(report):
    def look():
        raise KubectlError("no cluster")

    for how in (watch_lines, lambda out, look: watch_screen(out, look, show_report)):
        with pytest.raises(KubectlError):
            how(Console(file=io.StringIO()), look)
