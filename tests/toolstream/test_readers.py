import json

import pytest

from toolstream.core.exchange import CHAT, MESSAGES, RESPONSES
from toolstream.core.readers import read

ENDPOINTS = (CHAT, RESPONSES, MESSAGES)
CALLS = [("read_file", '{"path": "a.txt"}'), ("list_tasks", "{}")]


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_right_answer_is_read_whole(make, endpoint, streaming):
    body = make.right_answer(endpoint, streaming, CALLS, "I look.")
    answer = read(make.exchange(body if streaming else [body], endpoint=endpoint, streaming=streaming))
    assert [(call.name, json.loads(call.arguments)) for call in answer.calls] == [
        ("read_file", {"path": "a.txt"}),
        ("list_tasks", {}),
    ]
    assert len({call.id for call in answer.calls}) == 2
    assert answer.text == "I look."
    assert answer.ended
    assert answer.faults == []


@pytest.mark.parametrize("chunk", ["{", "[1]", "null", "NaN", '{"a":' * 100_000, "9" * 5000], ids=lambda text: text[:6])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_what_is_no_object_is_a_fault_and_never_an_exception(make, endpoint, chunk):
    answer = read(make.exchange([chunk], endpoint=endpoint))
    assert [(fault.kind, fault.chunk) for fault in answer.faults] == [("json", 0)]


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": None},
        {"choices": [3]},
        {"choices": [{"delta": "text"}]},
        {"choices": [{"delta": {"content": ["text"]}}]},
        {"choices": [{"delta": {"tool_calls": {"index": 0}}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": "f"}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": {"path": "a"}}}]}}]},
        {"choices": [{"delta": {}, "finish_reason": 1}]},
    ],
    ids=json.dumps,
)
def test_a_chat_chunk_of_another_shape_is_a_fault(make, chunk):
    answer = read(make.exchange([chunk]))
    assert [fault.kind for fault in answer.faults] == ["shape"]


def test_fragments_of_one_index_are_one_call(make):
    first = make.chat_call("read_file", '{"path"')
    rest = {"index": 0, "function": {"arguments": ': "a"}'}}
    answer = read(make.exchange(make.chat_stream(first, rest)))
    assert [(call.name, call.arguments, len(call.pieces)) for call in answer.calls] == [
        ("read_file", '{"path": "a"}', 2)
    ]


def test_other_choices_are_left_alone(make):
    other = {"choices": [{"index": 1, "delta": {"content": "no", "tool_calls": [make.chat_call("f", "{}")]}}]}
    answer = read(make.exchange([other, *make.chat_stream()]))
    assert (answer.text, answer.calls) == ("", [])


def test_reasoning_is_read_under_both_names(make):
    chunks = [make.chat_chunk({"reasoning_content": "a"}), make.chat_chunk({"reasoning": "b"})]
    assert read(make.exchange(chunks)).reasoning == "ab"


@pytest.mark.parametrize(
    ("endpoint", "event"),
    [
        (CHAT, {"error": {"message": "no"}}),
        (RESPONSES, {"type": "error", "message": "no"}),
        (MESSAGES, {"type": "error", "error": {"message": "no"}}),
    ],
)
def test_an_error_inside_a_stream_is_a_fault(make, endpoint, event):
    assert [fault.kind for fault in read(make.exchange([event], endpoint=endpoint)).faults] == ["error"]


def test_responses_arguments_that_come_with_the_item_alone_are_read(make):
    events = [event for event in make.responses_stream(CALLS[0]) if "arguments.delta" not in event["type"]]
    answer = read(make.exchange(events, endpoint=RESPONSES))
    assert [call.arguments for call in answer.calls] == [CALLS[0][1]]
    assert answer.faults == []


def test_a_tool_use_block_without_input_is_an_empty_object(make):
    events = [event for event in make.messages_stream(CALLS[0]) if event["type"] != "content_block_delta"]
    assert [call.arguments for call in read(make.exchange(events, endpoint=MESSAGES)).calls] == ["{}"]


@pytest.mark.parametrize(
    ("endpoint", "lost"),
    [(RESPONSES, "response.output_item.added"), (MESSAGES, "content_block_start")],
)
def test_deltas_of_what_did_not_begin_are_out_of_order(make, endpoint, lost):
    events = [event for event in make.right_answer(endpoint, True, CALLS[:1]) if event["type"] != lost]
    faults = read(make.exchange(events, endpoint=endpoint)).faults
    assert faults
    assert {fault.kind for fault in faults} == {"order"}


def test_responses_that_end_with_other_arguments_are_out_of_order(make):
    events = make.responses_stream(CALLS[0])
    done = next(event for event in events if event["type"] == "response.function_call_arguments.done")
    done["arguments"] = "{}"
    assert [fault.kind for fault in read(make.exchange(events, endpoint=RESPONSES)).faults] == ["order"]
