"""The demo's client against servers that answer from a script."""

from __future__ import annotations

import io
import json

import httpx
import pytest
from rich.console import Console

from localcluster.demo import stream


def server(lines, *, status=200):
    requests = []

    def answer(request):
        requests.append((request.url.path, json.loads(request.content)))
        return httpx.Response(status, text="".join(f"{line}\n\n" for line in lines))

    client = httpx.Client(base_url="http://server", transport=httpx.MockTransport(answer))
    return client, requests


def events(*chunks):
    return [f"data: {json.dumps(chunk)}" for chunk in chunks]


def test_the_request_is_an_ordinary_one():
    client, requests = server(["data: [DONE]"])
    assert list(stream.stream_chunks(client, stream.build_request("gemma-4"))) == []
    ((path, body),) = requests
    assert path == "/v1/chat/completions"
    assert body["stream"] is True
    assert body.keys() == {"model", "messages", "tools", "stream", "temperature", "max_tokens"}
    assert {tool["function"]["name"] for tool in body["tools"]} == {call.name for call in stream.CALLS}
    for call in stream.CALLS:
        assert all(value in body["messages"][0]["content"] for value in call.arguments.values())


def test_results_go_back_under_the_ids_of_the_calls():
    deltas = [
        {"index": number, "id": f"call_{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for number in range(3)
    ]
    asked, *results = stream.answered([{"choices": [{"delta": {"tool_calls": [delta]}}]} for delta in deltas])
    assert asked["role"] == "assistant"
    assert [call["id"] for call in asked["tool_calls"]] == ["call_0", "call_1", "call_2"]
    assert [(result["tool_call_id"], result["content"]) for result in results] == [
        (f"call_{number}", text) for number, text in enumerate(stream.RESULTS)
    ]


def test_chunks_come_as_sent_and_comments_are_skipped():
    client, _ = server([": ping", *events({"choices": [1]}, {"choices": [2]}), "data: [DONE]"])
    assert list(stream.stream_chunks(client, {})) == [{"choices": [1]}, {"choices": [2]}]


@pytest.mark.parametrize(
    ("lines", "status", "words"),
    [
        (events({"choices": []}), 200, r"without \[DONE\]"),
        (["data: {half"], 200, "not an event"),
        (events({"error": {"message": "engine died"}}), 200, "engine died"),
        (["no such model"], 404, "404: no such model"),
    ],
)
def test_a_stream_that_goes_wrong_says_how(lines, status, words):
    client, _ = server(lines, status=status)
    with pytest.raises(stream.StreamError, match=words):
        list(stream.stream_chunks(client, {}))


def test_a_server_that_is_not_there_says_what_to_look_at():
    def refuse(request):
        raise httpx.ConnectError("refused", request=request)

    client = httpx.Client(base_url="http://server", transport=httpx.MockTransport(refuse))
    with pytest.raises(stream.StreamError, match="is the pod ready"):
        list(stream.stream_chunks(client, {}))


def test_a_tool_call_is_shown_whole_and_marked():
    screen = io.StringIO()
    call = {"index": 0, "id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": "ü[b]"}'}}
    stream.show_chunk(Console(file=screen, width=20), 1.5, {"choices": [{"delta": {"tool_calls": [call]}}]})
    (line,) = screen.getvalue().splitlines()
    assert "TOOL CALL" in line
    assert json.loads(line[line.index("[") :]) == [call]
