"""The incremental scanner of Gemma 4's output: content, reasoning and tool calls out of one stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gemmaserve_parser.core.calls import Tools, begins_call, header_opens, read_calls
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
    fragment_start,
)

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

#: What checkpoints write for `<|tool_call>` when they drift; no token, so never told by an id.
_DRIFTED_OPENER = "<|tool_call|>"
_ENDS = (str(TURN_CLOSE), str(END))
_WATCHED = frozenset(
    text[:length] for text in (_DRIFTED_OPENER, *_ENDS) for length in range(1, len(text) + (text in _ENDS))
)

_LABEL = "thought\n"

#: How much of a thought channel that the prompt opened is held, in characters: an answer that never closes it and is
#: no longer than this was no thought (vllm-project/vllm#49717).
_HELD_THOUGHT = 512
_LONGEST_LEAD = 512


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
        # Content: at an edge, after markup or at the start, white space and a bare call are told from text.
        self._edge = True
        self._after_markup = False
        self._lead = ""
        self._fragment = ""
        self._said = ""  # the last piece of content
        self._gap = ""  # white space since then that only separated markup
        # Reasoning.
        self._label: str | None = ""
        self._thought: list[str] | None = [] if self._state == _REASONING else None
        self._thought_size = 0
        # The call that is being withheld.
        self._opener = ""
        self._back_to = _CONTENT
        self._header: str | None = None
        self._body = BodyLexer()

    @property
    def withholding(self) -> bool:
        """Whether text is being held back now, so that silence may grow: the heartbeat's condition (rule 10)."""
        return self._state == _CALL or bool(self._lead or self._thought)

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
            # The two common cases, the answer's text and a long argument, at the price of an append.
            if self._state == _CONTENT and not self._edge and not self._fragment and "<" not in text:
                self._said, self._gap = text, ""
                return [Content(text)] if text else []
            if self._state == _CALL and self._header is None:
                self._body.append(text)
                return []
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
        if held and self._state != _CALL:
            self._text(held)
        if self._state == _CALL and not truncated:
            self._mend_call()
        if self._state == _CALL:
            self._end_call(None, truncated=truncated)
        if self._state == _CONTENT:
            self._end_content(at_end=True)
        elif self._state == _REASONING:
            self._end_reasoning(as_content=self._thought is not None and not truncated)
        return self._drain()

    # Ordinary text, by state.

    def _text(self, text: str) -> None:
        if self._state == _CONTENT:
            self._read_content(text)
        elif self._state == _REASONING:
            self._read_reasoning(text)
        elif self._state == _CALL:
            self._read_call(text)

    def _read_content(self, text: str) -> None:
        if self._edge:
            text = self._read_edge(text)
        if self._fragment:
            text, self._fragment = self._fragment + text, ""
        if "<" in text:
            opener = text.find(_DRIFTED_OPENER) if self._calls else -1
            if opener >= 0:
                self._say(Content, text[:opener])
                self._begin_call(_DRIFTED_OPENER)
                self._read_call(text[opener + len(_DRIFTED_OPENER) :])
                return
            keep = fragment_start(text, _WATCHED)
            text, self._fragment = text[:keep], text[keep:]
        self._say(Content, text)

    def _read_edge(self, text: str) -> str:
        """Tell white space, a bare call and text apart after markup; the text, empty while it may be another."""
        lead = self._lead + text
        start = lead.lstrip()
        self._lead = ""
        if len(lead) > _LONGEST_LEAD:
            pass
        elif not start:
            self._lead = lead
            return ""
        elif self._calls and self._tools and start.startswith("call:"[: len(start)]):
            opens = header_opens(start, self._tools, declared_only=True) if len(start) > len("call:") else None
            if opens:
                self._begin_call("")
                self._read_call(start)
                return ""
            if opens is None:
                self._lead = lead
                return ""
        self._edge = False
        return self._gap_before(lead) + start if self._after_markup else lead

    def _gap_before(self, lead: str) -> str:
        """The white space in front of text after markup: only what keeps it apart from the content so far."""
        gap = self._gap or lead[: len(lead) - len(lead.lstrip())]
        return "" if not self._said or self._said[-1].isspace() else gap

    def _end_content(self, *, at_end: bool = False) -> None:
        """Markup, or the end of the answer, follows: settle what is held."""
        if self._lead.strip() or (at_end and not self._after_markup):
            start = self._lead.lstrip()
            self._say(Content, self._gap_before(self._lead) + start if self._after_markup else self._lead)
        self._gap = self._gap or self._lead
        if not at_end or not _is_spoiled_marker(self._fragment):
            self._say(Content, self._fragment)
        self._lead = self._fragment = ""

    def _read_reasoning(self, text: str) -> None:
        if self._label is not None:
            text = self._label + text
            if len(text) < len(_LABEL) and _LABEL.startswith(text):
                self._label = text
                return
            self._label = None
            text = text.removeprefix(_LABEL)
        if self._thought is None:
            self._say(Reasoning, text)
            return
        self._thought.append(text)
        self._thought_size += len(text)
        if self._thought_size > _HELD_THOUGHT:
            self._release_thought(Reasoning)

    def _end_reasoning(self, *, as_content: bool = False) -> None:
        if self._label and self._label != _LABEL.strip():
            label, self._label = self._label, None
            self._read_reasoning(label)
        self._label = None
        self._release_thought(Content if as_content else Reasoning)

    def _release_thought(self, kind: type[Content | Reasoning]) -> None:
        if self._thought is not None:
            text = "".join(self._thought)
            self._thought = None
            if text.strip():
                self._say(kind, text)

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
            self._state, self._label = _REASONING, ""
        elif marker is CHANNEL_CLOSE and self._state == _REASONING:
            self._leave_text()
            self._enter_content()
        elif marker is DELIMITER:
            self._text('"')

    def _leave_text(self) -> None:
        if self._state == _CONTENT:
            self._end_content()
        else:
            self._end_reasoning()

    def _enter_content(self) -> None:
        self._state = _CONTENT
        self._edge = self._after_markup = True

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
            self._revert()
        elif opens:
            self._body.append(self._header)
            self._header = None

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
            self._body.append(marker)

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
        return not self._opener or marker is CALL_CLOSE

    def _report(self, reading: Reading) -> None:
        for call in reading.calls:
            if self._calls and not (self._first_call_only and self._calls_seen):
                self._close_run()
                self._events.append(call)
            self._calls_seen += 1
        if self._back_to == _REASONING:
            # The channel is still open. What follows is thought, or an answer whose model forgot to close it.
            self._state, self._label, self._thought, self._thought_size = _REASONING, None, [], 0
        else:
            self._enter_content()
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
        self._edge = False
        if self._back_to == _REASONING:
            self._label = None
            self._read_reasoning(text)
        else:
            self._say(Content, text)

    # Events.

    def _say(self, kind: type[Content | Reasoning], text: str) -> None:
        if not text:
            return
        if kind is not self._run_kind:
            self._close_run()
            self._run_kind = kind
        if kind is Content:
            self._said, self._gap = text, ""
        self._run.append(text)

    def _close_run(self) -> None:
        if self._run:
            self._events.append(self._run_kind("".join(self._run)))
            self._run = []

    def _drain(self) -> list[Event]:
        self._close_run()
        events, self._events = self._events, []
        return events


def _is_spoiled_marker(text: str) -> bool:
    """Whether the last characters of an answer are markup, not text: an end marker, or most of an opener."""
    return text in _ENDS or len(text) * 2 > len(_DRIFTED_OPENER)


def prompt_opens_reasoning(prompt: str) -> bool:
    """Whether the prompt ends inside a thought channel, so that the answer starts in reasoning.

    Args:
        prompt: The rendered prompt, or its tail from the last turn marker on, special tokens spelled out.
    """
    return prompt.rfind(CHANNEL_OPEN) > prompt.rfind(CHANNEL_CLOSE)
