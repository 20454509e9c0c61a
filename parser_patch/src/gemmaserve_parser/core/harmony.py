"""The incremental scanner of Harmony, the format of gpt-oss: content, reasoning and tool calls out of one stream.

Harmony's output is a row of messages, `<|start|>HEADER<|message|>BODY<|end|>`; the prompt has already written the first
`<|start|>assistant`. The recipient makes a message a call, whatever its channel; without one, `analysis` is reasoning
and the other channels are content. A message is a call when it has closed and its body is an object's JSON.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.core.calls import Tools
from gemmaserve_parser.core.events import Content, Event, Reasoning, ToolCall
from gemmaserve_parser.core.harmony_arguments import read_arguments
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

#: Every special token of Harmony that may stand in an answer. An adapter looks their ids up in the tokenizer.
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

_BY_TEXT = {str(marker): marker for marker in MARKERS}
_ANY = re.compile("|".join(re.escape(marker) for marker in MARKERS))
_PREFIXES = frozenset(marker[:length] for marker in MARKERS for length in range(1, len(marker)))
_CLOSERS = frozenset({END, CALL, RETURN, END_OF_TEXT})
_TRUNCATIONS = frozenset({"length", "abort", "error"})


class HarmonyScanner:
    """Reads one answer of the model, in any cutting, and reports what it holds.

    One scanner reads one choice of one request and is thrown away. A non-streaming parse is `feed` of everything
    followed by `finish`: there is no second implementation.

    Args:
        tools: The request's tools as plain dicts; see `Gemma4Scanner`.
        calls: Whether calls may be reported. False for tool_choice `none` and for requests without tools: calls are
            then read and dropped.
        first_call_only: `parallel_tool_calls: false`: later calls are read and dropped.
        reasoning: Whether reasoning is reported; False drops it, because in Harmony it is never meant for the user.
        marker_ids: Token ids of the markers by their text (`MARKERS`). With `decode`, ids alone are read, as
            Harmony's own parser does; without either, the text is, and the characters of a marker are the marker.
        decode: The text of one token id. Asked once for each id that is no marker, in their order, so it may be an
            incremental decoder that keeps the bytes of an unfinished character to itself.
    """

    def __init__(  # noqa: PLR0913  (each a request's or a server's setting, by keyword, with a default)
        self,
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        calls: bool = True,
        first_call_only: bool = False,
        reasoning: bool = True,
        marker_ids: Mapping[str, int] | None = None,
        decode: Callable[[int], str] | None = None,
    ) -> None:
        self._tools = Tools(tools)
        self._calls = calls
        self._first_call_only = first_call_only
        self._reasoning = reasoning
        self._by_id = {id_: _BY_TEXT[text] for text, id_ in (marker_ids or {}).items() if text in _BY_TEXT}
        self._decode = decode
        self._fragment = ""
        self._header: Header | None = Header()
        self._message = Message()
        self._body: list[str] = []  # of the call that is being withheld
        self._body_is_new = False
        self._said: set[type[Event]] = set()
        self._finished = False
        self._events: list[Event] = []

    @property
    def withholding(self) -> bool:
        """Whether a call is being held back now, so that silence may grow: the heartbeat's condition (rule 10)."""
        return self._header is None and bool(self._message.call)

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        """Read one delta.

        Args:
            text: The delta's text. Not looked at where ids are read.
            token_ids: The ids generated since the last delta; None where they are not known, and then the text is
                read.

        Returns:
            What became certain, in the order of the text; never a part of a call.
        """
        for piece in self._pieces(text, token_ids):
            if isinstance(piece, Marker):
                self._marker(piece)
            else:
                self._text(piece)
        return self._drain()

    def finish(self, reason: str | None = "stop") -> list[Event]:
        """End the answer.

        Args:
            reason: vLLM's finish reason of the choice: `length` (cut by max_tokens), `abort` or `error` is
                truncation and gives no call for what was unfinished; anything else, None too, is a natural end.

        Returns:
            What was still held back. A second `finish` returns nothing.
        """
        if self._finished:
            return []
        self._finished = True
        self._text(self._fragment)
        truncated = reason in _TRUNCATIONS
        if self._header is not None:
            self._open_without_message(self._header, truncated=truncated)
        if not truncated:
            self._close(None)
        return self._drain()

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
        elif marker in _CLOSERS or marker in {START, CHANNEL}:
            self._close(marker)
            self._header = Header(started=marker == START)
            if marker == CHANNEL:
                self._header.mark()

    def _mark_header(self, header: Header, marker: Marker) -> None:
        if marker == MESSAGE:
            self._open(header.read(self._tools))
        elif marker in {CHANNEL, CONSTRAIN}:
            self._body_is_new = True
            self._say(Content, header.mark())
        elif marker in _CLOSERS or marker == START:
            self._open_without_message(header, closed=marker in _CLOSERS)
            self._close(marker)
            self._header = None if self._message.foreign else Header(started=marker == START)

    def _text(self, text: str) -> None:
        if self._header is not None:
            room = LONGEST_HEADER - self._header.size
            self._header.append(text[:room])
            if len(text) <= room:
                return
            self._open_without_message(self._header, closed=True)
            text = text[room:]
        if self._message.call:
            self._body.append(text)
        elif self._message.text is not None:
            self._say(self._message.text, text)

    def _open(self, message: Message) -> None:
        self._message = message
        self._header = None
        self._body_is_new = True

    def _open_without_message(self, header: Header, *, closed: bool = False, truncated: bool = False) -> None:
        """Begin the body where `<|message|>` was left out; a call without arguments only if the model ended it."""
        prose = header.prose(truncated=truncated)
        message = Message(text=Content) if prose else header.read(self._tools)
        body = prose or header.body(message)
        unfinished = bool(message.call) and not body and not (closed and message.declared)
        if unfinished or (truncated and header.marked):
            message = Message()
        self._open(message)
        self._text(body)

    def _close(self, marker: Marker | None) -> None:
        """End the body: by a close marker, by the start of the next message, or, None, with the answer.

        The start of the next message restarts an unfinished call, so that what there was of it is no text either.
        """
        restarted = marker in {START, CHANNEL}
        body = "".join(self._body)
        self._body.clear()
        if not self._message.call or not self._calls or (restarted and not body):
            return
        arguments = read_arguments(body, marked_end=marker in _CLOSERS)
        if arguments is None:
            self._say(Content, "" if restarted else body)
        elif not (self._first_call_only and ToolCall in self._said):
            self._said.add(ToolCall)
            self._events.append(ToolCall(self._message.call, arguments))

    def _say(self, kind: type[Content | Reasoning], text: str) -> None:
        if not text or (kind is Reasoning and not self._reasoning):
            return
        if self._body_is_new and kind in self._said:
            text = "\n" + text
        self._body_is_new = False
        self._said.add(kind)
        last = self._events[-1] if self._events else None
        if isinstance(last, (Content, Reasoning)) and isinstance(last, kind):
            self._events[-1] = kind(last.text + text)
        else:
            self._events.append(kind(text))

    def _drain(self) -> list[Event]:
        events, self._events = self._events, []
        return events
