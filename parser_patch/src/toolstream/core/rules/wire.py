"""Rules of the stream itself: that it is one, that it can be read, that it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolstream.core.exchange import CHAT, RESPONSES
from toolstream.core.rules.rule import (
    AI_SDK_02,
    AI_SDK_2,
    ANTHROPIC,
    MUST,
    OPENAI,
    OPENCODE,
    SHOULD,
    Finding,
    Rule,
    everyone,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolstream.core.exchange import Answer
    from toolstream.core.scenarios import Question

LONGEST_SILENCE = 30.0
"""Seconds: half of the idle time-out that proxies commonly have (nginx's proxy_read_timeout is 60 s)."""


def http_trouble(answer: Answer) -> str | None:
    """What is wrong with the HTTP answer before any chunk is looked at; None for nothing."""
    exchange = answer.exchange
    if exchange.status is None:
        return None
    if not 200 <= exchange.status < 300:
        return f"HTTP status {exchange.status}"
    wanted = "text/event-stream" if exchange.streaming else "application/json"
    if exchange.content_type != wanted:
        return f"content type {exchange.content_type or 'missing'}, not {wanted}"
    return None


def _http(answer: Answer, _question: Question) -> Iterator[Finding]:
    trouble = http_trouble(answer)
    if trouble:
        yield Finding(trouble, 0 if answer.exchange.chunks else None)


def _survives(answer: Answer, _question: Question) -> Iterator[Finding]:
    exchange = answer.exchange
    if exchange.trouble:
        yield Finding(f"{exchange.trouble}: {exchange.detail}")
    elif exchange.unfinished:
        yield Finding("the stream ends inside an event")
    for fault in answer.faults:
        if fault.kind == "error":
            yield Finding(fault.detail, fault.chunk)


def _readable(answer: Answer, _question: Question) -> Iterator[Finding]:
    for fault in answer.faults:
        if fault.kind in {"json", "shape"}:
            yield Finding(fault.detail, fault.chunk)


def _order(answer: Answer, _question: Question) -> Iterator[Finding]:
    for fault in answer.faults:
        if fault.kind == "order":
            yield Finding(fault.detail, fault.chunk)


def _ends(answer: Answer, _question: Question) -> Iterator[Finding]:
    if answer.finish_reason is None:
        yield Finding("no finish reason")
    elif not answer.ended:
        yield Finding("the stream does not end with the protocol's last event")


def _silence(answer: Answer, _question: Question) -> Iterator[Finding]:
    before = 0.0
    for number, chunk in enumerate(answer.exchange.chunks):
        if number and chunk.at - before > LONGEST_SILENCE:
            yield Finding(f"{chunk.at - before:.0f} s of silence before this chunk", number)
        before = chunk.at


RULES = (
    Rule(
        "http-answer",
        MUST,
        everyone("the client reports an API error and gives up the turn"),
        _http,
        "OpenAI API reference, streaming; Anthropic API reference, streaming messages",
        needs_call=False,
    ),
    Rule(
        "stream-survives",
        MUST,
        everyone("the turn is lost: the client sees a broken connection or an error in place of an answer"),
        _survives,
        "the public Harmony reproduction: a stream that does not die",
        needs_call=False,
    ),
    Rule(
        "chunks-readable",
        MUST,
        {
            OPENAI: "the Python client raises on a chunk that is not JSON",
            AI_SDK_02: "validates every chunk by its schema and ends the stream with an error",
            AI_SDK_2: "validates every chunk by its schema and ends the stream with an error",
            OPENCODE: "the session stops with a validation error",
            ANTHROPIC: "the client raises on an event that is not JSON",
        },
        _readable,
        "vercel/ai, packages/openai-compatible, the chunk schema of the chat language model",
        needs_call=False,
    ),
    Rule(
        "events-in-order",
        MUST,
        {
            OPENAI: "the client's accumulator raises on an event for an item or block that it does not know",
            ANTHROPIC: "the client's accumulator raises on a delta for a block that did not start",
        },
        _order,
        "OpenAI API reference, responses streaming; Anthropic API reference, event types",
        endpoints=(RESPONSES, "messages"),
        streaming=True,
        needs_call=False,
    ),
    Rule(
        "stream-ends",
        MUST,
        everyone("without a finish reason and a last event the client cannot tell an answer from a cut one"),
        _ends,
        "OpenAI API reference: finish_reason, `data: [DONE]`; Anthropic: message_stop",
        needs_call=False,
    ),
    Rule(
        "silence-bounded",
        SHOULD,
        everyone("proxies on the way cut a stream that is idle for long"),
        _silence,
        "the parser contract, rule 10",
        endpoints=(CHAT,),
        streaming=True,
        needs_call=False,
    ),
)
