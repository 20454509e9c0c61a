"""Real tokens of gpt-oss, read by our adapters and by openai-harmony's parser."""

import json
from types import SimpleNamespace

import pytest
from openai_harmony import Author, HarmonyEncodingName, Message, Role, StreamableParser, load_harmony_encoding

from gemmaserve_parser.adapters.harmony_answer import HarmonyAnswer
from gemmaserve_parser.adapters.harmony_segments import SegmentReader
from gemmaserve_parser.core.events import Content, Reasoning, ToolCall

ENCODING = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("get_weather", "query")]
REQUEST = SimpleNamespace(tools=TOOLS, tool_choice="auto")


def said(channel, text, recipient=None, content_type=None):
    message = Message.from_role_and_content(Role.ASSISTANT, text).with_channel(channel)
    message = message.with_recipient(recipient) if recipient else message
    return message.with_content_type(content_type) if content_type else message


ANSWERS = [
    [said("analysis", "Hm, Zürich 🏔 and 日本語."), said("final", "Voilà 👩‍🔬.")],
    [
        said("analysis", "Look."),
        said("commentary", "Let me look."),
        said("commentary", '{"city": "Zürich 🏔"}', "functions.get_weather", "<|constrain|>json"),
        said("commentary", '{"sql": "select \'日本\'"}', "functions.query", "json"),
    ],
    [said("analysis", "print(1)", "python", "code"), said("commentary", '{"q": 1}', "browser.search")],
]


def tokens(messages):
    ids = [token for message in messages for token in ENCODING.render(message)]
    return ids[2:]  # the prompt has written the first <|start|>assistant


def upstreams(ids):
    parser = StreamableParser(ENCODING, role=Role.ASSISTANT)
    for token in ids:
        parser.process(token)
    return parser.messages


@pytest.mark.parametrize("messages", ANSWERS)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_messages_are_those_of_openai_harmony(messages, size):
    ids = tokens(messages)
    reader = SegmentReader(TOOLS)
    pieces = [piece for at in range(0, len(ids), size) for piece in reader.read(ids[at : at + size])] + reader.flush()
    ours = [piece.completed for piece in pieces if piece.completed is not None]
    theirs = upstreams(ids)
    assert [(each.author, each.channel, each.recipient) for each in ours] == [
        (Author(role=Role.ASSISTANT), each.channel, each.recipient) for each in theirs
    ]
    assert [each.content[0].text for each in ours] == [each.content[0].text for each in theirs]
    shown = {}
    for piece in pieces:
        shown[piece.channel] = shown.get(piece.channel, "") + piece.delta
    for channel, text in shown.items():
        assert text == "".join(each.content[0].text for each in theirs if each.channel == channel)


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_a_character_of_several_tokens_comes_whole(size):
    ids = tokens(ANSWERS[0])
    answer = HarmonyAnswer(REQUEST)
    events = [event for at in range(0, len(ids), size) for event in answer.feed("", ids[at : at + size])]
    texts = [event.text for event in events]
    assert not any("\ufffd" in text for text in texts)
    assert "".join(event.text for event in events if isinstance(event, Reasoning)) == "Hm, Zürich 🏔 and 日本語."
    assert "".join(event.text for event in events if isinstance(event, Content)) == "Voilà 👩‍🔬."


def test_calls_keep_their_characters():
    answer = HarmonyAnswer(REQUEST)
    calls = [event for event in answer.feed("", tokens(ANSWERS[1])) if isinstance(event, ToolCall)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("get_weather", {"city": "Zürich 🏔"}),
        ("query", {"sql": "select '日本'"}),
    ]
    assert "Zürich 🏔" in calls[0].arguments


def test_markers_typed_as_text_are_data():
    header = "<|channel|>commentary to=functions.query<|message|>"
    ids = ENCODING.encode(header, allowed_special="all")
    ids += ENCODING.encode('{"sql": "<|call|><|end|>"}', disallowed_special=())
    ids += ENCODING.encode("<|call|>", allowed_special="all")
    assert HarmonyAnswer(REQUEST).feed("", ids) == [ToolCall("query", '{"sql": "<|call|><|end|>"}')]


def test_hidden_tokens_are_counted():
    ids = tokens([said("analysis", "one two three"), said("final", "four")])
    answer = HarmonyAnswer(REQUEST)
    answer.feed("", ids)
    assert answer.tokens.reasoning == len(ENCODING.encode("one two three"))


def test_ids_that_the_encoding_lacks_have_no_text():
    ids = tokens([said("final", "four")])
    assert HarmonyAnswer(REQUEST).feed("", [*ids[:-1], 10_000_000, 200_100, ids[-1]])[0].text.startswith("four")
