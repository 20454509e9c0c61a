"""Whatever the model writes: nothing raises, every cutting reads the same, every call's arguments are an object."""

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gemmaserve_parser.core.events import Content, Reasoning, ToolCall
from gemmaserve_parser.core.harmony import MARKERS, HarmonyScanner

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("get_weather", "ping")]

PIECES = (
    *("assistant", "analysis", "commentary", "final", " to=functions.get_weather", " to=", "functions.ping", "json"),
    *(" to=python", " to=assistant", "user", '{"city":"A"}', "{", "}", '"', "\\", "[", "]", "null", "1e999", "<|", "<"),
    *("\ud800", "é", "\n", " ", "prose and more prose", "x" * 600),
)
FRAGMENTS = st.sampled_from([*MARKERS, *PIECES])
TEXTS = st.lists(st.one_of(FRAGMENTS, st.text(max_size=8)), max_size=24).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(), values, max_size=4),
    max_leaves=12,
)
FINISHES = st.sampled_from(["stop", "length", "abort", None])


def read(pieces, finish="stop", **settings):
    scanner = HarmonyScanner(TOOLS, **settings)
    events = [event for piece in pieces for event in scanner.feed(piece)]
    merged = []
    for event in events + scanner.finish(finish):
        if merged and type(merged[-1]) is type(event) and not isinstance(event, ToolCall):
            merged[-1] = type(event)(merged[-1].text + event.text)
        else:
            merged.append(event)
    return merged


def cut(text, places):
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


@given(TEXTS, st.lists(st.integers(0, 200), max_size=12), FINISHES)
def test_every_cutting_reads_the_same(text, places, finish):
    whole = read([text], finish)
    assert read(cut(text, places), finish) == whole
    assert read(text, finish) == whole


@given(TEXTS, FINISHES, st.booleans(), st.booleans())
def test_calls_are_objects_and_text_is_never_empty(text, finish, calls, first_call_only):
    events = read([text], finish, calls=calls, first_call_only=first_call_only)
    for event in events:
        if isinstance(event, ToolCall):
            assert event.name
            assert isinstance(json.loads(event.arguments), dict)
            event.arguments.encode()
        else:
            assert event.text
    found = sum(isinstance(event, ToolCall) for event in events)
    assert found <= (0 if not calls else 1 if first_call_only else found)


@given(st.dictionaries(st.text(), JSON, max_size=5), st.booleans(), st.lists(st.integers(0, 300), max_size=8), TEXTS)
def test_any_object_comes_back(arguments, ascii_only, places, noise):
    body = json.dumps(arguments, ensure_ascii=ascii_only)
    if any(marker in body for marker in MARKERS):
        return
    header = "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
    text = f"<|channel|>analysis<|message|>Hm<|end|><|start|>assistant{header}{body}<|call|>"
    reasoning, call, *rest = read(cut(text + noise, places))
    assert reasoning == Reasoning("Hm")
    assert call.name == "get_weather"
    assert json.loads(call.arguments) == arguments
    assert not any(isinstance(event, Content) and not event.text for event in rest)
