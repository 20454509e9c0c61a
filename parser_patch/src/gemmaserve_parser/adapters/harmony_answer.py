"""One choice's Harmony answer, read from its token ids in vLLM's encoding of gpt-oss."""

from __future__ import annotations

import codecs
import importlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.adapters.answer import as_dict
from gemmaserve_parser.core.events import Reasoning
from gemmaserve_parser.core.harmony import MARKERS, HarmonyScanner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gemmaserve_parser.core.events import Event
    from gemmaserve_parser.core.harmony_header import Message
    from gemmaserve_parser.core.harmony_messages import MessageReader


def encoding() -> Any:
    """The encoding of gpt-oss, as vLLM loads it, once a process: its tokens are the model's."""
    return importlib.import_module("vllm.entrypoints.openai.parser.harmony_utils").get_encoding()


@lru_cache(maxsize=4)
def marker_ids(encoding: Any) -> Mapping[str, int]:
    """Token ids of the markers in an encoding."""
    return {str(marker): encoding.encode(str(marker), allowed_special="all")[0] for marker in MARKERS}


def as_dicts(tools: Any) -> list[Mapping[str, Any]]:
    """A request's tools as plain dicts."""
    return [as_dict(tool) for tool in tools or ()]


class Tokens:
    """Turns the ids of one answer into text, a character when its last byte has come, and counts reasoning.

    Attributes:
        count: How many ids that are no markers were read.
        reasoning: How many of them are hidden from the user: reasoning, calls, and what built-in tools are sent.
    """

    def __init__(self) -> None:
        self.count = 0
        self.reasoning = 0
        self.encoding = encoding()
        self._reader: MessageReader | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def follow(self, reader: MessageReader) -> None:
        """Name the reader whose messages say what a token is."""
        self._reader = reader

    def decode(self, token_id: int) -> str:
        """The text that a token completes; an id that the encoding lacks has none."""
        message = self._reader.message if self._reader is not None else None
        self.count += 1
        self.reasoning += message is not None and _is_hidden(message)
        try:
            text: str = self.encoding.decode([token_id], errors="surrogateescape")
        except Exception as error:
            if type(error).__name__ != "HarmonyError":
                raise
            return ""
        return self._decoder.decode(text.encode("utf-8", "surrogateescape"))


class HarmonyAnswer:
    """Reads one choice of one request; the counterpart of `Answer`, for `AtomicParser`.

    Args:
        request: The request, of chat completions or responses.
        tools: The declared tools, where the request has none.
        calls: Whether the server has a tool parser.
        reasoning: Whether the server has a reasoning parser.
    """

    def __init__(self, request: Any, *, tools: Any = None, calls: bool = True, reasoning: bool = True) -> None:
        declared = as_dicts(getattr(request, "tools", None) or tools)
        shown = getattr(request, "include_reasoning", True) is not False
        self.tokens = Tokens()
        self.length = 0
        self._scanner = HarmonyScanner(
            declared,
            calls=calls and bool(declared) and getattr(request, "tool_choice", None) != "none",
            first_call_only=getattr(request, "parallel_tool_calls", None) is False,
            reasoning=reasoning and shown,
            marker_ids=marker_ids(self.tokens.encoding),
            decode=self.tokens.decode,
        )
        self.tokens.follow(self._scanner)

    @property
    def withholding(self) -> bool:
        """Whether a client is waiting for something that is being held back."""
        return self._scanner.withholding

    def feed(self, text: str, token_ids: Sequence[int] | None) -> list[Event]:
        """Read a delta; what became certain. The text is not read: without special tokens it lacks the markers."""
        ids = token_ids or ()
        self.length += len(ids)
        return self._scanner.feed(text, ids)

    def finish(self, reason: str | None) -> list[Event]:
        """End the answer, for vLLM's finish reason; what was still held back.

        Where vLLM does not say how it ended, a message that is still open was cut: a natural end is a token that
        closes the message, and vLLM leaves it among the ids.
        """
        return self._scanner.finish(reason or "length")


def _is_hidden(message: Message) -> bool:
    return bool(message.call or message.recipient) or message.text is Reasoning
