"""The incremental scanner of Gemma 4's output: content, reasoning and tool calls out of one stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gemmaserve_parser.core.events import Event

#: Every special token of Gemma 4 that may stand in an answer. An adapter looks their ids up in the tokenizer
#: and passes those it finds as `marker_ids`.
MARKERS = (
    "<|tool_call>",
    "<tool_call|>",
    '<|"|>',
    "<|channel>",
    "<channel|>",
    "<|tool_response>",
    "<tool_response|>",
    "<|turn>",
    "<turn|>",
    "<|think|>",
    "<|tool>",
    "<tool|>",
    "<bos>",
    "<eos>",
    "<pad>",
)


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

    def __init__(
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
        raise NotImplementedError

    @property
    def withholding(self) -> bool:
        """Whether text is being held back now, so that silence may grow: the heartbeat's condition (rule 10)."""
        raise NotImplementedError

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
        raise NotImplementedError

    def finish(self, reason: str | None = "stop") -> list[Event]:
        """End the answer.

        Args:
            reason: vLLM's finish reason of the choice: `length` (cut by max_tokens) or `abort` is truncation
                and gives no call for what was unfinished; anything else, None too, is a natural end, at which
                a balanced call without its close marker is a call (rule 5).

        Returns:
            What was still held back. A second `finish` returns nothing.
        """
        raise NotImplementedError


def prompt_opens_reasoning(prompt: str) -> bool:
    """Whether the prompt ends inside a thought channel, so that the answer starts in reasoning.

    Args:
        prompt: The rendered prompt, or its tail from the last turn marker on, special tokens spelled out.
    """
    return prompt.rfind("<|channel>") > prompt.rfind("<channel|>")
