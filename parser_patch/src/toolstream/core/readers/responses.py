"""Responses: https://platform.openai.com/docs/api-reference/responses-streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolstream.core.readers.reading import Object, Reading, read_either

if TYPE_CHECKING:
    from toolstream.core.exchange import Answer, Exchange

_ENDS = {"response.completed", "response.incomplete", "response.failed"}


def read(exchange: Exchange) -> Answer:
    """Read a response, streamed or not. A call's arguments are those of its deltas, or of its items without any."""
    return read_either(exchange, stream=lambda reading: _Stream(reading).read(), whole=_whole)


def _whole(reading: Reading, body: Object) -> None:
    answer = reading.answer
    if body.get("error") is not None:
        reading.fault("error", "the server reports an error")
        return
    for index, item in enumerate(reading.objects_in(body, "output")):
        if item.get("type") == "function_call":
            _item_piece(reading, index, item, item.get("arguments"))
        elif item.get("type") == "message":
            answer.text += "".join(reading.string(part, "text") for part in reading.objects_in(item, "content"))
    answer.finish_reason = reading.string(body, "status") or None
    answer.ended = answer.finish_reason is not None


def _item_piece(reading: Reading, index: object, item: Object, arguments: object) -> None:
    reading.piece(index=index, id=item.get("call_id"), type="function", name=item.get("name"), arguments=arguments)


class _Stream:
    """The events of one response, checked against the order that the protocol gives them."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._open: dict[object, str] = {}

    def read(self) -> None:
        for event in self._reading.objects():
            kind = event.get("type")
            if kind == "error" or event.get("error") is not None:
                self._reading.fault("error", "the server reports an error")
            elif kind == "response.output_item.added":
                self._added(event)
            elif kind == "response.function_call_arguments.delta":
                self._delta(event)
            elif kind in {"response.function_call_arguments.done", "response.output_item.done"}:
                self._done(event)
            elif kind == "response.output_text.delta":
                self._reading.answer.text += self._reading.string(event, "delta")
            elif kind in _ENDS:
                response = self._reading.object(event, "response")
                self._reading.answer.finish_reason = self._reading.string(response, "status") or None
                self._reading.answer.ended = True

    def _added(self, event: Object) -> None:
        item = self._reading.object(event, "item")
        if item.get("type") == "function_call":
            self._open[_key(event)] = ""
            _item_piece(self._reading, event.get("output_index"), item, None)

    def _delta(self, event: Object) -> None:
        if _key(event) not in self._open:
            self._reading.fault("order", "arguments for an output item that was not added")
        delta = self._reading.string(event, "delta")
        self._open[_key(event)] = self._open.get(_key(event), "") + delta
        self._reading.piece(index=event.get("output_index"), arguments=delta)

    def _done(self, event: Object) -> None:
        item = self._reading.object(event, "item") or event
        if "arguments" not in item:
            return
        key, arguments = _key(event), self._reading.string(item, "arguments")
        if key not in self._open:
            self._reading.fault("order", "an output item ends that was not added")
        elif not self._open[key]:
            self._open[key] = arguments
            self._reading.piece(index=event.get("output_index"), arguments=arguments)
        elif self._open[key] != arguments:
            self._reading.fault("order", "the arguments at the end are not those of the deltas")


def _key(event: Object) -> object:
    return str(event.get("output_index"))
