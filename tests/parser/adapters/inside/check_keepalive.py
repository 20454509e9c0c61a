"""The streams of responses and messages say that they live, in the installed vLLM's own converters."""

import asyncio

import pytest
from vllm.entrypoints.anthropic.serving import AnthropicServingMessages
from vllm.entrypoints.openai.responses import api_router

from gemmaserve_parser.adapters import keepalive

SECONDS = 0.05


@pytest.fixture
def beating(monkeypatch):
    keepalive.install()
    keepalive.install()
    monkeypatch.setenv("GEMMASERVE_HEARTBEAT_SECONDS", str(SECONDS))


async def silent():
    await asyncio.sleep(SECONDS * 6)
    return
    yield


def collect(stream):
    async def read():
        return [line async for line in stream]

    return asyncio.run(read())


def test_a_silent_responses_stream_has_comments(beating):
    lines = collect(api_router._convert_stream_to_sse_events(silent()))
    assert keepalive.COMMENT in lines


def test_a_silent_messages_stream_has_pings(beating):
    server = AnthropicServingMessages.__new__(AnthropicServingMessages)
    lines = collect(AnthropicServingMessages.message_stream_converter(server, silent()))
    assert keepalive.PING in lines


def test_they_can_be_turned_off(beating, monkeypatch):
    monkeypatch.setenv("GEMMASERVE_HEARTBEAT_SECONDS", "0")
    assert collect(api_router._convert_stream_to_sse_events(silent())) == []
