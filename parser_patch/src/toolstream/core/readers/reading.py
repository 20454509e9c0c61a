"""What the three readers share: JSON objects out of chunks, fields out of objects, faults noted on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolstream.core.exchange import Answer, Fault, Piece, gather_calls
from toolstream.core.strictjson import NotJson, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolstream.core.exchange import Exchange

Object = dict[str, Any]

DONE = "[DONE]"


class Reading:
    """An answer in the making."""

    def __init__(self, exchange: Exchange) -> None:
        self.answer = Answer(exchange)
        self.pieces: list[Piece] = []
        self.done = False
        self._number = 0

    def objects(self) -> Iterator[Object]:
        """The chunks that are JSON objects, in order; others become faults. `[DONE]` sets `done`."""
        for number, chunk in enumerate(self.answer.exchange.chunks):
            self._number = number
            if chunk.text.strip() == DONE and self.answer.exchange.streaming:
                self.done = True
                continue
            try:
                value = loads(chunk.text)
            except NotJson as error:
                self.fault("json", f"not JSON: {error}")
                continue
            if isinstance(value, dict):
                yield value
            else:
                self.fault("json", "not a JSON object")

    def fault(self, kind: Any, detail: str) -> None:  # noqa: ANN401  (Fault's own literal)
        """Note a fault of the chunk being read."""
        self.answer.faults.append(Fault(kind, self._number, detail))

    def piece(self, *, index: object, arguments: object, **fields: Any) -> None:  # noqa: ANN401  (as they came)
        """Note a delta of a tool call in the chunk being read."""
        known = {"id": None, "type": None, "name": None, **fields}
        self.pieces.append(Piece(chunk=self._number, index=index, arguments=arguments, **known))

    def object(self, parent: Object, key: str) -> Object:
        """The object under a key; an empty one, and a fault, where something else stands."""
        return self._of_type(parent, key, dict) or {}

    def objects_in(self, parent: Object, key: str) -> list[Object]:
        """The objects of the array under a key; what is no object becomes a fault."""
        items = self._of_type(parent, key, list) or []
        found = [item for item in items if isinstance(item, dict)]
        if len(found) != len(items):
            self.fault("shape", f"{key!r} holds something that is not an object")
        return found

    def string(self, parent: Object, key: str) -> str:
        """The string under a key; an empty one, and a fault, where something else stands."""
        return self._of_type(parent, key, str) or ""

    def _of_type(self, parent: Object, key: str, kind: type) -> Any:  # noqa: ANN401  (any JSON value)
        value = parent.get(key)
        if value is None or isinstance(value, kind):
            return value
        self.fault("shape", f"{key!r} is {type(value).__name__}, not {kind.__name__}")
        return None


def read_either(
    exchange: Exchange, *, stream: Callable[[Reading], None], whole: Callable[[Reading, Object], None]
) -> Answer:
    """An answer by the reader of its mode: of the whole stream, or of each body (there is one)."""
    reading = Reading(exchange)
    if exchange.streaming:
        stream(reading)
    else:
        for body in reading.objects():
            whole(reading, body)
    reading.answer.calls = gather_calls(reading.pieces)
    return reading.answer
