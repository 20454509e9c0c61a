"""Servers that mean no good, or do no good: each ends in a class, soon, and with what it sent at hand."""

import asyncio
import json
import re
import time

import pytest

from toolstream.core.outcomes import classify
from toolstream.core.readers import read
from toolstream.edges import client as client_module
from toolstream.edges.client import Client, Server

TIMEOUT = 1.0
PATIENCE = 30.0  # for what ends by itself: a busy machine is no fault
PIECE = b'data: {"choices": []}\n\n' * 500


async def endless(_request, send, head):
    await send(head)
    while True:
        await send(PIECE)


async def slow_drip(_request, send, head):
    await send(head)
    for byte in PIECE:
        await send(bytes([byte]))
        await asyncio.sleep(0.05)


async def garbage_body(_request, send, head):
    await send(head + bytes(range(256)) * 40)


async def garbage_http(_request, send, _head):
    await send(bytes(range(256)) * 40)


async def garbage_inside_events(_request, send, head):
    await send(head + b"data: \xff\xfe{{{\n\n" * 20)


async def half_a_chunk(_request, send, head):
    await send(head + b'data: {"choices": [{"delta": {"tool_c')


async def wrong_content_type(_request, send, _head):
    await send(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>")


async def line_of_ten_megabytes(_request, send, head):
    await send(head + b"data: ")
    for _ in range(160):
        await send(b"x" * 65536)
    await send(b"\n\n")


async def nothing(_request, _send, _head):
    return


async def header_without_end(_request, send, _head):
    await send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await send(b"x-more: " + b"y" * 8000)


async def redirect(_request, send, _head):
    await send(b"HTTP/1.1 307 Go\r\nlocation: http://192.0.2.1/\r\ncontent-length: 0\r\n\r\n")


async def deep_nesting(_request, send, head):
    await send(head + b"data: " + b'{"a":' * 200_000 + b"\n\n")


HOSTILE = {
    endless: "timeout",
    slow_drip: "timeout",
    garbage_body: "http_error",
    garbage_http: "http_error",
    garbage_inside_events: "http_error",
    half_a_chunk: "truncated",
    wrong_content_type: "http_error",
    line_of_ten_megabytes: "http_error",
    nothing: "disconnect",
    header_without_end: "http_error",
    redirect: "http_error",
    deep_nesting: "http_error",
}


async def ask(server, scripts, script, *, stream=True, seconds=PATIENCE):
    async def run(request, send):
        await script(request, send, scripts.STREAM_HEAD)

    server.script = run
    async with Client(Server(server.url), timeout=seconds) as client:
        started = time.monotonic()
        exchange = await client.send("chat", {"stream": stream})
        return exchange, time.monotonic() - started


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("script", HOSTILE, ids=lambda script: script.__name__)
async def test_a_hostile_server_ends_in_a_class(server, scripts, script, stream):
    allowed = TIMEOUT if HOSTILE[script] == "timeout" else PATIENCE
    exchange, seconds = await ask(server, scripts, script, stream=stream, seconds=allowed)
    found = classify(read(exchange), None)
    if stream:
        assert found.outcome == HOSTILE[script]
    else:
        assert found.outcome in {"http_error", "timeout", "disconnect"}
    assert seconds < PATIENCE
    assert isinstance(exchange.quote(None), str)


async def test_an_endless_answer_is_cut_at_its_size(server, scripts, monkeypatch):
    monkeypatch.setattr(client_module, "SIZE_LIMIT", 100_000)
    exchange, seconds = await ask(server, scripts, endless)
    assert exchange.trouble == "timeout"
    assert "bytes" in exchange.detail
    assert seconds < PATIENCE


async def test_what_came_before_the_end_is_kept(server, scripts):
    async def some_then_silence(_request, send, head):
        await send(head + b'data: {"choices": []}\n\ndata: {"cho')
        await asyncio.sleep(30)

    exchange, _ = await ask(server, scripts, some_then_silence, seconds=TIMEOUT)
    assert [chunk.text for chunk in exchange.chunks] == ['{"choices": []}']
    assert exchange.unfinished == 'data: {"cho'
    assert exchange.trouble == "timeout"


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://", ""])
def test_a_url_that_is_none_is_refused_with_an_example(url):
    with pytest.raises(ValueError, match="http://localhost:8000"):
        Server(url).path("/v1/models")


@pytest.mark.parametrize("url", ["http://host:1", "http://host:1/", "http://host:1/v1", "http://host:1/v1/"])
def test_a_url_may_end_in_v1(url):
    assert str(Server(url).path("/v1/models")) == "http://host:1/v1/models"


def test_a_url_may_have_a_path():
    assert str(Server("https://host/models/gemma/v1").path("/version")) == "https://host/models/gemma/version"


async def test_a_server_that_drops_idle_connections_is_no_fault(make, scripts):
    answer = scripts.http(json.dumps(make.right_answer("chat", False, []))).replace(b"connection: close\r\n", b"")

    async def one_answer_a_connection(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head)[1]))
        writer.write(answer)
        await reader.read(1)  # the next request on this connection, or its end
        writer.transport.abort()

    server = await asyncio.start_server(one_answer_a_connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Client(Server(f"http://127.0.0.1:{port}"), timeout=PATIENCE) as client:
        found = [await client.send("chat", {"messages": []}) for _ in range(3)]
    assert [(each.status, each.trouble) for each in found] == [(200, None)] * 3
