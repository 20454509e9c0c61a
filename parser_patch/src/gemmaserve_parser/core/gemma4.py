"""The incremental scanner of Gemma 4's output: content, reasoning and tool calls out of one stream."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.core.calls import Tools, begins_call, header_opens, read_calls
from gemmaserve_parser.core.content import DRIFTED_OPENER, ContentReader, is_spoiled_marker
from gemmaserve_parser.core.events import Content, Event, Reasoning
from gemmaserve_parser.core.lexer import BodyLexer
from gemmaserve_parser.core.markers import (
    CALL_CLOSE,
    CALL_OPEN,
    CHANNEL_CLOSE,
    CHANNEL_OPEN,
    DELIMITER,
    END,
    MARKERS,
    RESPONSE_OPEN,
    TURN_CLOSE,
    TURN_OPEN,
    Marker,
    MarkerReader,
)
from gemmaserve_parser.core.thought import LABEL, ThoughtReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gemmaserve_parser.core.calls import Reading

__all__ = ["MARKERS", "Gemma4Scanner", "prompt_opens_reasoning"]

_CONTENT, _REASONING, _CALL, _DROPPED = "content", "reasoning", "call", "dropped"

#: Markers that end a call's body when they stand outside its strings.
_TERMINATORS = frozenset(
    {CALL_CLOSE, CALL_OPEN, RESPONSE_OPEN, CHANNEL_OPEN, CHANNEL_CLOSE, TURN_OPEN, TURN_CLOSE, END}
)
_TRUNCATIONS = frozenset({"length", "abort", "error"})


class Gemma4Scanner:
    """Reads one answer of the model, in any cutting, and reports what it holds.

    One scanner reads one choice of one request and is thrown away. A non-streaming parse is `feed` of the
    whole text followed by `finish`: there is no second implementation.

    Args:
        tools: The request's tools as plain dicts, in the shape of chat completions
            (`{"type": "function", "function": {"name": ..., "parameters": ...}}`) or of responses
            (`{"type": "function", "name": ..., "parameters": ...}`); anything else in the list is ignored.
            The names decide where the dialects are ambiguous, the parameters give the values' types.
        calls: Whether calls may be reported. False for tool_choice `none` and for requests without tools:
            call markup is then read and dropped, the text around it stays content.
        first_call_only: `parallel_tool_calls: false`: later calls are read and dropped.
        reasoning: Whether thought channels are read as reasoning. False when the server has no reasoning
            parser: their markup and text are then content as they stand.
        in_reasoning: Whether the prompt ended inside an open thought channel; see `prompt_opens_reasoning`.
        marker_ids: Token ids of the markers by their text (`MARKERS`); None or empty: ids are not looked at,
            and the characters of a marker are the marker.
        decode: The text of one token id, special tokens spelled out. Only asked when a delta of several tokens
            holds a real marker and the same characters as ordinary text, or with `markers_in_text=False`.
        markers_in_text: False when the server left special tokens out of the text (`skip_special_tokens`):
            markers are then placed by their ids alone; needs `marker_ids` and `decode`.
    """

    def __init__(  # noqa: PLR0913  (each a request's or a server's setting, by keyword, with a default)
        self,
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        calls: bool = True,
        first_call_only: bool = False,
        reasoning: bool = True,
        in_reasoning: bool = False,
        marker_ids: Mapping[str, int] | None = None,
        decode: Callable[[int], str] | None = None,
        markers_in_text: bool = True,
    ) -> None:
        self._tools = Tools(tools)
        self._calls = calls
        self._first_call_only = first_call_only
        self._read_channels = reasoning
        self._text_decides = not marker_ids
        self._reader = MarkerReader(marker_ids, decode, in_text=markers_in_text)
        self._state = _REASONING if reasoning and in_reasoning else _CONTENT
        self._calls_seen = 0
        self._finished = False
        self._events: list[Event] = []
        self._run: list[str] = []  # pieces of one content or reasoning event
        self._run_kind: type[Content | Reasoning] = Content
        self._content = ContentReader(self._tools, calls=calls)
        self._thought = ThoughtReader()
        if self._state == _REASONING:
            self._thought.open_unsurely()
        # What may be a thought's label although its marker is missing: only at the start of an answer.
        self._bare_label: str | None = "" if reasoning and self._state == _CONTENT else None
        # The call that is being withheld.
        self._opener = ""
        self._back_to = _CONTENT
        self._header: str | None = None
        self._body = BodyLexer()

    @property
    def withholding(self) -> bool:
        """Whether text is being held back now, so that silence may grow: the heartbeat's condition (rule 10)."""
        return self._state == _CALL or self._content.holding or self._thought.holding

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        """Read one delta.

        Args:
            text: The delta's text; may be empty (a token whose characters are not complete yet).
            token_ids: The ids generated since the last delta, or None where they are not known. Text may lag
                behind its ids (stop strings hold text back), never the reverse. With ids, a marker in the text
                is real only if its id came; without ids (None, or none beside some text) its characters count.

        Returns:
            What became certain, in the order of the text; never a part of a call.
        """
        if self._finished:
            return []
        if self._reader.is_plain(text, token_ids):
            # The common cases, at the price of an append: the answer, a thought, a long argument.
            if self._state == _CONTENT:
                if self._content.flows(text):
                    return [Content(text)]
            elif self._state == _CALL:
                if self._header is None:
                    self._body.append(text)
                    return []
            elif self._state == _REASONING and self._thought.flows:
                return [Reasoning(text)] if text else []
        for piece in self._reader.read(text, token_ids):
            if isinstance(piece, Marker):
                self._marker(piece)
            else:
                self._text(piece)
        return self._drain()

    def finish(self, reason: str | None = "stop") -> list[Event]:
        """End the answer.

        Args:
            reason: vLLM's finish reason of the choice: `length` (cut by max_tokens), `abort` or `error` is
                truncation and gives no call for what was unfinished; anything else, None too, is a natural end,
                at which a balanced call without its close marker is a call (rule 5).

        Returns:
            What was still held back. A second `finish` returns nothing.
        """
        if self._finished:
            return []
        self._finished = True
        truncated = reason in _TRUNCATIONS
        held = self._reader.flush()
        if held and not (self._state == _CALL and is_spoiled_marker(held)):
            self._text(held)
        self._settle_bare_label()
        if self._state == _CALL and not truncated:
            self._mend_call()
        if self._state == _CALL:
            self._end_call(None, truncated=truncated)
        if self._state == _CONTENT:
            self._say(Content, self._content.end(answer=True))
        elif self._state == _REASONING:
            if self._thought.unsure and not truncated:
                self._say(Content, self._thought.label_of_text + self._thought.end())
            else:
                self._say(Reasoning, self._thought.end())
        return self._drain()

    # Ordinary text, by state.

    def _text(self, text: str) -> None:
        if self._state == _CONTENT and self._bare_label is not None:
            text = self._read_bare_label(text)
        if self._state == _CONTENT:
            content, opening = self._content.read(text)
            self._say(Content, content)
            if opening is not None:
                self._begin_call(opening.opener)
                self._read_call(opening.rest)
        elif self._state == _REASONING:
            self._say(Reasoning, self._thought.read(text))
        elif self._state == _CALL:
            self._read_call(text)

    def _read_bare_label(self, text: str) -> str:
        """Tell a label from the answer's first word; the text, empty while it may be either."""
        text = (self._bare_label or "") + text
        if len(text) < len(LABEL) and LABEL.startswith(text):
            self._bare_label = text
            return ""
        self._bare_label = None
        if text.startswith(LABEL):
            self._state = _REASONING
            self._thought.open_unsurely(label=LABEL)
        return text

    # Markers, by state.

    def _marker(self, marker: Marker) -> None:
        if self._state == _CALL:
            self._marker_in_call(marker)
        elif self._state == _DROPPED:
            return
        elif marker in {CHANNEL_OPEN, CHANNEL_CLOSE} and not self._read_channels:
            self._text(marker)
        elif marker is CALL_OPEN:
            self._leave_text()
            self._begin_call(CALL_OPEN)
        elif marker is RESPONSE_OPEN:
            self._leave_text()
            self._state = _DROPPED
        elif marker is CHANNEL_OPEN:
            self._leave_text()
            self._state = _REASONING
            self._thought.open()
        elif marker is CHANNEL_CLOSE and self._state == _REASONING:
            self._leave_text()
            self._state = _CONTENT
            self._content.markup()
        elif marker is DELIMITER:
            self._text('"')

    def _settle_bare_label(self) -> None:
        label, self._bare_label = self._bare_label, None
        if label:
            self._text(label)

    def _leave_text(self) -> None:
        self._settle_bare_label()
        if self._state == _CONTENT:
            self._say(Content, self._content.end())
        else:
            self._say(Reasoning, self._thought.end())

    # A call.

    def _begin_call(self, opener: str) -> None:
        self._opener, self._back_to = opener, self._state
        self._state = _CALL
        self._header = ""
        self._body = BodyLexer()

    def _read_call(self, text: str) -> None:
        if self._header is None:
            self._body.append(text)
            return
        self._header += text
        opens = header_opens(self._header, self._tools, declared_only=self._opener != CALL_OPEN)
        if opens is False:
            self._revert_header(self._header)
        elif opens:
            self._body.append(self._header)
            self._header = None

    def _revert_header(self, header: str) -> None:
        """It is no call, and was none from the first character that said so: what follows that is read as text."""

        def is_none(length: int) -> bool:
            return header_opens(header[:length], self._tools, declared_only=self._opener != CALL_OPEN) is False

        length = bisect_left(range(len(header)), True, key=is_none)
        self._header = header[:length]
        self._revert()
        if header[length:]:
            self._text(header[length:])

    def _marker_in_call(self, marker: Marker) -> None:
        if self._header is not None:
            if marker is DELIMITER:
                self._revert()
                self._marker(marker)
            elif marker in _TERMINATORS:
                self._end_call(marker)
        elif marker is DELIMITER:
            self._body.append_delimiter()
        elif marker in _TERMINATORS and self._body.outside_strings():
            self._end_call(marker)
        else:
            self._body.append_marker(marker)

    def _end_call(self, marker: Marker | None, *, truncated: bool = False) -> None:
        """The body is over: at a marker outside its strings, or at the end of the answer (None)."""
        began = self._header is None or begins_call(self._header, self._tools)
        restarted = self._header is not None and marker is CALL_OPEN  # a name alone is a call only once it is closed
        if self._header is not None:
            self._body.append(self._header)
            self._header = None
        reading = None
        if self._body.outside_strings() and not truncated and not restarted:
            reading = read_calls(self._body, self._tools, marked_end=marker is CALL_CLOSE)
        if reading is not None and self._believes(reading, marker):
            self._report(reading)
        elif self._opener == CALL_OPEN and (truncated or marker is CALL_OPEN) and began:
            self._state = self._back_to
        else:
            self._revert(CALL_CLOSE if marker is CALL_CLOSE else "")
        if marker is not None and marker is not CALL_CLOSE:
            self._marker(marker)

    def _mend_call(self) -> None:
        """A string that was never closed has swallowed the rest of the answer: end the call at its close marker."""
        mended = None if self._body.outside_strings() else self._body.without_unclosed()
        if mended is None:
            return
        self._body, rest = mended
        self._body.outside_strings()
        self._end_call(CALL_CLOSE)
        for piece in rest:
            if isinstance(piece, Marker):
                self._marker(piece)
            else:
                self._text(piece)

    def _believes(self, reading: Reading, marker: Marker | None) -> bool:
        """Whether what reads as a call was opened like one."""
        if self._opener == CALL_OPEN:
            quoted = self._back_to == _REASONING and self._text_decides
            return not quoted or (reading.declared and marker is not CHANNEL_CLOSE)
        if not reading.declared or reading.rest.strip():
            return False
        return self._opener != DRIFTED_OPENER or marker is CALL_CLOSE

    def _report(self, reading: Reading) -> None:
        for call in reading.calls:
            if self._calls and not (self._first_call_only and self._calls_seen):
                self._close_run()
                self._events.append(call)
            self._calls_seen += 1
        self._state = self._back_to
        if self._state == _REASONING:
            # The channel is still open, but the model may have forgotten to close it.
            self._thought.open_unsurely()
        else:
            self._content.markup()
        if reading.rest.strip():
            self._text(reading.rest)

    def _revert(self, closer: str = "") -> None:
        """What was taken for a call is text after all. Its markers go, unless they may have been text too."""
        header, self._header = self._header or "", None
        self._state = self._back_to
        if self._back_to == _REASONING and self._text_decides:
            text = self._opener + self._body.source() + header + closer
        else:
            text = ("" if self._opener == CALL_OPEN else self._opener) + self._body.as_text() + header
        if not text.strip():
            return
        if self._state == _REASONING:
            self._say(Reasoning, self._thought.read(text))
        else:
            self._content.said(text)
            self._say(Content, text)

    # Events.

    def _say(self, kind: type[Content | Reasoning], text: str) -> None:
        if not text:
            return
        if kind is not self._run_kind:
            self._close_run()
            self._run_kind = kind
        self._run.append(text)

    def _close_run(self) -> None:
        if self._run:
            self._events.append(self._run_kind("".join(self._run)))
            self._run = []

    def _drain(self) -> list[Event]:
        self._close_run()
        events, self._events = self._events, []
        return events


def prompt_opens_reasoning(prompt: str) -> bool:
    """Whether the prompt ends inside a thought channel, so that the answer starts in reasoning.

    Args:
        prompt: The rendered prompt, or its tail from the last turn marker on, special tokens spelled out.
    """
    return prompt.rfind(CHANNEL_OPEN) > prompt.rfind(CHANNEL_CLOSE)
