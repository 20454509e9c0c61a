"""Rules of the answer as a whole: that what was asked for is there, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolstream.core import faults
from toolstream.core.exchange import CHAT, MESSAGES, RESPONSES
from toolstream.core.rules.rule import (
    AI_SDK_2,
    ANTHROPIC,
    LITELLM,
    MUST,
    OPENAI,
    OPENCODE,
    SHOULD,
    Finding,
    Rule,
    everyone,
)
from toolstream.core.scenarios import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolstream.core.exchange import Answer
    from toolstream.core.scenarios import Question

MARKUP = ("<|tool_call", "<tool_call|>", '<|"|>', "<|tool_response", "<|channel|>", "<|call|>", "<|start|>")
"""Gemma 4's and Harmony's markers: never part of an answer to the scenarios, which do not mention them."""

_FORCED = {"required", "named"}


def _finish(answer: Answer, question: Question) -> Iterator[Finding]:
    allowed = {CHAT: {"tool_calls"}, RESPONSES: {"completed"}, MESSAGES: {"tool_use"}}[question.endpoint]
    if question.tool_choice == "named" and question.endpoint == CHAT:
        allowed = {"tool_calls", "stop"}
    if answer.finish_reason not in allowed and answer.finish_reason is not None:
        yield Finding(f"calls, and the finish reason {answer.finish_reason!r}")


def _markup(answer: Answer, _question: Question) -> Iterator[Finding]:
    seen = [("content", answer.text), ("reasoning", answer.reasoning)]
    seen += [(f"call {call.index}", f"{call.name} {call.arguments}") for call in answer.calls]
    for where, text in seen:
        marker = next((marker for marker in MARKUP if marker in text), None)
        if marker:
            yield Finding(f"the model's markup {marker} in {where}", _chunk_with(answer, marker))


def _chunk_with(answer: Answer, marker: str) -> int | None:
    quoted = marker.replace('"', '\\"')
    return next((number for number, chunk in enumerate(answer.exchange.chunks) if quoted in chunk.text), None)


def _none(answer: Answer, _question: Question) -> Iterator[Finding]:
    for call in answer.calls:
        yield Finding("a call although tool_choice is none", call.pieces[0].chunk)


def _cut(answer: Answer, question: Question) -> Iterator[Finding]:
    wanted = question.scenario.expected[0]
    for call in answer.calls:
        if call.name == wanted.name and faults.is_part(call.arguments, wanted.arguments):
            yield Finding(f"part of a call: {call.name}({call.arguments})"[:300], call.pieces[0].chunk)


def _called(answer: Answer, _question: Question) -> Iterator[Finding]:
    if not answer.calls and answer.ended:
        yield Finding("no call although the request demands one")


def _named(answer: Answer, question: Question) -> Iterator[Finding]:
    for call in answer.calls:
        if call.name != question.tool_name:
            yield Finding(f"the tool {call.name!r}, not {question.tool_name!r}", call.pieces[0].chunk)


def _declared(answer: Answer, _question: Question) -> Iterator[Finding]:
    names = {tool["name"] for tool in TOOLS}
    for call in answer.calls:
        if faults.has_text(call.name) and call.name not in names:
            yield Finding(f"the tool {call.name!r} was not declared", call.pieces[0].chunk)


def _right(answer: Answer, question: Question) -> Iterator[Finding]:
    if not faults.calls_are(answer, question.scenario.expected):
        got = ", ".join(f"{call.name}({call.arguments})" for call in answer.calls)
        yield Finding(f"other calls than the prompt asks for: {got}"[:300], answer.calls[0].pieces[0].chunk)


def _text_kept(answer: Answer, _question: Question) -> Iterator[Finding]:
    if not answer.text.strip():
        yield Finding("calls, and none of the text that was asked for")


RULES = (
    Rule(
        "finish-reason-says-calls",
        MUST,
        {
            OPENAI: "agents that loop on finish_reason stop before they run the tools",
            AI_SDK_2: "ends the step with another reason: the loop stops before it runs the tools",
            OPENCODE: "the turn ends before the tools' results are sent back",
            LITELLM: "hands on the wrong reason",
            ANTHROPIC: "stop_reason is not tool_use: the agent stops before it runs the tools",
        },
        _finish,
        "OpenAI API reference: finish_reason; Anthropic: stop_reason",
        when=lambda question: not question.scenario.cut,
    ),
    Rule(
        "no-markup-leaks",
        MUST,
        everyone("the user sees the model's own markup, or a tool gets it as an argument"),
        _markup,
        "the parser contract, rules 3 and 8",
        needs_call=False,
    ),
    Rule(
        "none-means-none",
        MUST,
        everyone("the client gets calls that it said it cannot run"),
        _none,
        "OpenAI API reference: tool_choice",
        needs_call=False,
        when=lambda question: question.tool_choice == "none",
    ),
    Rule(
        "required-calls",
        SHOULD,
        everyone("a client that forces a call finds none"),
        _called,
        "OpenAI API reference: tool_choice; the public Harmony reproduction: one call expected",
        needs_call=False,
        when=lambda question: question.tool_choice in _FORCED,
    ),
    Rule(
        "named-calls-that-tool",
        MUST,
        everyone("the client runs another tool than the one it forced"),
        _named,
        "OpenAI API reference: tool_choice",
        when=lambda question: question.tool_choice == "named",
    ),
    Rule(
        "tool-was-declared",
        SHOULD,
        everyone("the client has no tool of this name"),
        _declared,
        "the parser contract, values: an undeclared name in a well-formed call is the client's to decide",
    ),
    Rule(
        "calls-as-asked",
        SHOULD,
        everyone("the tool runs with other arguments than the user asked for (the model's fault or the parser's)"),
        _right,
        "the scenario's prompt names every argument",
        when=lambda question: question.calls_are_due,
    ),
    Rule(
        "cut-call-is-no-call",
        MUST,
        everyone("the tool runs with a part of its arguments: half a file is written over a whole one"),
        _cut,
        "the parser contract, rule 5",
        needs_call=False,
        when=lambda question: question.scenario.cut,
    ),
    Rule(
        "text-kept-beside-calls",
        SHOULD,
        everyone("what the model said before or after its call is lost"),
        _text_kept,
        "the parser contract, rule 3",
        when=lambda question: question.scenario.text_too,
    ),
)
