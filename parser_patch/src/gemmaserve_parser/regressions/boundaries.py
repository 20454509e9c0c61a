"""Where text, thought and calls end (rules 3 and 8)."""

from __future__ import annotations

from gemmaserve_parser.regressions.cases import THREE_CALLS, THREE_READS, case, checks
from gemmaserve_parser.regressions.registry import add

_CALL = '<|tool_call>call:get_time{city:<|"|>A<|"|>}<tool_call|>'
_CALLED = [("get_time", {"city": "A"})]

TABLE = {
    "plain_text_is_content": (
        "An answer without markup is content as it stands",
        case("The answer is {4} <b>: call me.", content="The answer is {4} <b>: call me."),
    ),
    "text_before_between_and_after_calls_is_content": (
        "No text around calls is lost",
        case(f"One.{_CALL}Two.{_CALL}Three.", calls=[*_CALLED, *_CALLED], content="One.Two.Three."),
    ),
    "white_space_between_calls_is_not_content": (
        "White space that only separates calls goes",
        case(f"{_CALL}\n\n{_CALL}\n", calls=[*_CALLED, *_CALLED]),
    ),
    "prose_after_call_is_content": (
        "A tool's name is never made up from prose",
        case("<|tool_call>call: me later, please<tool_call|>", content="call: me later, please"),
    ),
    "markup_in_prose_is_content": (
        "The opener's characters as ordinary tokens are text",
        case("Write <|tool_call> first.", content="Write <|tool_call> first.", typed=["<|tool_call>"]),
    ),
    "markup_inside_a_string_is_data": (
        "Up to its end delimiter everything in a string is data",
        case(
            '<|tool_call>call:read_file{path:<|"|>a<tool_call|>b<|"|>}<tool_call|>',
            calls=[("read_file", {"path": "a<tool_call|>b"})],
        ),
    ),
    "a_nested_opener_restarts_the_call": (
        "An opener inside an unfinished call starts anew",
        case(f"<|tool_call>call:read_file{{path:{_CALL}", calls=_CALLED),
    ),
    "extra_close_markers_vanish": (
        "Close markers without a call are nothing",
        case(f"{_CALL}<tool_call|><tool_call|>", calls=_CALLED),
    ),
    "a_hallucinated_tool_response_is_dropped": (
        "Nothing from a tool response that the model makes up reaches the client",
        case(f"{_CALL}<|tool_response>response:get_time{{value:1}}<tool_response|>Noon.", calls=_CALLED),
    ),
    "reasoning_is_not_content": (
        "A thought channel is reasoning without its label, and what follows is content",
        case("<|channel>thought\nhm, well<channel|>Four.", content="Four.", reasoning="hm, well"),
    ),
    "reasoning_and_calls_in_one_delta": (
        "A thought and three calls may come at once",
        case(f"<|channel>thought\ngo<channel|>{THREE_READS}", calls=THREE_CALLS, reasoning="go"),
    ),
    "a_thought_that_the_prompt_opened": (
        "The answer starts in reasoning where the prompt ends in it",
        case(
            f"plan<channel|>{_CALL}",
            calls=_CALLED,
            reasoning="plan",
            prompt="<|turn>model\n<|channel>thought\n",
        ),
    ),
    "markup_quoted_in_reasoning_is_not_a_call": (
        "The model may think about the markup",
        case(
            f"<|channel>thought\nuse {_CALL} later<channel|>ok",
            content="ok",
            reasoning=f"use {_CALL} later",
            typed=[_CALL],
        ),
    ),
    "without_a_reasoning_parser_thoughts_are_content": (
        "A server without reasoning leaves the channel as it stands, and still finds the calls",
        case(f"<channel|>Hi {_CALL}", content="<channel|>Hi ", calls=_CALLED, no_reasoning_parser=True),
    ),
}

for name, (shows, made) in TABLE.items():
    add(name, shows, checks(made))
