"""The demo's client against servers that answer from a script."""

from __future__ import annotations

import io
import json

import httpx
import pytest
from rich.console import Console

from localcluster.demo import stream

TOKENS = [48, 355, 49]


def server(lines, *, status=200):
    requests = []

    def answer(request):
        requests.append((request.url.path, json.loads(request.content)))
        if request.url.path == "/tokenize":
            return httpx.Response(200, json={"tokens": TOKENS})
        return httpx.Response(status, text="".join(f"{line}\n\n" for line in lines))

    client = httpx.Client(base_url="http://server", transport=httpx.MockTransport(answer))
    return client, requests


def events(*chunks):
    return [f"data: {json.dumps(chunk)}" for chunk in chunks]


def test_it_dictates_the_servers_own_tokens_of_gemma_text():
    client, requests = server(["data: [DONE]"])
    assert list(stream.stream_chunks(client, "gemma-4")) == []
    (_, tokenize), (path, body) = requests
    assert tokenize == {"model": "gemma-4", "prompt": stream.gemma_text(), "add_special_tokens": False}
    assert path == "/v1/chat/completions"
    assert body["stream"] is True
    assert body["vllm_xargs"] == {"forced_token_ids": TOKENS}
    assert {tool["function"]["name"] for tool in body["tools"]} == {call.name for call in stream.CALLS}


def test_the_dictated_text_is_gemmas_own_markup():
    text = stream.gemma_text()
    assert '<|tool_call>call:get_weather{city:<|"|>Zürich<|"|>,days:3}<tool_call|>' in text
    assert "recursive:true}" in text
    assert text.count("<|tool_call>") == text.count("<tool_call|>") == 3


def test_chunks_come_as_sent_and_comments_are_skipped():
    client, _ = server([": ping", *events({"choices": [1]}, {"choices": [2]}), "data: [DONE]"])
    assert list(stream.stream_chunks(client, "m")) == [{"choices": [1]}, {"choices": [2]}]


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
        list(stream.stream_chunks(client, "m"))


def test_a_server_that_is_not_there_says_what_to_look_at():
    def refuse(request):
        raise httpx.ConnectError("refused", request=request)

    client = httpx.Client(base_url="http://server", transport=httpx.MockTransport(refuse))
    with pytest.raises(stream.StreamError, match="is the pod ready"):
        list(stream.stream_chunks(client, "m"))


def test_a_tool_call_is_shown_whole_and_marked():
    screen = io.StringIO()
    call = {"index": 0, "id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": "ü[b]"}'}}
    stream.show_chunk(Console(file=screen, width=20), 1.5, {"choices": [{"delta": {"tool_calls": [call]}}]})
    (line,) = screen.getvalue().splitlines()
    assert "TOOL CALL" in line
    assert json.loads(line[line.index("[") :]) == [call]
