"""The command `toolstream selftest`."""

from __future__ import annotations

from typing import Annotated

import typer

from toolstream.cli.app import AsJson, MaxSeconds, err, give_up, out, print_json, progress, run
from toolstream.cli.tables import selftest_table
from toolstream.commands.selftest import NoServer, Selftest, run_selftest
from toolstream.core.levels import Level
from toolstream.edges.descriptors import allow_streams
from toolstream.edges.pool import Stop


def selftest(
    streams: Annotated[int, typer.Option(min=1, max=5000, help="Streams to hold open at one time.")] = 1000,
    requests: Annotated[int, typer.Option("--requests", "-n", min=1, help="Requests for the ceiling.")] = 2000,
    max_seconds: MaxSeconds = 180,
    as_json: AsJson = False,
) -> None:
    """Measure this client on this machine, against a server of its own on 127.0.0.1.

    A load is to be trusted as long as it stays well below these figures. Exit code 0: every stream was held and came
    whole. 1: some were not. 2: it could not be run.
    """
    result, stopped = run(_measure(streams, requests, max_seconds))
    if as_json:
        print_json(result.as_json())
    else:
        out.print(selftest_table(result))
    if stopped:
        err.print(f"ended early: {stopped}")
    raise typer.Exit(int(bool(stopped) or result.whole != result.streams))


async def _measure(streams: int, requests: int, max_seconds: float) -> tuple[Selftest, str]:
    allow_streams(streams)
    stop = Stop()
    with stop.on_signals_or_after(max_seconds), progress() as bar:
        task = bar.add_task("measuring", total=streams + requests)

        def seen(level: Level) -> None:
            words = f"{level.concurrency} at a time, {level.per_second:.0f}/s"
            bar.update(task, total=level.planned, completed=level.done, description=words)

        try:
            return await run_selftest(streams, requests, stop=stop, seen=seen), stop.reason
        except NoServer as error:
            give_up(str(error))
