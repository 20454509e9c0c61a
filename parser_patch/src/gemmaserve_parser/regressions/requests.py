"""That a request's other fields keep their meaning (rule 11)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gemmaserve_parser.regressions.cases import THREE_CALLS, THREE_READS, case, checks, expect
from gemmaserve_parser.regressions.registry import add, regression
from gemmaserve_parser.replay import TOKENS, WHOLE

if TYPE_CHECKING:
    from gemmaserve_parser.regressions.server import Server

_NAMED = {"type": "function", "function": {"name": "read_file"}}

TABLE = {
    "tool_choice_required": (
        "A required call in the model's own syntax",
        case(THREE_READS, calls=THREE_CALLS, tool_choice="required"),
    ),
    "tool_choice_named": (
        "A forced tool ends with stop, as OpenAI has it",
        case(THREE_READS, calls=THREE_CALLS, tool_choice=_NAMED, finish_reason="stop"),
    ),
    "tool_choice_named_without_a_call": (
        "A model that answers a forced tool in words loses nothing",
        case("I would rather not.", content="I would rather not.", tool_choice=_NAMED),
    ),
    "tool_choice_required_keeps_the_text": (
        "Text beside a required call is content",
        case(f"Reading.{THREE_READS}", calls=THREE_CALLS, content="Reading.", tool_choice="required"),
    ),
    "tool_choice_none": (
        "No calls, the text stays, finish_reason stop",
        case(f"Hello.{THREE_READS}", content="Hello.", tool_choice="none"),
    ),
    "a_request_without_tools": (
        "Nothing is called when nothing is declared",
        case(f"Hello.{THREE_READS}", content="Hello.", tools=[]),
    ),
    "parallel_tool_calls_false": (
        "At most the first call",
        case(THREE_READS, calls=THREE_CALLS[:1], parallel_tool_calls=False),
    ),
    "skip_special_tokens_is_overruled": (
        "A client that asks for no special tokens still gets its calls",
        case(THREE_READS, calls=THREE_CALLS, skip_special_tokens=True),
    ),
    "reasoning_that_was_not_asked_for": (
        "include_reasoning: false hides the thought and nothing else",
        case(
            f"<|channel>thought\nhm<channel|>Yes.{THREE_READS}",
            calls=THREE_CALLS,
            content="Yes.",
            include_reasoning=False,
        ),
    ),
}

for name, (shows, made) in TABLE.items():
    add(name, shows, checks(made))


@regression
def each_choice_of_n_has_a_parser_of_its_own(server: Server) -> None:
    """With n: 2, what one choice says never shows in the other."""
    for mode in (TOKENS, WHOLE):
        for index, result in enumerate(server.stream_choices(case(THREE_READS), mode, 2)):
            found = [(name, json.loads(text)) for name, text in result.tool_calls]
            expect(found, THREE_CALLS, f"{mode}: calls of choice {index}")
            expect(result.faults, [], f"{mode}: faults of choice {index}")


@regression
def usage_counts_every_token_once(server: Server) -> None:
    """The usage of a stream is that of the engine, whatever the parser holds back or divides."""
    for mode in (TOKENS, WHOLE):
        made = case(f"Text.{THREE_READS}")
        answer = server.stream(made, mode, stream_options={"include_usage": True})
        usage = answer.chunks[-1].get("usage") or {}
        expect(usage.get("completion_tokens"), len(made.tokens), f"{mode}: completion_tokens")


@regression
def token_ids_are_returned_once(server: Server) -> None:
    """return_token_ids gives every id of the answer, once and in order."""
    for mode in (TOKENS, WHOLE):
        made = case(f"Text.{THREE_READS}")
        answer = server.stream(made, mode, return_token_ids=True)
        choices = [choice for chunk in answer.chunks for choice in chunk["choices"]]
        expect([id_ for each in choices for id_ in each.get("token_ids") or ()], made.tokens, f"{mode}: token ids")


@regression
def a_cancelled_request_leaves_nothing_behind(server: Server) -> None:
    """A client that goes away in the middle of a call ends the engine's request."""
    made = case(THREE_READS)
    aborted = server.stage(made).cancel({"tools": made.tools}, server.script(made, TOKENS), after=2)
    expect(len(aborted), 1, "requests that the engine was told to abort")
