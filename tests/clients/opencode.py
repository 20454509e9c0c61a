"""One session of opencode in a project of three files, without a terminal: `opencode run`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scenarios import FILES, Scenario

SECONDS = 300
"""opencode's own prompt and tools are 30,000 tokens, one a byte, for the stand-in model."""


def run(program: Path, url: str, scenario: Scenario, folder: Path) -> Mapping[str, Any]:
    """What the user gets out of the session: `text`, `calls`, `finish`, `answer` and `error`.

    Raises:
        RuntimeError: the time was up.
    """
    project, home = folder / "project", folder / "home"
    home.mkdir(parents=True)
    project.mkdir()
    for name, content in FILES.items():
        (project / name).write_text(content)
    (project / "opencode.json").write_text(json.dumps(configuration(url), indent=2))
    command = [str(program), "run", "--pure", "--format", "json", "--title", "test", scenario.prompt]
    # Nothing of this machine's user, and no look-up on the internet.
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }
    try:
        done = subprocess.run(
            command,
            cwd=project,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"opencode: no end within {SECONDS} s; is the machine busy?") from error
    outcome = _read(json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    if done.returncode and not outcome["error"]:
        outcome["error"] = f"exit code {done.returncode}: {done.stderr[-500:]}"
    return outcome


def configuration(url: str) -> dict[str, Any]:
    """`opencode.json` as docs/clients.md gives it, for the server at `url` and the stand-in model."""
    text = (Path(__file__).parents[2] / "examples" / "opencode.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    found["provider"]["gemmaserve"]["options"]["baseURL"] = f"{url}/v1"
    return found


def _read(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The outcome from opencode's events; a step is one request to the server.

    A call's event comes when its tool has ended; the ids of parts grow in the order in which the calls came.
    """
    outcome: dict[str, Any] = {"text": "", "calls": [], "finish": None, "answer": None, "error": None}
    calls: list[tuple[str, dict[str, Any]]] = []
    for event in events:
        part = event.get("part", {})
        if event["type"] == "error":
            error = event["error"]
            outcome["error"] = outcome["error"] or f"{error['name']}: {error.get('data', {}).get('message', '')}"
        elif event["type"] == "tool_use":
            state = part["state"]
            call = {"id": part["callID"], "name": part["tool"], "arguments": json.dumps(state.get("input"))}
            calls.append((part["id"], call))
            outcome["error"] = outcome["error"] or _tool_problem(call["name"], state)
        elif event["type"] == "text" and outcome["finish"] is None:
            outcome["text"] += part["text"]
        elif event["type"] == "text":
            outcome["answer"] = part["text"]
        elif event["type"] == "step_finish":
            outcome["finish"] = outcome["finish"] or part["reason"]
    outcome["calls"] = [call for _, call in sorted(calls, key=lambda each: each[0])]
    return outcome


def _tool_problem(tool: str, state: Mapping[str, Any]) -> str | None:
    """What opencode says of a tool that it could not run; or that a file's words did not come."""
    if state["status"] != "completed":
        return f"tool {tool}: {state.get('error')}"
    if tool == "invalid":  # where opencode sends a call whose arguments it cannot read
        return str(state["output"])
    name = Path(state["input"].get("filePath", "")).name
    return None if name in FILES and FILES[name].strip() in state["output"] else f"tool {tool} gave {state['output']}"
