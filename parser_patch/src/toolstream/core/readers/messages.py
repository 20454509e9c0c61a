"""Anthropic messages: https://docs.anthropic.com/en/api/messages-streaming."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolstream.core.readers.reading import Object, Reading, read_either

if TYPE_CHECKING:
    from toolstream.core.exchange import Answer, Exchange


def read(exchange: Exchange) -> Answer:
    """Read a message, streamed or not. A whole body's `input` object becomes JSON text again."""
    return read_either(exchange, stream=lambda reading: _Stream(reading).read(), whole=_whole)


def _whole(reading: Reading, body: Object) -> None:
    if body.get("type") == "error" or body.get("error") is not None:
        reading.fault("error", "the server reports an error")
        return
    for index, block in enumerate(reading.objects_in(body, "content")):
        if block.get("type") == "text":
            reading.answer.text += reading.string(block, "text")
        elif block.get("type") == "tool_use":
            _block_piece(reading, index, block, json.dumps(block.get("input"), ensure_ascii=False))
    reading.answer.finish_reason = reading.string(body, "stop_reason") or None
    reading.answer.ended = reading.answer.finish_reason is not None


def _block_piece(reading: Reading, index: object, block: Object, arguments: object) -> None:
    reading.piece(index=index, id=block.get("id"), type="function", name=block.get("name"), arguments=arguments)


class _Stream:
    """The events of one message; a block's deltas are legal only between its start and its stop."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._open: dict[str, bool] = {}  # block index -> whether a piece of input has come

    def read(self) -> None:
        for event in self._reading.objects():
            kind = event.get("type")
            if kind == "error":
                self._reading.fault("error", "the server reports an error")
            elif kind == "content_block_start":
                self._start(event)
            elif kind == "content_block_delta":
                self._delta(event)
            elif kind == "content_block_stop":
                self._stop(event)
            elif kind == "message_delta":
                reason = self._reading.string(self._reading.object(event, "delta"), "stop_reason")
                self._reading.answer.finish_reason = reason or self._reading.answer.finish_reason
            elif kind == "message_stop":
                self._reading.answer.ended = True
                if self._open:
                    self._reading.fault("order", "the message stops inside a content block")

    def _start(self, event: Object) -> None:
        block, key = self._reading.object(event, "content_block"), str(event.get("index"))
        if key in self._open:
            self._reading.fault("order", "a content block starts twice")
        if block.get("type") == "tool_use":
            self._open[key] = False
            _block_piece(self._reading, event.get("index"), block, None)
        else:
            self._open[key] = True
            self._reading.answer.text += self._reading.string(block, "text")

    def _delta(self, event: Object) -> None:
        delta, key = self._reading.object(event, "delta"), str(event.get("index"))
        if key not in self._open:
            self._reading.fault("order", "a delta for a content block that is not open")
        if delta.get("type") == "text_delta":
            self._reading.answer.text += self._reading.string(delta, "text")
        elif delta.get("type") == "thinking_delta":
            self._reading.answer.reasoning += self._reading.string(delta, "thinking")
        elif delta.get("type") == "input_json_delta":
            piece = self._reading.string(delta, "partial_json")
            self._open[key] = self._open.get(key, False) or bool(piece)
            self._reading.piece(index=event.get("index"), arguments=piece)

    def _stop(self, event: Object) -> None:
        key = str(event.get("index"))
        if key not in self._open:
            self._reading.fault("order", "a content block stops that is not open")
        elif not self._open[key]:
            # The clients read no input at all as an empty object, so it is one.
            self._reading.piece(index=event.get("index"), arguments="{}")
        self._open.pop(key, None)
