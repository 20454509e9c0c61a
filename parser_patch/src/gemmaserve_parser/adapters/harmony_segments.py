"""Harmony's messages for the responses API, which keeps them, runs the built-in tools' and streams the others.

A function call is one piece, given when its message closes and is a call; a message that is no call is given as it
comes. Nothing raises, and a call's recipient is always `functions.` and the tool's name.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from openai_harmony import Message as HarmonyMessage
from openai_harmony import Role

from gemmaserve_parser.adapters.harmony_answer import Tokens, as_dicts, marker_ids
from gemmaserve_parser.core.events import Reasoning
from gemmaserve_parser.core.harmony_arguments import read_arguments
from gemmaserve_parser.core.harmony_messages import CHANNEL, CLOSERS, START, MessageReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gemmaserve_parser.core.harmony_header import Message
    from gemmaserve_parser.core.markers import Marker


class Piece(NamedTuple):
    """A part of a message, or, with `completed`, its end.

    Attributes:
        channel: `analysis`, `commentary` or `final`.
        recipient: Of a call or a built-in tool's message; else None.
        delta: The text; empty at the end.
        completed: The whole message.
    """

    channel: str
    recipient: str | None
    delta: str
    completed: HarmonyMessage | None = None


class SegmentReader(MessageReader):
    """Reads the turns of one response.

    Args:
        tools: The declared tools, as vLLM has them.
        calls: Whether calls may be reported; False for tool_choice `none`.
        first_call_only: `parallel_tool_calls: false`.
    """

    def __init__(self, tools: Any = None, *, calls: bool = True, first_call_only: bool = False) -> None:
        self._calls_left = float(calls) if first_call_only or not calls else math.inf
        self.tokens = Tokens()
        super().__init__(as_dicts(tools), marker_ids=marker_ids(self.tokens.encoding), decode=self.tokens.decode)
        self.tokens.follow(self)
        self._parts: list[str] = []
        self._pieces_read: list[Piece] = []

    @property
    def channel(self) -> str | None:
        """The channel of the message that is being read; None between messages."""
        return self._channel() if self.message is not None else None

    @property
    def recipient(self) -> str | None:
        """The recipient of the message that is being read, if it is no call; a call is not known before it closes."""
        return (self.message.recipient or None) if self.message is not None else None

    @property
    def unfinished(self) -> str:
        """What the message that is being read has so far; nothing of a call."""
        return "".join(self._parts) if self.message is not None and not self.message.call else ""

    def read(self, token_ids: Sequence[int]) -> list[Piece]:
        """What these tokens made certain."""
        self._read("", token_ids)
        return self._drain()

    def flush(self) -> list[Piece]:
        """End the turn: what its last message has so far, unless it is an unfinished call."""
        self._finish(truncated=True)
        if not self._message.call:
            self._end(None)
        return self._drain()

    def _begin(self, message: Message) -> None:  # noqa: ARG002  (the reader keeps it)
        self._parts.clear()

    def _body(self, text: str) -> None:
        self._parts.append(text)
        if self._message.call or self._message.foreign:
            return
        last = self._pieces_read[-1] if self._pieces_read else None
        if last is not None and last.completed is None:
            self._pieces_read[-1] = last._replace(delta=last.delta + text)
        else:
            self._pieces_read.append(Piece(self._channel(), self._message.recipient or None, text))

    def _end(self, marker: Marker | None) -> None:
        body = "".join(self._parts)
        self._parts.clear()
        if self._message.foreign:
            return
        if not self._message.call:
            if body:
                self._complete(self._channel(), self._message.recipient or None, body)
            return
        restarted = marker in {START, CHANNEL}
        arguments = None if restarted and not body else read_arguments(body, marked_end=marker in CLOSERS)
        if self._calls_left <= 0:
            return
        if arguments is not None:
            self._calls_left -= 1
            recipient = f"functions.{self._message.call}"
            self._pieces_read.append(Piece("commentary", recipient, arguments))
            self._complete("commentary", recipient, arguments)
        elif not restarted:
            self._pieces_read.append(Piece("commentary", None, body))
            self._complete("commentary", None, body)

    def _channel(self) -> str:
        if self._message.text is Reasoning:
            return "analysis"
        return self._message.channel or ("commentary" if self._message.recipient else "final")

    def _complete(self, channel: str, recipient: str | None, body: str) -> None:
        message = HarmonyMessage.from_role_and_content(Role.ASSISTANT, body).with_channel(channel)
        if recipient is not None:
            message = message.with_recipient(recipient)
            if recipient.startswith("functions."):
                message = message.with_content_type("json")
        self._pieces_read.append(Piece(channel, recipient, "", message))

    def _drain(self) -> list[Piece]:
        pieces, self._pieces_read = self._pieces_read, []
        return pieces
