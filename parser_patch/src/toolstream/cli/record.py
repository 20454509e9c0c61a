"""The command `toolstream proxy-record`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from toolstream.cli.app import ApiKey, MaxSeconds, Url, err, run, server_of
from toolstream.commands.record import Recorder, RecordPlan
from toolstream.edges.client import Client, Server
from toolstream.edges.keeping import CASES
from toolstream.edges.pool import Stop

_SPELLING_SECONDS = 30.0


def proxy_record(
    url: Url,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where clients connect.")] = "127.0.0.1:8081",
    out: Annotated[Path, typer.Option(metavar="FILE", help="Cases are added to this file.")] = Path(CASES),
    api_key: ApiKey = None,
    token_ids: Annotated[
        bool,
        typer.Option(help="Ask a vLLM server for token ids, so that cases hold the model's own words."),
    ] = True,
    max_cases: Annotated[int, typer.Option(min=1, help="After so many cases it only hands on.")] = 1000,
    max_seconds: MaxSeconds = 86400,
) -> None:
    """Stand between a client and a server, and write answers with tools as cases for gemmaserve-parser replay.

    Headers, messages and credentials are left out; tool schemas, the model's output and its calls are what a case
    is made of: look at them before you hand a case on. Ctrl-C ends it.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise typer.BadParameter(f"{listen!r} is not an address like 127.0.0.1:8081", param_hint="--listen")
    server = server_of(url, api_key)
    run(_record(server, (host.strip("[]"), int(port)), RecordPlan(out, token_ids, max_cases), max_seconds))


async def _record(server: Server, address: tuple[str, int], plan: RecordPlan, max_seconds: float) -> None:
    stop = Stop()
    async with Client(server, timeout=_SPELLING_SECONDS) as client:
        is_vllm = await client.get_json("/version") is not None
        plan = replace(plan, token_ids=plan.token_ids and is_vllm)
        recorder = Recorder(server, client, plan, lambda name, title: err.print(f"{name} {title}"))
        with stop.on_signals_or_after(max_seconds):
            async with recorder.serving(*address) as port:
                err.print(f"listening on {address[0]}:{port}, handing on to {server.url}, cases go to {plan.out}")
                await stop.wait()
    err.print(f"ended: {stop.reason}")
