"""Real markers are told from the same characters typed as text by their ids, however text and ids are cut."""

import pytest

from gemmaserve_parser.core.events import Content, Reasoning, ToolCall
from gemmaserve_parser.core.gemma4 import MARKERS, Gemma4Scanner

IDS = {marker: number for number, marker in enumerate(MARKERS, start=1)}
OPEN, CLOSE, QUOTE = IDS["<|tool_call>"], IDS["<tool_call|>"], IDS['<|"|>']
CHANNEL, CHANNEL_END = IDS["<|channel>"], IDS["<channel|>"]
WORDS = {100: "call:f{a:", 101: "}", 102: "use ", 103: "<|tool_call>", 104: ' <|"|> ', 105: "thought\n", 106: " ok"}
SPELLED = {**WORDS, **{number: marker for marker, number in IDS.items()}}


def spell(ids):
    return "".join(SPELLED[token_id] for token_id in ids)


def scanner(**settings):
    return Gemma4Scanner(marker_ids=IDS, decode=SPELLED.__getitem__, **settings)


def is_call(event):
    return isinstance(event, ToolCall)


def text_of(event):
    return "" if is_call(event) else event.text


def drive(deltas, **settings):
    one = scanner(**settings)
    events = [event for text, ids in deltas for event in one.feed(text, ids)]
    return events + one.finish()


CALL = ToolCall("f", '{"a": "use  <|\\"|> "}')
A_CALL = [OPEN, 100, QUOTE, 102, 104, QUOTE, 101, CLOSE]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([102, 103, 106], [Content("use <|tool_call> ok")]),
        (A_CALL, [CALL]),
        ([CHANNEL, 105, 102, 103, CHANNEL_END, 106], [Reasoning("use <|tool_call>"), Content("ok")]),
        (
            [103, *A_CALL, 103],
            [Content("<|tool_call>"), CALL, Content("<|tool_call>")],
        ),
    ],
)
def test_typed_markers_are_text_in_one_delta_and_in_a_delta_a_token(ids, expected):
    assert drive([(spell(ids), ids)]) == expected
    one_each = drive([(SPELLED[token_id], [token_id]) for token_id in ids])
    assert [*filter(is_call, one_each)] == [*filter(is_call, expected)]
    assert "".join(text_of(event) for event in one_each) == "".join(map(text_of, expected))


def test_text_may_lag_behind_its_ids():
    """Stop strings make the engine hold text back, so that a marker's characters come after its id."""
    text = spell(A_CALL)
    lagging = [("", [token_id]) for token_id in A_CALL] + [(text[at : at + 3], []) for at in range(0, len(text), 3)]
    assert drive(lagging) == drive([(text, A_CALL)])


def test_a_marker_cut_over_deltas_is_recognised_once_its_id_came():
    assert drive([("<|tool", [OPEN]), ("_call>call:f{}<tool", [100, CLOSE]), ("_call|>", [])]) == [ToolCall("f", "{}")]


def test_without_ids_the_characters_decide():
    text = spell(A_CALL).replace(' <|"|> ', "")
    assert drive([(text, None)]) == drive([(text, [])]) == [ToolCall("f", '{"a": "use "}')]


def test_ids_decide_without_a_decoder():
    one = Gemma4Scanner(marker_ids=IDS)
    assert one.feed("use <|tool_call> ok", [102, 103, 106]) == [Content("use <|tool_call> ok")]


@pytest.mark.parametrize("size", [1, 2, 3, len(A_CALL)])
def test_markers_left_out_of_the_text_are_placed_by_their_ids(size):
    """skip_special_tokens: the text has no markers, the ids do."""
    ids = [CHANNEL, 105, 102, CHANNEL_END, OPEN, 100, QUOTE, 102, 106, QUOTE, 101, CLOSE, 106]
    deltas = []
    for start in range(0, len(ids), size):
        chunk = ids[start : start + size]
        deltas.append((spell(token_id for token_id in chunk if token_id in WORDS), chunk))
    events = drive(deltas, markers_in_text=False)
    assert events == [
        Reasoning("use "),
        ToolCall("f", '{"a": "use  ok"}'),
        Content(" ok".strip()),
    ]


def test_a_typed_end_marker_at_the_very_end_and_a_cut_opener_are_no_content():
    assert drive([("Done.<turn|>", [200])]) == [Content("Done.")]
    assert drive([("Done.<|tool_call", [200])]) == [Content("Done.")]
    assert drive([("a <turn|> b", [200])]) == [Content("a <turn|> b")]


def test_withholding_tells_when_silence_grows():
    one = scanner()
    assert not one.withholding
    one.feed("Hi", [102])
    assert not one.withholding
    one.feed("<|tool_call>", [OPEN])
    one.feed("call:f{a:", [100])
    assert one.withholding
    one.feed("}<tool_call|>", [101, CLOSE])
    assert not one.withholding


def test_a_scanner_ends_once():
    one = scanner()
    one.feed("<|tool_call>call:f{}", [OPEN, 100])
    assert one.finish() == [ToolCall("f", "{}")]
    assert one.finish() == []
    assert one.feed("more", [102]) == []
