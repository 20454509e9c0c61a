"""What holds for every input: round trips, every cutting the same, valid JSON, no exception.

`make fuzz` runs these with 100,000 examples each (HYPOTHESIS_PROFILE=fuzz).
"""

import json
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from gemmaserve_parser.core.events import Content, Reasoning, ToolCall
from gemmaserve_parser.core.gemma4 import MARKERS, Gemma4Scanner

QUOTE = '<|"|>'
IDS = {marker: number for number, marker in enumerate(MARKERS, start=1)}
ORDINARY = 1000

TOOLS = [
    {"type": "function", "function": {"name": "free", "parameters": {"type": "object"}}},
    {
        "type": "function",
        "function": {
            "name": "typed",
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "count": {"type": "integer"},
                    "ratio": {"type": ["number", "null"]},
                    "on": {"type": "boolean"},
                    "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                },
                "$defs": {"item": {"anyOf": [{"type": "object", "properties": {"id": {"type": "string"}}}, {}]}},
            },
        },
    },
]

# Pieces: a real marker, or text written with ordinary tokens.
Pieces = list[tuple[str, bool]]


def real(marker: str) -> tuple[str, bool]:
    return marker, True


def typed(text: str) -> tuple[str, bool]:
    return text, False


def render(value: object) -> Pieces:
    """A value by the rules of Gemma 4's chat template (its `format_argument`, keys not escaped)."""
    if isinstance(value, str):
        return [real(QUOTE), typed(value), real(QUOTE)]
    if isinstance(value, bool):
        return [typed("true" if value else "false")]
    if isinstance(value, dict):
        pieces = [typed("{")]
        for number, (key, item) in enumerate(sorted(value.items())):
            pieces += [typed("," * bool(number) + key + ":"), *render(item)]
        return [*pieces, typed("}")]
    if isinstance(value, list):
        pieces = [typed("[")]
        for number, item in enumerate(value):
            pieces += [typed("," * bool(number)), *render(item)]
        return [*pieces, typed("]")]
    return [typed("null" if value is None else str(value))]


def tokens_of(pieces: Pieces) -> list[tuple[str, int]]:
    """One token a marker; one a character of ordinary text."""
    tokens = []
    for text, is_real in pieces:
        tokens += [(text, IDS[text])] if is_real else [(char, ORDINARY + ord(char)) for char in text]
    return tokens


def decode(token_id: int) -> str:
    return MARKERS[token_id - 1] if token_id <= len(MARKERS) else chr(token_id - ORDINARY)


def scan(tokens: list[tuple[str, int]], cuts: list[int], *, ids: bool = True, reason: str = "stop", **settings):
    """Feed the tokens, cut into deltas at these characters; adjacent texts of one kind joined."""
    scanner = Gemma4Scanner(TOOLS, marker_ids=IDS if ids else None, decode=decode if ids else None, **settings)
    text = "".join(text for text, _ in tokens)
    starts, position = [], 0
    for piece, token_id in tokens:
        starts.append((position, token_id))
        position += len(piece)
    events = []
    for start, end in pairwise(sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})):
        fresh = [token_id for at, token_id in starts if start <= at < end]
        events += scanner.feed(text[start:end], fresh if ids else None)
    events += scanner.finish(reason)
    joined = []
    for event in events:
        if joined and type(event) is type(joined[-1]) and not isinstance(event, ToolCall):
            joined[-1] = type(event)(joined[-1].text + event.text)
        else:
            joined.append(event)
    return joined


def every_cut(tokens: list[tuple[str, int]]) -> list[int]:
    return [*range(sum(len(text) for text, _ in tokens))]


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
strings = st.text(max_size=20) | st.sampled_from(
    [QUOTE, "<tool_call|>", "<|tool_call>call:free{a:1}", "}", "},", ",a:", "a:1}", '"', "'", "\\", "null", "<|", "01"]
)
# A bare key ends at its separator, and white space around it is not part of it.
keys = st.text(
    st.characters(exclude_characters="{}[]():,=\"'<", exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda key: key == key.strip() and key)
values = st.recursive(
    scalars | strings,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(keys, values, max_size=5)
cuts = st.lists(st.integers(0, 10_000), max_size=30)
prose = st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]), max_size=30).map(
    lambda text: "." + text
)


@given(arguments=objects, before=prose, after=prose, cuts=cuts)
def test_rendered_arguments_come_back_equal_under_any_cutting_with_any_text_around(arguments, before, after, cuts):
    pieces = [typed(before), real("<|tool_call>"), typed("call:free"), *render(arguments), real("<tool_call|>")]
    tokens = tokens_of([*pieces, typed(after)])
    events = scan(tokens, cuts)
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert json.loads(call.arguments) == arguments
    if "<" not in json.dumps(arguments):
        assert scan(tokens, cuts, ids=False) == events
    assert [event.text.strip() for event in events if isinstance(event, Content)] == [before.strip(), after.strip()]


@given(calls=st.lists(objects, min_size=2, max_size=4), cuts=cuts)
def test_each_of_several_calls_comes_back(calls, cuts):
    pieces = []
    for arguments in calls:
        pieces += [real("<|tool_call>"), typed("call:free"), *render(arguments), real("<tool_call|>")]
    events = scan(tokens_of(pieces), cuts)
    assert [json.loads(event.arguments) for event in events] == calls


def schema_of(value: object) -> dict:
    """A schema that says exactly what a value is, as far as its lists hold scalars."""
    if isinstance(value, dict):
        return {"type": "object", "properties": {key: schema_of(item) for key, item in value.items()}}
    if isinstance(value, list):
        scalar = not any(isinstance(item, (dict, list)) for item in value)
        return {"type": "array", "items": {"anyOf": [*map(schema_of, value)]} if scalar and value else {}}
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    return {"type": names[type(value)]}


@given(arguments=objects)
def test_a_schema_that_fits_changes_nothing(arguments):
    pieces = [real("<|tool_call>"), typed("call:f"), *render(arguments), real("<tool_call|>")]
    scanner = Gemma4Scanner([{"name": "f", "parameters": schema_of(arguments)}], marker_ids=IDS, decode=decode)
    tokens = tokens_of(pieces)
    (call,) = scanner.feed("".join(text for text, _ in tokens), [token_id for _, token_id in tokens])
    assert json.loads(call.arguments) == arguments


fragments = st.lists(
    st.sampled_from(
        [real(marker) for marker in MARKERS] + [real("<|tool_call>"), real("<tool_call|>"), real(QUOTE)] * 4
    )
    | st.sampled_from(
        [
            *("call:free{", "call:typed{", "call:typed(", "free{", "call:", "a:", "text:", "count=", "3", "-1.5e3"),
            *("true", "None", "thought\n", "\\u0041", "\ud800", "\0", "é", *"{}()[],=:'\"\\<", "{{", "}}"),
            *("<|tool_call|>", "<|tool_call", "<|", *MARKERS),
        ]
    ).map(typed)
    | st.text(max_size=8).map(typed),
    max_size=30,
)


# A header that turns out to be none must give back the same text to look at, however much of it came at once.
@example(pieces=[real("<|tool_call>"), typed("{"), typed("<eos>")], cuts=[], ids=True, reason="stop", thinks=False)
@example(
    pieces=[real("<|tool_call>"), typed("{ <|tool_call|>call:f{}")], cuts=[], ids=True, reason="stop", thinks=False
)
@given(pieces=fragments, cuts=cuts, ids=st.booleans(), reason=st.sampled_from(["stop", "length"]), thinks=st.booleans())
def test_every_cutting_gives_the_same(pieces, cuts, ids, reason, thinks):
    tokens = tokens_of(pieces)
    whole = scan(tokens, [], ids=ids, reason=reason, in_reasoning=thinks)
    assert scan(tokens, cuts, ids=ids, reason=reason, in_reasoning=thinks) == whole
    assert scan(tokens, every_cut(tokens), ids=ids, reason=reason, in_reasoning=thinks) == whole


@given(pieces=fragments, calls=st.booleans(), first=st.booleans(), reasoning=st.booleans(), ids=st.booleans())
def test_arguments_are_always_a_json_object_and_texts_are_never_empty(pieces, calls, first, reasoning, ids):
    events = scan(tokens_of(pieces), [], ids=ids, calls=calls, first_call_only=first, reasoning=reasoning)
    found = [event for event in events if isinstance(event, ToolCall)]
    assert len(found) <= (1 if first else 99) * calls
    for call in found:
        assert call.name.strip()
        assert isinstance(json.loads(call.arguments, parse_constant=pytest_fail), dict)
    assert all(event.text for event in events if isinstance(event, (Content, Reasoning)))


def pytest_fail(constant: str):
    raise AssertionError(f"{constant} is not JSON")


@given(text=st.text(), ids=st.booleans())
def test_nothing_is_lost_of_text_without_markup(text, ids):
    if any(marker in text for marker in MARKERS) or "<" in text or text.lstrip().startswith("call:"):
        return
    events = scan([(char, ORDINARY + ord(char)) for char in text], [], ids=ids)
    assert events == ([Content(text)] if text else [])
