"""The incremental scanner of Harmony, the format of gpt-oss: content, reasoning and tool calls out of one stream.

The recipient makes a message a call, whatever its channel; without one, `analysis` is reasoning and the other channels
are content. A call is reported when its message has closed and its body is an object's JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gemmaserve_parser.core.events import Content, Event, Reasoning, ToolCall
from gemmaserve_parser.core.harmony_arguments import read_arguments
from gemmaserve_parser.core.harmony_messages import CHANNEL, CLOSERS, MARKERS, START, TRUNCATIONS, MessageReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gemmaserve_parser.core.harmony_header import Message
    from gemmaserve_parser.core.markers import Marker

__all__ = ["MARKERS", "HarmonyScanner"]


class HarmonyScanner(MessageReader):
    """Reads one answer of the model, in any cutting, and reports what it holds.

    One scanner reads one choice of one request and is thrown away. A non-streaming parse is `feed` of everything
    followed by `finish`: there is no second implementation.

    Args:
        tools: See `MessageReader`; so are `marker_ids` and `decode`.
        calls: Whether calls may be reported. False for tool_choice `none` and for requests without tools: calls are
            then read and dropped.
        first_call_only: `parallel_tool_calls: false`: later calls are read and dropped.
        reasoning: Whether reasoning is reported; False drops it, because in Harmony it is never meant for the user.
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
        super().__init__(tools, marker_ids=marker_ids, decode=decode)
        self._calls = calls
        self._first_call_only = first_call_only
        self._reasoning = reasoning
        self._withheld: list[str] = []
        self._body_is_new = False
        self._said: set[type[Event]] = set()
        self._finished = False
        self._events: list[Event] = []

    @property
    def withholding(self) -> bool:
        """Whether a call is being held back now, so that silence may grow: the heartbeat's condition (rule 10)."""
        return self.message is not None and bool(self.message.call)

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        """Read one delta.

        Args:
            text: The delta's text. Not looked at where ids are read.
            token_ids: The ids generated since the last delta; None where they are not known, and then the text is
                read.

        Returns:
            What became certain, in the order of the text; never a part of a call.
        """
        self._read(text, token_ids)
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
        self._finish(truncated=reason in TRUNCATIONS)
        return self._drain()

    def _begin(self, message: Message) -> None:  # noqa: ARG002  (the reader keeps it)
        self._body_is_new = True

    def _body(self, text: str) -> None:
        if self._message.call:
            self._withheld.append(text)
        elif self._message.text is not None:
            self._say(self._message.text, text)

    def _end(self, marker: Marker | None) -> None:
        body = "".join(self._withheld)
        self._withheld.clear()
        restarted = marker in {START, CHANNEL}
        if not self._message.call or not self._calls or (restarted and not body):
            return
        arguments = read_arguments(body, marked_end=marker in CLOSERS)
        if arguments is None:
            # The next message restarts an unfinished call, so that what there was of it is no text either.
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
