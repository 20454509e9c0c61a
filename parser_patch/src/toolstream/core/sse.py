"""Server-sent events, decoded incrementally (WHATWG HTML, section 9.2.6)."""

from __future__ import annotations

import re
from typing import NamedTuple

LINE_LIMIT = 4 * 1024 * 1024
"""Bytes of one line: four times the longest argument that the parser contract speaks of."""

_FIELDS = {"", "data", "event", "id", "retry"}
_BEGINNINGS = tuple(f"{field}:".encode() for field in _FIELDS)
_LINE_END = re.compile(rb"\r\n|\n|\r")


class LineTooLong(ValueError):  # noqa: N818  (a state of the stream, named as the field names it)
    """A line longer than the limit: no client would hold it."""


class Event(NamedTuple):
    """One event: its `data` lines joined, and its `event` name if it had one."""

    data: str
    name: str | None


class SseDecoder:
    """Bytes in any cutting to events. Costs the same a byte however long a line is.

    Args:
        line_limit: Bytes.
    """

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        self._line_limit = line_limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._data: list[str] = []
        self._name: str | None = None
        self._after_cr = False
        self._recognised = False

    def feed(self, received: bytes) -> list[Event]:
        """The events that these bytes complete. Bytes that are no UTF-8 become U+FFFD.

        Raises:
            LineTooLong: A line passed the limit; the decoder is of no use after it.
        """
        if self._after_cr and received.startswith(b"\n"):
            received = received[1:]
        if received:
            self._after_cr = received.endswith(b"\r")
        events: list[Event] = []
        start = 0
        for end in _LINE_END.finditer(received):
            self._add(received[start : end.start()])
            start = end.end()
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._add(received[start:])
        return events

    @property
    def unfinished(self) -> str:
        """What came after the last complete event: empty when the stream ended between two events."""
        return "\n".join([*self._data, b"".join(self._pieces).decode(errors="replace")]).strip()

    @property
    def recognised(self) -> bool:
        """Whether anything so far was a field, the beginning of one, or a comment."""
        return self._recognised or b"".join(self._pieces).startswith(_BEGINNINGS)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._line_limit:
            raise LineTooLong(f"a line longer than {self._line_limit} bytes")
        if piece:
            self._pieces.append(piece)

    def _end_line(self) -> Event | None:
        line = b"".join(self._pieces).decode(errors="replace")
        self._pieces, self._size = [], 0
        if line:
            self._field(line)
            return None
        event = Event("\n".join(self._data), self._name) if self._data else None
        self._data, self._name = [], None
        return event

    def _field(self, line: str) -> None:
        field, _, value = line.partition(":")
        self._recognised = self._recognised or field in _FIELDS
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
