"""How answers end (rule 5)."""

from __future__ import annotations

from gemmaserve_parser.regressions.cases import case, checks
from gemmaserve_parser.regressions.registry import add

_CALL = '<|tool_call>call:get_time{city:<|"|>A<|"|>}<tool_call|>'
_CALLED = [("get_time", {"city": "A"})]

TABLE = {
    "a_call_ends_with_tool_calls": ("finish_reason tells that calls were made", case(_CALL, calls=_CALLED)),
    "text_ends_with_stop": ("finish_reason of an answer without calls", case("Four.", content="Four.")),
    "max_tokens_inside_a_string": (
        "A call that was cut is no call, and finish_reason says length",
        case('<|tool_call>call:read_file{path:<|"|>half of', finish="length", finish_reason="length"),
    ),
    "max_tokens_inside_a_name": (
        "A cut name never reaches the client",
        case("<|tool_call>call:read_f", finish="length", finish_reason="length"),
    ),
    "max_tokens_before_the_close_marker": (
        "Balanced, but cut: no call",
        case('<|tool_call>call:read_file{path:<|"|>a<|"|>}', finish="length", finish_reason="length"),
    ),
    "max_tokens_after_a_whole_call": (
        "Whole calls before the cut stand, and finish_reason still says length",
        case(f"{_CALL}<|tool_call>call:read_file{{pa", calls=_CALLED, finish="length", finish_reason="length"),
    ),
    "max_tokens_in_text": (
        "Text that was cut is content",
        case("The answer is f", content="The answer is f", finish="length", finish_reason="length"),
    ),
    "a_balanced_call_without_its_close_marker": (
        "At a natural end a balanced call is a call",
        case(_CALL.removesuffix("<tool_call|>"), calls=_CALLED),
    ),
    "the_last_characters_are_not_lost": (
        "What could have become markup is content when the answer ends",
        case("2 <", content="2 <"),
    ),
}

for name, (shows, made) in TABLE.items():
    add(name, shows, checks(made))
