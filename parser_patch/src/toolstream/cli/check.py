"""The command `toolstream check`."""

from __future__ import annotations

import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolstream.cli.app import (
    NOT_RUN,
    ApiKey,
    AsJson,
    EndpointName,
    ExtraBody,
    MaxSeconds,
    Model,
    ProfileName,
    Timeout,
    Url,
    err,
    extra_fields,
    out,
    print_json,
    progress,
    run,
    say_extra,
    server_of,
    utc_now,
    write,
)
from toolstream.cli.tables import check_table
from toolstream.commands.check import CheckPlan, gate_questions, run_check
from toolstream.core.checkreport import check_json, junit_xml
from toolstream.core.exchange import PATHS
from toolstream.core.gate import GateContext, gate_failures, gate_report
from toolstream.core.rules import PROFILES
from toolstream.core.scenarios import matrix
from toolstream.core.verdicts import Judged, fails
from toolstream.edges.client import Client, Server
from toolstream.edges.pool import Stop
from toolstream.edges.probe import ServerFacts, Unreachable, observe_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolstream.core.exchange import Endpoint
    from toolstream.core.rules import Profile


def check(
    url: Url,
    model: Model = None,
    api_key: ApiKey = None,
    profile: Annotated[
        list[ProfileName] | None, typer.Option(help="Rules of these clients only; may be repeated.  [default: all]")
    ] = None,
    endpoint: Annotated[
        list[EndpointName] | None,
        typer.Option(help="These endpoints only; may be repeated.  [default: all; with --gate: chat]"),
    ] = None,
    expect_calls: Annotated[
        bool, typer.Option("--expect-calls", help="An answer without a tool call is a failure, not inconclusive.")
    ] = False,
    concurrency: Annotated[int, typer.Option("--concurrency", "-c", min=1, max=1000, help="Requests at a time.")] = 4,
    extra_body: ExtraBody = "{}",
    timeout: Timeout = 60,
    max_seconds: MaxSeconds = 600,
    as_json: AsJson = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML.")] = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="Judge a fixed number of requests; one JSON object into --report.")
    ] = False,
    requests: Annotated[int, typer.Option(min=1, max=10000, help="With --gate: how many requests.")] = 16,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --gate: where the summary goes, at most 4096 bytes.")
    ] = None,
    parser: Annotated[str, typer.Option(help="With --gate: the parser's name, for the summary.")] = "gemma4_atomic",
) -> None:
    """Ask a server each kind of question and judge each answer by the rules of real clients.

    Exit code 0: no must-rule is broken. 1: one is. 2: the server could not be asked.
    """
    server = server_of(url, api_key)
    profiles: Sequence[Profile] = [each for each in PROFILES if not profile or each in {one.value for one in profile}]
    endpoints: Sequence[Endpoint] = [each for each in PATHS if not endpoint or each in {one.value for one in endpoint}]
    questions = matrix(endpoints)
    if gate:
        questions = gate_questions(requests, endpoints) if endpoint else gate_questions(requests)
    extra = extra_fields(extra_body)
    if gate and extra:
        raise typer.BadParameter("the gate asks what clients ask, and nothing more", param_hint="--extra-body")
    plan = CheckPlan(questions, profiles, expect_calls=expect_calls, concurrency=concurrency, extra=extra)
    session = _Session(server, model, plan, timeout)
    if gate:
        raise typer.Exit(_gate(session, max_seconds, report, parser))
    started = time.perf_counter()
    judged = run(session.judge(max_seconds))
    if junit:
        write(junit, junit_xml(judged, seconds=time.perf_counter() - started))
    if as_json:
        print_json(check_json(judged, url=url, model=session.facts.model, extra=extra))
    else:
        out.print(check_table(judged, profiles))
        say_extra(extra)
    if session.stop_reason:
        err.print(f"ended early: {session.stop_reason}")
    if not judged:
        raise typer.Exit(NOT_RUN)
    raise typer.Exit(int(fails(judged)))


class _Session:
    """One run of questions against one server."""

    def __init__(self, server: Server, model: str | None, plan: CheckPlan, timeout: float) -> None:
        self._server = server
        self._model = model
        self._timeout = timeout
        self.plan = plan
        self.facts = ServerFacts(model or "", "")
        self.stop_reason = ""

    async def judge(self, max_seconds: float) -> list[Judged]:
        """Ask and judge, with a progress bar.

        Raises:
            Unreachable: The server names no model.
        """
        stop = Stop()
        async with Client(self._server, timeout=self._timeout) as client:
            with stop.on_signals_or_after(max_seconds), progress() as bar:
                self.facts = await observe_server(client, self._server.url, model=self._model)
                asking = bar.add_task("asking", total=len(self.plan.questions))
                judged = await run_check(
                    client, self.facts.model, self.plan, stop=stop, seen=lambda _: bar.advance(asking)
                )
        self.stop_reason = stop.reason
        return judged


def _gate(session: _Session, max_seconds: float, report: Path | None, parser: str) -> int:
    """Judge, report, and give the exit code."""
    questions = session.plan.questions
    started_at, judged, trouble = utc_now(), list[Judged](), ""
    try:
        judged = run(session.judge(max_seconds), reraise=Unreachable)
        if session.stop_reason:
            trouble = f"{len(judged)} of {len(questions)} requests judged: {session.stop_reason}"
    except Unreachable as error:
        trouble = str(error)
    context = GateContext(
        parser=parser,
        parser_version=version("gemmaserve-parser"),
        vllm_version=session.facts.vllm_version,
        started_at=started_at,
        finished_at=utc_now(),
        total=len(questions),
        trouble=trouble,
    )
    text = gate_report(judged, context)
    if report:
        write(report, text)
    out.print(text, markup=False, highlight=False, soft_wrap=True)
    if not judged:
        return NOT_RUN
    return 1 if gate_failures(judged, context) else 0
