"""Harmony's stream as messages: markers, headers and bodies, whatever they mean.

The format is a row of messages, `<|start|>HEADER<|message|>BODY<|end|>`; the prompt has already written the first
`<|start|>assistant`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.core.calls import Tools
from gemmaserve_parser.core.events import Content
from gemmaserve_parser.core.harmony_header import LONGEST_HEADER, Header, Message
from gemmaserve_parser.core.markers import Marker, fragment_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

START = Marker("<|start|>")
CHANNEL = Marker("<|channel|>")
CONSTRAIN = Marker("<|constrain|>")
MESSAGE = Marker("<|message|>")
END = Marker("<|end|>")
CALL = Marker("<|call|>")
RETURN = Marker("<|return|>")
END_OF_TEXT = Marker("<|endoftext|>")

#: Every special token of Harmony that may stand in an answer. An adapter looks their ids up in the encoding.
MARKERS = (
    START,
    CHANNEL,
    CONSTRAIN,
    MESSAGE,
    END,
    CALL,
    RETURN,
    END_OF_TEXT,
    Marker("<|startoftext|>"),
    Marker("<|endofprompt|>"),
)

#: The markers that close a message.
CLOSERS = frozenset({END, CALL, RETURN, END_OF_TEXT})

#: vLLM's finish reasons of an answer that was cut.
TRUNCATIONS = frozenset({"length", "abort", "error"})

_BY_TEXT = {str(marker): marker for marker in MARKERS}
_ANY = re.compile("|".join(re.escape(marker) for marker in MARKERS))
_PREFIXES = frozenset(marker[:length] for marker in MARKERS for length in range(1, len(marker)))


class MessageReader(ABC):
    """Reads one answer in any cutting; a subclass says what becomes of its messages.

    Args:
        tools: The request's tools as plain dicts; see `Gemma4Scanner`.
        marker_ids: Token ids of the markers by their text (`MARKERS`). With `decode`, ids alone are read, as
            Harmony's own parser does; without either, the text is, and the characters of a marker are the marker.
        decode: The text of one token id. Asked once for each id that is no marker, in their order, so it may be an
            incremental decoder that keeps the bytes of an unfinished character to itself.
    """

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        marker_ids: Mapping[str, int] | None = None,
        decode: Callable[[int], str] | None = None,
    ) -> None:
        self.tools = Tools(tools)
        self._by_id = {id_: _BY_TEXT[text] for text, id_ in (marker_ids or {}).items() if text in _BY_TEXT}
        self._decode = decode
        self._fragment = ""
        self._header: Header | None = Header()
        self._message = Message()

    @property
    def message(self) -> Message | None:
        """The message whose body is being read; None in a header and between messages."""
        return None if self._header is not None else self._message

    @abstractmethod
    def _begin(self, message: Message) -> None:
        """A message's body begins."""

    @abstractmethod
    def _body(self, text: str) -> None:
        """A piece of the body."""

    @abstractmethod
    def _end(self, marker: Marker | None) -> None:
        """The body ends: by a closer, by what opens the next message, or, None, with the answer."""

    def _read(self, text: str, token_ids: Sequence[int] | None) -> None:
        for piece in self._pieces(text, token_ids):
            if isinstance(piece, Marker):
                self._marker(piece)
            elif piece:
                self._text(piece)

    def _finish(self, *, truncated: bool) -> None:
        """End the answer; the body of a truncated one is not ended."""
        if self._fragment:
            self._text(self._fragment)
        if self._header is not None:
            self._open_without_message(self._header, truncated=truncated)
        if not truncated:
            self._end(None)

    def _pieces(self, text: str, token_ids: Sequence[int] | None) -> Iterable[str]:
        if self._by_id and self._decode is not None and token_ids is not None:
            decode = self._decode
            return (self._by_id.get(id_) or decode(id_) for id_ in token_ids)
        return self._split(self._fragment + text)

    def _split(self, text: str) -> Iterator[str]:
        keep = fragment_start(text, _PREFIXES)
        text, self._fragment = text[:keep], text[keep:]
        position = 0
        for match in _ANY.finditer(text):
            yield text[position : match.start()]
            yield _BY_TEXT[match.group()]
            position = match.end()
        yield text[position:]

    def _marker(self, marker: Marker) -> None:
        if self._message.foreign:
            return
        if self._header is not None:
            self._mark_header(self._header, marker)
        elif marker in CLOSERS or marker in {START, CHANNEL}:
            self._end(marker)
            self._header = Header(started=marker == START)
            if marker == CHANNEL:
                self._header.mark()

    def _mark_header(self, header: Header, marker: Marker) -> None:
        if marker == MESSAGE:
            self._open(header.read(self.tools))
        elif marker in {CHANNEL, CONSTRAIN}:
            prose = header.mark()
            if prose:
                self._open(Message(text=Content))
                self._body(prose)
                self._end(None)
                self._header = header
        elif marker in CLOSERS or marker == START:
            self._open_without_message(header, closed=marker in CLOSERS)
            self._end(marker)
            self._header = None if self._message.foreign else Header(started=marker == START)

    def _text(self, text: str) -> None:
        if self._header is not None:
            room = LONGEST_HEADER - self._header.size
            self._header.append(text[:room])
            if len(text) <= room:
                return
            self._open_without_message(self._header, closed=True)
            text = text[room:]
        self._body(text)

    def _open(self, message: Message) -> None:
        self._message = message
        self._header = None
        self._begin(message)

    def _open_without_message(self, header: Header, *, closed: bool = False, truncated: bool = False) -> None:
        """Begin the body where `<|message|>` was left out; a call without arguments only if the model ended it."""
        prose = header.prose(truncated=truncated)
        message = Message(text=Content) if prose else header.read(self.tools)
        body = prose or header.body(message)
        unfinished = bool(message.call) and not body and not (closed and message.declared)
        if unfinished or (truncated and header.marked):
            message, body = Message(), ""
        self._open(message)
        if body:
            self._body(body)
