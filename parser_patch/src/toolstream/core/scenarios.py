"""What is asked of a server: scenarios, and their requests in the three protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from toolstream.core.exchange import CHAT, MESSAGES, RESPONSES, Endpoint

ToolChoice = Literal["auto", "required", "named", "none"]
Object = dict[str, Any]

MAX_TOKENS = 1024
"""Tokens of an answer: room to think and call, and a bound for a model that does not stop."""
LONG_MAX_TOKENS = 2048
"""Of the answer with a long argument."""
CUT_MAX_TOKENS = 48
"""Of the answer that is to end within its call: the long argument alone is some hundred tokens."""


class ExpectedCall(NamedTuple):
    """The call that answers a scenario."""

    name: str
    arguments: Mapping[str, Any]


def _tool(name: str, description: str, **properties: str) -> Object:
    return {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": {key: {"type": "string", "description": text} for key, text in properties.items()},
            "required": [*properties],
        },
    }


TOOLS: Sequence[Object] = (
    _tool("read_file", "Read one file.", path="Path of the file"),
    _tool("write_file", "Write one file.", path="Path of the file", content="The whole content"),
    _tool("list_tasks", "List the open tasks. Takes no arguments."),
)


@dataclass(frozen=True)
class Scenario:
    """One thing that a model is asked to do with tools.

    Attributes:
        name: For people.
        prompt: The user's message; it names every argument letter for letter.
        expected: The right calls.
        text_too: Whether the answer should hold text beside the calls.
        max_tokens: Tokens that the answer may take. Servers refuse a request whose context has not that much room.
        cut: Whether they are too few for the call: then none is right.
    """

    name: str
    prompt: str
    expected: Sequence[ExpectedCall]
    text_too: bool = False
    max_tokens: int = MAX_TOKENS
    cut: bool = False


def _reads(*paths: str) -> tuple[ExpectedCall, ...]:
    return tuple(ExpectedCall("read_file", {"path": path}) for path in paths)


_LONG = "\n".join(f"{number}: the quick brown fox jumps over the lazy dog" for number in range(1, 31))
_WRITE = f"Write the file fox.txt with the tool write_file. Its content is exactly these lines:\n{_LONG}"
_WRITTEN = (ExpectedCall("write_file", {"path": "fox.txt", "content": _LONG}),)

ONE_CALL = Scenario("one-call", "Read the file notes.txt with the tool read_file.", _reads("notes.txt"))
THREE_PARALLEL = Scenario(
    "three-parallel",
    "Read the three files a.txt, b.txt and c.txt with the tool read_file: three calls at once, in this order.",
    _reads("a.txt", "b.txt", "c.txt"),
)
SCENARIOS: Sequence[Scenario] = (
    ONE_CALL,
    THREE_PARALLEL,
    Scenario(
        "text-around",
        "Say in one sentence what you are going to do, then read the file plan.md with the tool read_file.",
        _reads("plan.md"),
        text_too=True,
    ),
    Scenario("long-argument", _WRITE, _WRITTEN, max_tokens=LONG_MAX_TOKENS),
    Scenario(
        "unicode",
        "Read the file résumé-日本語-🦊.txt with the tool read_file.",
        _reads("résumé-日本語-🦊.txt"),
    ),
    Scenario("no-arguments", "List the open tasks with the tool list_tasks.", (ExpectedCall("list_tasks", {}),)),
    Scenario("cut-short", _WRITE, _WRITTEN, max_tokens=CUT_MAX_TOKENS, cut=True),
)


@dataclass(frozen=True)
class Question:
    """One request of the matrix."""

    scenario: Scenario
    endpoint: Endpoint
    streaming: bool
    tool_choice: ToolChoice

    @property
    def name(self) -> str:
        """E.g. `chat stream auto three-parallel`."""
        mode = "stream" if self.streaming else "whole"
        return f"{self.endpoint} {mode} {self.tool_choice} {self.scenario.name}"

    @property
    def tool_name(self) -> str:
        """The tool that a named choice names."""
        return self.scenario.expected[0].name

    @property
    def calls_are_due(self) -> bool:
        """Whether the right answer has calls."""
        return self.tool_choice != "none" and not self.scenario.cut

    def body(self, model: str, **more: Any) -> Object:  # noqa: ANN401  (fields of a request)
        """The request, greedy and bounded; `more` is laid over it."""
        return {**_BODIES[self.endpoint](self, model), **more}


def matrix(endpoints: Sequence[Endpoint], *, streaming: Sequence[bool] = (True, False)) -> list[Question]:
    """One question of each kind: every scenario with `auto`, and one call with each other choice."""
    kinds: list[tuple[Scenario, ToolChoice]] = [(scenario, "auto") for scenario in SCENARIOS]
    kinds += [(ONE_CALL, "required"), (ONE_CALL, "named"), (ONE_CALL, "none")]
    return [
        Question(scenario, endpoint, streamed, choice)
        for endpoint in endpoints
        for streamed in streaming
        for scenario, choice in kinds
    ]


def _chat(question: Question, model: str) -> Object:
    choice: str | Object = question.tool_choice
    if choice == "named":
        choice = {"type": "function", "function": {"name": question.tool_name}}
    return {
        "model": model,
        "messages": [{"role": "user", "content": question.scenario.prompt}],
        "tools": [{"type": "function", "function": tool} for tool in TOOLS],
        "tool_choice": choice,
        "temperature": 0,
        "max_tokens": question.scenario.max_tokens,
        "stream": question.streaming,
    }


def _responses(question: Question, model: str) -> Object:
    choice: str | Object = question.tool_choice
    if choice == "named":
        choice = {"type": "function", "name": question.tool_name}
    return {
        "model": model,
        "input": question.scenario.prompt,
        "tools": [{"type": "function", "strict": False, **tool} for tool in TOOLS],
        "tool_choice": choice,
        "temperature": 0,
        "max_output_tokens": question.scenario.max_tokens,
        "store": False,
        "stream": question.streaming,
    }


def _messages(question: Question, model: str) -> Object:
    choice = {"auto": "auto", "required": "any", "named": "tool", "none": "none"}[question.tool_choice]
    tools = [
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]} for tool in TOOLS
    ]
    return {
        "model": model,
        "messages": [{"role": "user", "content": question.scenario.prompt}],
        "tools": tools,
        "tool_choice": {"type": choice, **({"name": question.tool_name} if choice == "tool" else {})},
        "temperature": 0,
        "max_tokens": question.scenario.max_tokens,
        "stream": question.streaming,
    }


_BODIES = {CHAT: _chat, RESPONSES: _responses, MESSAGES: _messages}
