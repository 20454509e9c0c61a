"""The command `toolstream load`."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolstream.cli.app import (
    NOT_RUN,
    ApiKey,
    AsJson,
    EndpointName,
    ExtraBody,
    MaxSeconds,
    Model,
    Timeout,
    Url,
    err,
    extra_fields,
    give_up,
    out,
    print_json,
    progress,
    run,
    say_extra,
    server_of,
    utc_now,
    write,
)
from toolstream.cli.tables import load_table
from toolstream.commands.load import Failure, LoadPlan, LoadResult, run_load
from toolstream.core.cases import CaseSource
from toolstream.core.exchange import PATHS
from toolstream.core.levels import OK
from toolstream.core.loadreport import LoadFacts, load_html, load_json
from toolstream.core.redact import redact_case
from toolstream.core.scenarios import THREE_PARALLEL, ExpectedCall
from toolstream.edges.client import Client, Server
from toolstream.edges.descriptors import allow_streams
from toolstream.edges.keeping import CASES, append_case, observe_case, write_body
from toolstream.edges.pool import Stop
from toolstream.edges.probe import ServerFacts, observe_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.progress import Progress, TaskID

    from toolstream.core.levels import Level

_KEEP_SECONDS = 120.0
_MOST_AT_A_TIME = 5000


class Mode(Enum):
    """Which requests stream."""

    stream = "stream"
    whole = "whole"
    both = "both"


_MODES = {Mode.stream: (True,), Mode.whole: (False,), Mode.both: (True, False)}


def load(
    url: Url,
    concurrency: Annotated[
        str, typer.Option("--concurrency", "-c", metavar="LIST", help="Requests at a time, one level after the other.")
    ] = "10,100",
    requests: Annotated[int, typer.Option("--requests", "-n", min=1, max=1_000_000, help="Requests a level.")] = 100,
    mode: Annotated[Mode, typer.Option(help="Streams, whole answers, or one and the other in turn.")] = Mode.stream,
    endpoint: Annotated[EndpointName, typer.Option(help="Whose protocol to speak.")] = EndpointName.chat,
    model: Model = None,
    api_key: ApiKey = None,
    request: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A request's JSON in place of the built-in one, which wants three calls."),
    ] = None,
    expect: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='The right calls, as JSON: [{"name": ..., "arguments": {...}}, ...].'),
    ] = None,
    any_calls: Annotated[
        bool, typer.Option("--any-calls", help="Do not compare the calls with those the built-in request asks for.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep failed answers, and cases for gemmaserve-parser replay, in DIR."),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report with plots.")] = None,
    extra_body: ExtraBody = "{}",
    timeout: Timeout = 120,
    max_seconds: MaxSeconds = 1800,
    as_json: AsJson = False,
) -> None:
    """Send many requests at once and classify each answer.

    Ctrl-C ends it with what there is. Exit code 0: every answer is ok. 1: some are not. 2: it could not be run.
    """
    server = server_of(url, api_key)
    body = _json_file(request, dict) if request else None
    plan = LoadPlan(
        levels=_levels(concurrency),
        requests=requests,
        modes=_MODES[mode],
        endpoint=next(each for each in PATHS if each == endpoint.value),
        body=body,
        expected=_expected(expect, built_in=body is None and not any_calls),
        extra=extra_fields(extra_body),
    )
    session = _Session(server, model, plan, timeout, keep)
    result = run(session.load(max_seconds))
    facts = LoadFacts(url, session.facts.model, plan.extra, session.stop.reason)
    if html:
        write(html, load_html(result.levels, facts, made=utc_now()))
    if as_json:
        print_json(load_json(result.levels, facts))
    else:
        out.print(load_table(result.levels))
        say_extra(plan.extra)
    _say_files(html, keep, result)
    if facts.stopped:
        err.print(f"ended early: {facts.stopped}")
    if not any(level.done for level in result.levels):
        raise typer.Exit(NOT_RUN)
    raise typer.Exit(int(any(level.done != level.outcomes[OK] for level in result.levels)))


class _Session:
    """One load against one server."""

    def __init__(self, server: Server, model: str | None, plan: LoadPlan, timeout: float, keep: Path | None) -> None:
        self._server = server
        self._model = model
        self._plan = plan
        self._timeout = timeout
        self._keep = keep
        self.stop: Stop
        self.facts = ServerFacts(model or "", "")

    async def load(self, max_seconds: float) -> LoadResult:
        """Run it with a progress bar, then keep what failed.

        Raises:
            Unreachable: The server names no model.
            TooFewDescriptors: The system allows too few connections.
        """
        allow_streams(max(self._plan.levels))
        if self._keep:
            self._keep.mkdir(parents=True, exist_ok=True)
        self.stop = Stop()
        async with Client(self._server, timeout=self._timeout) as client:
            with self.stop.on_signals_or_after(max_seconds), progress() as bar:
                self.facts = await observe_server(client, self._server.url, model=self._model)
                shown = _Shown(bar)
                plan = replace(self._plan, token_ids=bool(self._keep and self.facts.vllm_version))
                result = await run_load(client, self.facts.model, plan, stop=self.stop, seen=shown.update)
            if self._keep:
                await self._keep_failures(client, self._keep, result.failures)
        return result

    async def _keep_failures(self, client: Client, directory: Path, failures: Sequence[Failure]) -> None:
        """Write each failed answer and its case; a second Ctrl-C, or two minutes, end it."""
        stop = Stop()
        with stop.on_signals_or_after(_KEEP_SECONDS), progress() as bar:
            for failure in bar.track(failures, description="keeping"):
                if stop.is_set:
                    break
                write_body(directory / f"{failure.name}.txt", failure.answer)
                if failure.answer.calls or failure.answer.text or any(failure.answer.token_ids):
                    title = f"load: {failure.classified.outcome} {failure.classified.detail}".strip()
                    source = CaseSource(failure.answer, failure.request, failure.name, title, self._plan.expected)
                    case = await observe_case(client, source)
                    if case is not None:
                        append_case(directory / CASES, redact_case(case))


class _Shown:
    """A bar a level."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._tasks: dict[int, TaskID] = {}

    def update(self, level: Level) -> None:
        if id(level) not in self._tasks:
            self._tasks[id(level)] = self._bar.add_task("", total=level.planned)
        right = level.outcomes[OK]
        words = f"{level.concurrency} at a time: {right} ok, {level.done - right} not, {level.per_second:.1f}/s"
        self._bar.update(self._tasks[id(level)], completed=level.done, description=words)


def _say_files(html: Path | None, keep: Path | None, result: LoadResult) -> None:
    if html:
        err.print(f"report: {html}")
    if keep and (keep / CASES).exists():
        err.print(f"{len(result.failures)} failed answers in {keep}; replay: gemmaserve-parser replay {keep / CASES}")


def _levels(text: str) -> list[int]:
    try:
        levels = [int(part) for part in text.split(",")]
    except ValueError:
        levels = [0]
    if not all(1 <= level <= _MOST_AT_A_TIME for level in levels):
        raise typer.BadParameter(
            f"{text!r} is not a list of numbers from 1 to {_MOST_AT_A_TIME} like 10,100,500", param_hint="--concurrency"
        )
    return levels


def _expected(path: Path | None, *, built_in: bool) -> Sequence[ExpectedCall] | None:
    if path is None:
        return THREE_PARALLEL.expected if built_in else None
    try:
        return [ExpectedCall(str(call["name"]), dict(call["arguments"])) for call in _json_file(path, list)]
    except (TypeError, KeyError, ValueError):
        give_up(f'{path} is not a list like [{{"name": "read_file", "arguments": {{"path": "a.txt"}}}}]')


def _json_file(path: Path, kind: type) -> Any:  # noqa: ANN401  (JSON of the user's)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        give_up(f"cannot read {path}: {error}")
    if not isinstance(value, kind):
        give_up(f"{path} is not a JSON {'object' if kind is dict else 'array'}")
    return value
