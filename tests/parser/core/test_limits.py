"""Hostile input: nothing raises, nothing is quadratic.

Every text here is long enough that quadratic work would take minutes; the timeout is the assertion.
"""

import json

import pytest

from gemmaserve_parser.core.events import ToolCall
from gemmaserve_parser.core.gemma4 import MARKERS, Gemma4Scanner

QUOTE = '<|"|>'
IDS = {marker: number for number, marker in enumerate(MARKERS, start=1)}
N = 30_000

BODIES = {
    "open brackets": "a:" + "[" * N,
    "open braces": "a:" + "{" * N,
    "nested arrays": "a:" + "[" * N + "]" * N,
    "nested objects": "a:" + "{b:" * N + "}" * N,
    "doubled braces": "{" * N,
    "nested sets": "a:" + "{b:[{x}," * N,
    "sets in sets": "a:" + "{x" * N,
    "closers": "a:1" + "}" * N,
    "brackets before text": "a:" + "[" * 90 + "1" + "]x" * 90,
    "quotes": "a:" + '"x' * N,
    "apostrophes": "a:" + "'x" * N,
    "backslashes": 'a:"' + "\\" * N,
    "unclosed quoted values": 'a:"x,' * N,
    "delimiters": "a:" + QUOTE * N,
    "delimiters in words": "a:" + (QUOTE + "x") * N,
    "delimiters after spaces": "a:" + " " * N + "x" + QUOTE * N,
    "commas": "a:" + "," * N,
    "prose with commas": "a:" + "x, y " * N,
    "half a key": "a:" + "x (y, " * N,
    "pairs": "".join(f"k{number}:1," for number in range(N)),
    "ends without strings": "a:" + f"x{QUOTE}," * N,
    "markers in a string": "a:" + QUOTE + "<tool_call|>" * N + QUOTE,
    "openers in a string": "a:" + QUOTE + "<|tool_call>" * N + QUOTE,
}
TEXTS = {
    "unclosed strings": f"<|tool_call>call:f{{a:{QUOTE}x}}<tool_call|>" * N,
    "openers": "<|tool_call>" * N,
    "cut openers": "<|tool_cal" * N,
    "channels": "<|channel>thought\nx<channel|>" * N,
    "drifted openers": "<|tool_call|>call:f{a:1}" * N,
    "prefixes": "<|tool_call>" + "call:" * N,
    "colons": "<|tool_call>" + ":" * N,
    "calls in one block": "<|tool_call>" + "call:f{}" * N + "<tool_call|>",
    "spaces": " " * N + "call:f{",
}


def arguments_of(events):
    return [json.loads(event.arguments) for event in events if isinstance(event, ToolCall)]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("size", [10**9, 7], ids=["whole", "cut"])
@pytest.mark.parametrize(
    "text",
    [*(f"<|tool_call>call:f{{{body}}}<tool_call|>" for body in BODIES.values()), *TEXTS.values()],
    ids=[*BODIES, *TEXTS],
)
def test_hostile_text_is_read_in_linear_time(text, size):
    scanner = Gemma4Scanner([{"function": {"name": "f", "parameters": {"type": "object"}}}])
    events = []
    for start in range(0, len(text), size):
        events += scanner.feed(text[start : start + size])
    for arguments in arguments_of(events + scanner.finish()):
        assert isinstance(arguments, dict)


@pytest.mark.timeout(30)
def test_a_megabyte_argument_in_small_deltas():
    content = "if (a < b) { return '}'; }\n" * 40_000
    scanner = Gemma4Scanner(marker_ids=IDS)
    for marker_or_text in ("<|tool_call>", "call:write{content:", QUOTE):
        scanner.feed(marker_or_text, [IDS.get(marker_or_text, 1000)])
    for start in range(0, len(content), 4):
        assert scanner.feed(content[start : start + 4], [1000]) == []
    scanner.feed(QUOTE, [IDS[QUOTE]])
    assert arguments_of(scanner.feed("}<tool_call|>", [1000, IDS["<tool_call|>"]])) == [{"content": content}]


def only_value(written, schema):
    tools = [{"function": {"name": "f", "parameters": {"properties": {"v": schema}}}}]
    scanner = Gemma4Scanner(tools)
    ((value,),) = [
        each.values() for each in arguments_of(scanner.feed(f"<|tool_call>call:f{{v:{written}}}<tool_call|>"))
    ]
    return value


@pytest.mark.parametrize("schema", [{}, {"type": "array"}])
def test_nesting_that_readers_refuse_stays_text_below_its_limit(schema):
    value, depth = only_value("[" * 5000 + "]" * 5000, schema), 0
    while isinstance(value, list):
        (value,) = value
        depth += 1
    assert depth < 200  # jiter, the strictest reader among vLLM's dependencies
    assert value == "[" * (5000 - depth) + "]" * (5000 - depth)


def test_quoted_nesting_that_readers_refuse_stays_text():
    text = "[" * 5000 + "]" * 5000
    assert only_value(QUOTE + text + QUOTE, {"type": "array"}) == text


@pytest.mark.parametrize("schema", [{}, {"type": "integer"}, {"type": "number"}])
@pytest.mark.parametrize("quote", ["", QUOTE])
def test_integers_keep_all_digits_that_readers_take_and_stay_text_above(schema, quote):
    longest = "9" * 4300
    expected = int(longest) if schema or not quote else longest
    assert only_value(quote + longest + quote, schema) == expected
    assert only_value(f"{quote}9{longest}{quote}", schema) == "9" + longest


def test_numbers_beyond_every_float_stay_text():
    assert only_value("1e400", {"type": "number"}) == "1e400"
    assert only_value("[1e400]", {"type": "array"}) == ["1e400"]
    assert only_value(f"{QUOTE}[1e400]{QUOTE}", {"type": "array"}) == "[1e400]"
