"""The recorder between a client and a scripted stand-in for a server."""

import json

import aiohttp
import pytest

from gemmaserve_parser.replay import Case, problems, run_core
from toolstream.commands.record import Recorder, RecordPlan
from toolstream.core.redact import redact_case
from toolstream.edges.client import Client, Server

KEY = "tok-0123456789abcdef"
TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]
REQUEST = {"model": "stand-in", "stream": True, "tools": TOOLS, "messages": [{"role": "user", "content": "private"}]}


async def through(server, tmp_path, request, *, path="/v1/chat/completions", token_ids=False, limit=10, times=1):
    """Send a request through a recorder; the answers, and the cases it wrote."""
    out = tmp_path / "cases.jsonl"
    async with Client(Server(server.url), timeout=5) as client, aiohttp.ClientSession() as session:
        recorder = Recorder(Server(server.url), client, RecordPlan(out, token_ids, limit), lambda *_: None)
        async with recorder.serving("127.0.0.1", 0) as port:
            answers = []
            for _ in range(times):
                headers = {"authorization": f"Bearer {KEY}", "cookie": "session=abc"}
                url = f"http://127.0.0.1:{port}{path}"
                async with session.post(url, json=request, headers=headers) as response:
                    answers.append((response.status, response.content_type, await response.read()))
    cases = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return answers, cases


async def test_what_passes_through_is_unchanged(make, server, scripts, tmp_path):
    events = make.chat_stream(make.chat_call("read_file", '{"path": "ü"}'), text="See: ")
    server.script = scripts.answers(events)
    [(status, content_type, body)], _ = await through(server, tmp_path, REQUEST)
    assert (status, content_type, body) == (200, "text/event-stream", scripts.sse(events))
    assert server.requests[0].body == REQUEST
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_case_replays_and_holds_neither_messages_nor_headers_nor_keys(make, server, scripts, tmp_path):
    server.script = scripts.answers(make.chat_stream(make.chat_call("read_file", json.dumps({"path": KEY}))))
    _, [fields] = await through(server, tmp_path, REQUEST)
    written = json.dumps(fields)
    assert KEY not in written
    assert "private" not in written
    assert "cookie" not in written
    case = Case(fields)
    assert [call["arguments"] for call in case.expected[0]["tool_calls"]] == [{"path": "[secret]"}]
    for mode in case.modes:
        assert problems(case, run_core(case, mode)) == []


async def test_a_vllm_server_gives_the_models_own_words(make, server, scripts, tmp_path):
    said = '<|tool_call>call:read_file{path:<|"|>a<|"|>}<tool_call|>'
    chunk = make.chat_chunk({"tool_calls": [make.chat_call("read_file", '{"path": "a"')]}, "tool_calls")
    chunk["choices"][0]["token_ids"] = [*map(ord, said)]
    server.small["/detokenize"] = lambda body: {"prompt": "".join(map(chr, body["tokens"]))}
    server.script = scripts.answers([chunk, "[DONE]"])
    _, [fields] = await through(server, tmp_path, REQUEST, token_ids=True)
    assert server.requests[0].body == REQUEST | {"return_token_ids": True}
    assert fields["text"] == said
    assert fields["expect"]["tool_calls"] == [{"name": "read_file", "arguments": {"path": "a"}}]
    assert fields["title"] == "recorded: args_invalid_json"


async def test_requests_without_tools_and_other_paths_are_handed_on_only(make, server, scripts, tmp_path):
    server.script = scripts.answers(make.chat_stream(text="Hello", finish_reason="stop"))
    plain = {key: value for key, value in REQUEST.items() if key != "tools"}
    assert (await through(server, tmp_path, plain))[1] == []
    assert (await through(server, tmp_path, REQUEST, path="/v1/completions"))[1] == []
    assert [request.path for request in server.requests] == ["/v1/chat/completions", "/v1/completions"]


async def test_after_its_last_case_it_only_hands_on(make, server, scripts, tmp_path):
    server.script = scripts.answers(make.chat_stream(make.chat_call("read_file", "{}")))
    answers, cases = await through(server, tmp_path, REQUEST, limit=2, times=3)
    assert [status for status, _, _ in answers] == [200, 200, 200]
    assert len(cases) == 2


async def test_a_stream_that_breaks_breaks_for_the_client_and_is_recorded(server, scripts, tmp_path):
    async def break_off(_request, send):
        await send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        await send(b"9\r\ndata: {}\n\r\n")
        raise ConnectionError

    server.script = break_off
    with pytest.raises(aiohttp.ClientPayloadError):
        await through(server, tmp_path, REQUEST)
    assert "disconnect" in (tmp_path / "cases.jsonl").read_text()


async def test_a_server_that_is_not_there_is_a_502_that_says_so(server, tmp_path, unused_tcp_port):
    server.url = f"http://127.0.0.1:{unused_tcp_port}"
    [(status, _, body)], _ = await through(server, tmp_path, REQUEST)
    assert status == 502
    assert server.url in body.decode()


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrstuv123456",
        "hf_abcdefghijklmnopqrstuvwx",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    ],
)
def test_what_looks_like_a_credential_goes(secret):
    case = {"text": f"use {secret}!", "chunks": [f"use {secret[:6]}", f"{secret[6:]}!"], "expect": {"content": secret}}
    assert redact_case(case) == {"text": "use [secret]!", "expect": {"content": "[secret]"}}


def test_what_does_not_look_like_one_stays():
    case = {"text": "task-list risk-free sk-1 eyJ", "chunks": ["task-list ", "risk-free sk-1 eyJ"], "n": 1}
    assert redact_case(case, ["short"]) == case
