"""What a server of gpt-oss has to show before it gets traffic.

vLLM has one parser name for gpt-oss, `--tool-call-parser openai`, and reads it by the model's type; so
`gemmaserve-parser regressions --parser openai` runs these, and no others. They find out whether our reading took the
place of vLLM's, which calls in several deltas or without an id would tell.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.regressions.cases import GET_TIME, checks, expect, tool
from gemmaserve_parser.regressions.registry import add, regression
from gemmaserve_parser.replay import FIVE, TOKENS, WHOLE, Case

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gemmaserve_parser.regressions.server import Server

TOOLS = [GET_TIME, tool("query", sql="string"), tool("ping")]

_HEADER = "<|channel|>commentary to=functions.get_time <|constrain|>json<|message|>"
_CALL = f'{_HEADER}{{"city":"A"}}<|call|>'
_CALLED = ("get_time", {"city": "A"})
_THOUGHT = "<|channel|>analysis<|message|>Hm.<|end|>"
_NEXT = "<|start|>assistant"


def case(  # noqa: PLR0913  (an answer's parts, by keyword)
    text: str,
    *,
    calls: Sequence[tuple[str, Mapping[str, Any]]] = (),
    content: str | None = None,
    reasoning: str | None = None,
    finish_reason: str | None = None,
    typed: str = "",
    **request: Any,
) -> Case:
    """A case of gpt-oss; the arguments are those of `cases.case`, with one passage in `typed`."""
    spans = [[text.index(typed), text.index(typed) + len(typed)]] if typed else []
    expected = {
        "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
        "content": content,
        "reasoning": reasoning,
        "finish_reason": finish_reason or ("tool_calls" if calls else "stop"),
    }
    fields = {"id": "regression", "model": "harmony", "text": text, "plain_text_spans": spans, "tools": TOOLS}
    return Case({**fields, "request": request, "expect": expected})


def _header(name: str, header: str) -> tuple[str, str, Case]:
    shown = case(f'{header}<|message|>{{"city":"A"}}<|call|>', calls=[_CALLED])
    return f"{name}_gives_the_right_name", f"The header {header!r} names get_time", shown


TABLE = [
    (
        "a_call_after_reasoning",
        "Reasoning and a call in one answer",
        case(f"{_THOUGHT}{_NEXT}{_CALL}", calls=[_CALLED], reasoning="Hm."),
    ),
    (
        "the_same_tool_twice",
        "Two calls of one tool are two indices",
        case(f"{_CALL}{_NEXT}{_CALL}", calls=[_CALLED, _CALLED]),
    ),
    (
        "reasoning_between_two_calls_of_one_tool",
        "The second call is not taken for the first's tail",
        case(f"{_CALL}{_NEXT}{_THOUGHT}{_NEXT}{_CALL}", calls=[_CALLED, _CALLED], reasoning="Hm."),
    ),
    (
        "two_tools_keep_their_indices",
        "Calls of different tools are told apart",
        case(
            f'{_CALL}{_NEXT}<|channel|>commentary to=functions.query json<|message|>{{"sql":"x"}}<|call|>',
            calls=[_CALLED, ("query", {"sql": "x"})],
        ),
    ),
    (
        "a_preamble_is_content",
        "Commentary without recipient is for the user, and its call is not lost",
        case(
            f"<|channel|>commentary<|message|>Let me look.<|end|>{_NEXT}{_CALL}",
            calls=[_CALLED],
            content="Let me look.",
        ),
    ),
    (
        "the_last_words_of_an_answer",
        "Nothing of the final message is lost",
        case("<|channel|>final<|message|>one two three four<|return|>", content="one two three four"),
    ),
    (
        "an_answer_without_markup_is_content",
        "Text without any header is not lost",
        case("Just an answer.", content="Just an answer."),
    ),
    (
        "an_empty_body_is_an_empty_object",
        "A call without arguments has {}",
        case("<|channel|>commentary to=functions.ping json<|message|><|call|>", calls=[("ping", {})]),
    ),
    (
        "markers_typed_in_arguments_are_data",
        "Only a real token closes a call",
        case(
            '<|channel|>commentary to=functions.query json<|message|>{"sql":"<|call|>"}<|call|>',
            calls=[("query", {"sql": "<|call|>"})],
            typed='<|call|>"',
        ),
    ),
    _header("a_recipient_before_the_channel", " to=functions.get_time<|channel|>commentary json"),
    _header("a_repeated_channel", " to=functions.get_time<|channel|>commentary<|channel|>commentary json"),
    _header("a_repeated_recipient", "<|channel|>commentary to=functions.get_time to=functions.get_time"),
    _header("a_stray_token", "<|channel|>\u2013\u2013commentary to=functions.get_time json"),
    _header("a_name_with_a_format_behind_it", "<|channel|>commentary to=functions.get_time<|constrain|>json"),
    _header("the_analysis_channel", "<|channel|>analysis to=functions.get_time <|constrain|>json"),
    (
        "a_built_in_tool_is_no_call",
        "What python is sent is neither a call nor text",
        case("<|channel|>analysis to=python code<|message|>print(1)<|call|>"),
    ),
    (
        "a_truncated_header_gives_nothing",
        "Markup never reaches the client",
        case(f"{_THOUGHT}{_NEXT}<|channel|>comment", reasoning="Hm.", finish="length", finish_reason="length"),
    ),
    (
        "a_truncated_call_gives_nothing",
        "Truncation is not completion",
        case(f'{_HEADER}{{"city":"A', finish="length", finish_reason="length"),
    ),
    (
        "a_call_before_a_truncation_stands",
        "A complete call stands, and the client learns of the truncation",
        case(
            f"{_CALL}{_NEXT}<|channel|>final<|message|>The wea",
            calls=[_CALLED],
            content="The wea",
            finish="length",
            finish_reason="length",
        ),
    ),
    (
        "tool_choice_none_gives_no_calls",
        "A call that is not wanted is dropped",
        case(f"{_THOUGHT}{_NEXT}{_CALL}", reasoning="Hm.", tool_choice="none"),
    ),
    (
        "a_named_tool_choice_ends_with_stop",
        "As OpenAI's API has it",
        case(
            _CALL,
            calls=[_CALLED],
            finish_reason="stop",
            tool_choice={"type": "function", "function": {"name": "get_time"}},
        ),
    ),
    (
        "tool_choice_required",
        "A required call is as whole as any",
        case(_CALL, calls=[_CALLED], tool_choice="required"),
    ),
    (
        "parallel_tool_calls_false_gives_one",
        "Only the first call is reported",
        case(f"{_CALL}{_NEXT}{_CALL}", calls=[_CALLED], parallel_tool_calls=False),
    ),
    (
        "include_reasoning_false_hides_it",
        "Reasoning that is not wanted stays out",
        case(f"{_THOUGHT}{_NEXT}{_CALL}", calls=[_CALLED], include_reasoning=False),
    ),
]

for _name, _shows, _case in TABLE:
    add(f"harmony_{_name}", _shows, checks(_case))


@regression
def harmony_one_call_with_an_id_and_valid_json(server: Server) -> None:
    """The public reproduction: one call, an id that is not null, valid JSON, a stream that does not die."""
    shown = case(f"{_THOUGHT}{_NEXT}{_CALL}", calls=[_CALLED], reasoning="Hm.")
    for mode in (TOKENS, FIVE, WHOLE):
        answer = server.stream(shown, mode)
        expect([chunk["error"] for chunk in answer.chunks if "error" in chunk], [], f"{mode}: errors in the stream")
        expect(len(answer.calls), 1, f"{mode}: deltas with a call")
        _is_whole(answer.calls[0], mode)
    message = server.stage(shown).complete({"tools": TOOLS}, server.script(shown, WHOLE))["choices"][0]["message"]
    expect([bool(call["id"]) for call in message["tool_calls"]], [True], "non-streaming: calls with an id")


def _is_whole(call: Mapping[str, Any], mode: str) -> None:
    expect(bool(call.get("id")), True, f"{mode}: whether the call has an id")
    expect((call["index"], call.get("type")), (0, "function"), f"{mode}: the call's index and type")
    function = call["function"]
    expect((function.get("name"), json.loads(function["arguments"])), _CALLED, f"{mode}: the call")


@regression
def harmony_ids_are_unique(server: Server) -> None:
    """No two calls share an id, within an answer and between two."""
    twice = case(f"{_CALL}{_NEXT}{_CALL}")
    ids = [call.get("id") for mode in (TOKENS, WHOLE) for call in server.stream(twice, mode).calls]
    expect(len({id_ for id_ in ids if id_}), 4, f"distinct ids of two requests with two calls each ({ids})")


@regression
def harmony_content_and_call_never_share_a_chunk(server: Server) -> None:
    """Text and a call that come in one step leave in two chunks, the text first."""
    answer = server.stream(case(f"<|channel|>commentary<|message|>Look.<|end|>{_NEXT}{_CALL}"), WHOLE)
    kinds = [(bool(delta.get("content")), bool(delta.get("tool_calls"))) for delta in answer.deltas]
    said = [kind for kind in kinds if any(kind)]
    expect(said, [(True, False), (False, True)], "chunks with content and with calls")


@regression
def harmony_every_choice_has_a_reader_of_its_own(server: Server) -> None:
    """With n = 3 each choice gets its own calls."""
    for result in server.stream_choices(case(_CALL, calls=[_CALLED]), TOKENS, 3):
        expect([name for name, _ in result.tool_calls], ["get_time"], "a choice's calls")
        expect(result.faults, [], "faults of a choice's stream")
