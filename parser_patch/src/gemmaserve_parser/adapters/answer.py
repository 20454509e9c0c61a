"""One choice's answer: a scanner set up for its request, and the order in which its events may leave."""

from __future__ import annotations

import os
import time
import uuid
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.core.events import Content, Event, Reasoning, ToolCall
from gemmaserve_parser.core.gemma4 import MARKERS, Gemma4Scanner

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HEARTBEAT_SECONDS = "GEMMASERVE_HEARTBEAT_SECONDS"
_DEFAULT_HEARTBEAT = 10.0

#: Special tokens without which a tokenizer is not Gemma 4's.
_NEEDED = ("<|tool_call>", "<tool_call|>")

#: Those that all have to be told by their ids, or none is.
_STRUCTURE = (*_NEEDED, '<|"|>', "<|channel>", "<channel|>")


@lru_cache(maxsize=4)
def marker_ids(tokenizer: Any) -> Mapping[str, int]:
    """The token ids of the markers that a tokenizer has.

    Raises:
        RuntimeError: It lacks those of a tool call, so that it is not Gemma 4's.
    """
    vocabulary = tokenizer.get_vocab()
    found = {str(marker): int(vocabulary[marker]) for marker in MARKERS if marker in vocabulary}
    missing = [marker for marker in _NEEDED if marker not in found]
    if missing:
        raise RuntimeError(f"The tokenizer has no {' and no '.join(missing)}: this is not a Gemma 4 model")
    return found


def new_call_id() -> str:
    """A fresh id for a call, in vLLM's own style."""
    return f"chatcmpl-tool-{uuid.uuid4().hex[:16]}"


def heartbeat_seconds() -> float:
    """How long a stream may be silent while a call is withheld, as the environment has it; 0 or less: for ever."""
    return float(os.environ.get(HEARTBEAT_SECONDS) or _DEFAULT_HEARTBEAT)


class Answer:
    """Reads one choice of one request.

    Args:
        tokenizer: vLLM's tokenizer of the model.
        request: The request, of chat completions or responses.
        reasoning: Whether thought channels are reasoning: whether the server has a reasoning parser.
        prompt_token_ids: The rendered prompt; it may end inside a thought channel.

    Raises:
        RuntimeError: The tokenizer is not Gemma 4's.
    """

    def __init__(
        self, tokenizer: Any, request: Any, *, reasoning: bool, prompt_token_ids: Sequence[int] | None = None
    ) -> None:
        ids = marker_ids(tokenizer)
        tools = [as_dict(tool) for tool in getattr(request, "tools", None) or ()]
        self._scanner = Gemma4Scanner(
            tools,
            calls=bool(tools) and getattr(request, "tool_choice", None) != "none",
            first_call_only=getattr(request, "parallel_tool_calls", None) is False,
            reasoning=reasoning,
            in_reasoning=reasoning and _ends_in_thought(prompt_token_ids or (), ids),
            marker_ids=ids if all(marker in ids for marker in _STRUCTURE) else None,
            decode=lambda token_id: str(tokenizer.decode([token_id])),
        )
        self._hides_reasoning = getattr(request, "include_reasoning", True) is False

    @property
    def withholding(self) -> bool:
        """Whether a client is waiting for something that is being held back."""
        return self._scanner.withholding

    def feed(self, text: str, token_ids: Sequence[int] | None) -> list[Event]:
        """Read a delta; what became certain."""
        events = self._scanner.feed(text, token_ids)
        return self._visible(events) if self._hides_reasoning else events

    def finish(self, reason: str | None) -> list[Event]:
        """End the answer, for vLLM's finish reason; what was still held back."""
        events = self._scanner.finish(reason)
        return self._visible(events) if self._hides_reasoning else events

    @staticmethod
    def _visible(events: list[Event]) -> list[Event]:
        return [event for event in events if not isinstance(event, Reasoning)]


class Outbox(deque[Event]):
    """What was read and has not left yet, and what of it may leave together (rule 6)."""

    def take_one(self) -> list[Event]:
        """The next event."""
        return [self.popleft()] if self else []

    def take_alike(self) -> list[Event]:
        """The next events as far as they may share a delta: no content beside calls."""
        taken: list[Event] = []
        kinds: set[type] = set()
        while self and not {Content, ToolCall} <= kinds | {type(self[0])}:
            taken.append(self.popleft())
            kinds.add(type(taken[-1]))
        return taken

    def take_all(self) -> list[Event]:
        """Everything, where no later delta can carry the rest."""
        taken = [*self]
        self.clear()
        return taken


class Heartbeat:
    """When an empty delta is due, so that a proxy does not cut a stream that withholds a long call (rule 10)."""

    def __init__(self) -> None:
        self._interval = heartbeat_seconds()
        self._last = time.monotonic()

    def sent(self) -> None:
        """Something else left."""
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether nothing has left for so long that an empty delta may."""
        return 0 < self._interval <= time.monotonic() - self._last


def joined(events: Iterable[Event], kind: type[Content | Reasoning]) -> str | None:
    """The text of one kind of event; None for none."""
    return "".join(event.text for event in events if isinstance(event, kind)) or None


def calls(events: Iterable[Event]) -> list[ToolCall]:
    """The calls among events."""
    return [event for event in events if isinstance(event, ToolCall)]


def as_dict(tool: Any) -> Mapping[str, Any]:
    """A tool in the scanner's shape; of vLLM's own types only what it reads, since a dump copies the whole schema."""
    if isinstance(tool, dict):
        return tool
    function = getattr(tool, "function", tool)
    return {"name": getattr(function, "name", None), "parameters": getattr(function, "parameters", None)}


def _ends_in_thought(prompt: Sequence[int], ids: Mapping[str, int]) -> bool:
    opens, closes, turn = (ids.get(marker) for marker in ("<|channel>", "<channel|>", "<|turn>"))
    for token_id in reversed(prompt):
        if token_id == opens:
            return True
        if token_id in {closes, turn}:
            return False
    return False
