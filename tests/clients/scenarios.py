"""What the clients are asked, what the stand-in model says to it, and what a user of the client must get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import answers

FINAL_ANSWER = "That is all of it."
"""What the model says once it has seen tool results: the end of every session."""


@dataclass(frozen=True)
class Call:
    """One tool call: its name and its arguments."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Scenario:
    """One request of a user and the model's answer to it.

    Attributes:
        name: As in the table.
        prompt: The user's message, by which the stand-in model knows what to say.
        calls: The calls that it says.
        text: What it says before them.
        max_tokens: What the request allows.
        cut: Whether that ends inside the call.
    """

    name: str
    prompt: str
    calls: Sequence[Call]
    text: str = ""
    max_tokens: int = 1000
    cut: bool = False

    @property
    def right_calls(self) -> Sequence[Call]:
        """What the user must get: a call whose arguments were cut is none."""
        return () if self.cut else self.calls

    def said(self) -> str:
        """The model's own words, in Gemma 4's markup."""
        return self.text + "".join(_markup(call) for call in self.calls)


def _tool(name: str, description: str, **properties: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": [*properties],
        },
    }


TOOLS = (
    _tool("read_file", "Read a file of the project", path="string"),
    _tool("get_weather", "Weather forecast for a city", city="string", days="integer"),
    _tool("list_directory", "List a directory", path="string", recursive="boolean"),
    _tool("list_tasks", "List the open tasks"),
)

SCENARIOS = (
    Scenario("one call", "Read README.md for me.", [Call("read_file", {"path": "README.md"})]),
    Scenario(
        "three calls",
        "Read src/main.py, list docs with all below it, and tell me Zürich's weather for three days.",
        [
            Call("read_file", {"path": "src/main.py"}),
            Call("get_weather", {"city": "Zürich", "days": 3}),
            Call("list_directory", {"path": "docs", "recursive": True}),
        ],
    ),
    Scenario(
        "text and call",
        "Say what you do, then read the Makefile.",
        [Call("read_file", {"path": "Makefile"})],
        text="I read the Makefile.",
    ),
    Scenario("no arguments", "Which tasks are open?", [Call("list_tasks", {})]),
    Scenario(
        "cut off",
        "Read README.md for me.",
        [Call("read_file", {"path": "README.md"})],
        max_tokens=len(answers.to_ids('<|tool_call>call:read_file{path:<|"|>READ')),
        cut=True,
    ),
)

FILES = {"alpha.txt": "the first file\n", "beta.txt": "the second file\n", "gamma.txt": "the third file\n"}
"""What opencode finds in its project."""

THREE_FILES = Scenario(
    "three files",
    "Read alpha.txt, beta.txt and gamma.txt at the same time.",
    [Call("read", {"filePath": name}) for name in FILES],
    text="I read all three.",
)
"""opencode brings tools of its own; `read` is one of them."""


def script() -> list[dict[str, list[int]]]:
    """The stand-in model's questions and answers, the one that goes first at the top (see `bench/servers/scripted.py`).

    A prompt that holds a tool's answer comes first: whatever was asked before it, the session then ends with a text.
    """
    after_results = {"question": answers.to_ids("<|tool_response>"), "answer": answers.to_ids(FINAL_ANSWER)}
    asked = [
        {"question": answers.to_ids(each.prompt), "answer": answers.to_ids(each.said())}
        for each in (*SCENARIOS, THREE_FILES)
    ]
    return [after_results, *asked]


def _markup(call: Call) -> str:
    body = ",".join(f"{key}:{_value(value)}" for key, value in call.arguments.items())
    return f"<|tool_call>call:{call.name}{{{body}}}<tool_call|>"


def _value(value: object) -> str:
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    return str(value).lower() if isinstance(value, bool) else str(value)
