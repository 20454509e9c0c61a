"""Runs the sessions of one client against a server, and says what of each its user could not use."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import opencode
import scenarios
from installs import Clients

HERE = Path(__file__).parent
CLIENT_SECONDS = 600

PYTHON_CLIENTS = ("openai-chat", "openai-chat-helper", "openai-responses", "anthropic-messages")
AI_SDK = {f"ai-sdk-{version}": version for version in ("0.2", "1", "2", "3")}
OPENCODE = "opencode"
FINISHED = {"tool_calls", "tool-calls", "tool_use", "completed"}
"""What the clients call an answer that ends with tool calls."""
CUT = {"length", "max_tokens", "incomplete"}
"""What they call one that the limit of tokens ended."""

Outcome = Mapping[str, Any]


def run(client: str, clients: Clients, url: str, folder: Path) -> dict[scenarios.Scenario, Outcome]:
    """What the user of `client` gets of each scenario: `text`, `calls`, `finish`, `answer` and `error`.

    Args:
        client: One of `PYTHON_CLIENTS` or `AI_SDK`, or opencode.
        clients: Where they are installed.
        url: The server, without `/v1`.
        folder: An empty one, for a client that works in a project.

    Raises:
        RuntimeError: the driver itself failed, or the time was up: that says nothing of the server.
    """
    if client == OPENCODE:
        return {scenarios.THREE_FILES: opencode.run(clients.opencode, url, scenarios.THREE_FILES, folder)}
    driver = [str(clients.python), str(HERE / "drivers" / "python_clients.py"), client]
    if client in AI_SDK:
        driver = [str(clients.node), str(HERE / "drivers" / "ai_sdk.mjs"), AI_SDK[client]]
    asked = json.dumps([{**asdict(each), "tools": scenarios.TOOLS} for each in scenarios.SCENARIOS])
    try:
        done = subprocess.run(
            [*driver, url],
            input=asked,
            cwd=clients.modules,
            capture_output=True,
            text=True,
            timeout=CLIENT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{client}: no end within {CLIENT_SECONDS} s; is the machine busy?") from error
    if done.returncode:
        raise RuntimeError(f"{client} could not be driven: {done.stderr[-2000:]}")
    got = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(scenarios.SCENARIOS, got, strict=True))


def problem(scenario: scenarios.Scenario, outcome: Outcome) -> str | None:
    """What is wrong with an outcome, the client's own words first; None: the user has all that the model said."""
    if outcome["error"]:
        return _short(outcome["error"])
    return (
        _wrong_calls(scenario.right_calls, outcome["calls"])
        or _wrong_ids(outcome["calls"])
        or _differs("text", scenario.text, outcome["text"].strip())
        or (None if outcome["finish"] in (CUT if scenario.cut else FINISHED) else f"finish {outcome['finish']!r}")
        or _differs("answer after the tools", None if scenario.cut else scenarios.FINAL_ANSWER, outcome["answer"])
    )


def _wrong_calls(right: Sequence[scenarios.Call], got: Sequence[Mapping[str, Any]]) -> str | None:
    if len(got) != len(right):
        first = f", the first with {_short(got[0]['arguments'])}" if got else ""
        return f"{len(got)} calls instead of {len(right)}{first}"
    for number, (want, call) in enumerate(zip(right, got, strict=True), start=1):
        if call["name"] != want.name:
            return f"call {number} has the name {call['name']!r}"
        try:
            arguments = json.loads(call["arguments"])
        except ValueError:
            return f"call {number} has the arguments {_short(call['arguments'])!r}"
        if arguments != want.arguments:
            return f"call {number} has the arguments {_short(call['arguments'])}"
    return None


def _wrong_ids(calls: Sequence[Mapping[str, Any]]) -> str | None:
    ids = [call["id"] for call in calls]
    return None if all(ids) and len(set(ids)) == len(ids) else f"the ids are {ids}"


def _differs(what: str, right: str | None, got: str | None) -> str | None:
    return None if got == right else f"{what}: {_short(repr(got))}"


def _short(text: str, most: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."
