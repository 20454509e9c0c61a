"""gpt-oss on vLLM 0.24 to 0.33: `vllm/parser/harmony.py`, one parser class for chat completions and responses."""

from __future__ import annotations

import functools
import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.adapters import chat, harmony_responses, keepalive, steps
from gemmaserve_parser.adapters.harmony_answer import HarmonyAnswer
from gemmaserve_parser.adapters.parsers import AtomicParser

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARK = "_gemmaserve_harmony"
_HARMONY = "vllm.parser.harmony"


class AtomicHarmonyParser(AtomicParser):
    """The server's parser of gpt-oss, to be mixed into vLLM's `HarmonyParser`.

    Chat completions ask `parse` and `parse_delta`; the responses API asks `process_chunk` and `flush`.
    """

    def __init__(self, tokenizer: Any, tools: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, tools, *args, **kwargs)
        self._declared = tools
        self._answer: Any = None
        self._segments = harmony_responses.new_reader(tools)

    def adjust_request(self, request: Any) -> Any:
        """As vLLM has it: ids are read, so the text needs no markers."""
        return super(AtomicParser, self).adjust_request(request)  # type: ignore[misc]

    def process_chunk(self, token_ids: Sequence[int]) -> Any:
        """The segments of the responses API that these tokens made certain."""
        types = importlib.import_module(_HARMONY)
        before = self._segments.tokens.reasoning
        segments = [types.Segment(*piece) for piece in self._segments.read(token_ids)]
        return types.ChunkResult(segments=segments, reasoning_token_count=self._segments.tokens.reasoning - before)

    def flush(self) -> list[Any]:
        """The segments that end a turn of the responses API; the next turn starts anew."""
        types = importlib.import_module(_HARMONY)
        segments = [types.Segment(*piece) for piece in self._segments.flush()]
        self._segments = harmony_responses.new_reader(self._declared)
        return segments

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """How many of an answer's tokens the user does not see."""
        answer = self._answer
        if not isinstance(answer, HarmonyAnswer) or answer.length != len(token_ids):
            answer = HarmonyAnswer(None)
            answer.feed("", token_ids)
        return int(answer.tokens.reasoning)

    def _new_answer(self, request: Any, prompt_token_ids: Sequence[int] | None) -> Any:  # noqa: ARG002  (the prompt ends before a header)
        return HarmonyAnswer(
            request,
            tools=self._declared,
            calls=self.tool_parser is not None,  # type: ignore[attr-defined]
            reasoning=self.reasoning_parser is not None,  # type: ignore[attr-defined]
        )


def installed() -> bool:
    """Whether vLLM hands our parser out for gpt-oss."""
    return hasattr(_manager().get_parser, _MARK)


def install() -> None:
    """Make vLLM hand our parser out for gpt-oss; once is enough, twice does no harm."""
    manager = _manager()
    original = manager.get_parser
    if installed():
        return

    @functools.wraps(original)
    def get_parser(*args: Any, **kwargs: Any) -> Any:
        composed = original(*args, **kwargs)
        theirs = importlib.import_module(_HARMONY).HarmonyParser
        return server_parser(composed) if composed is theirs else composed

    setattr(get_parser, _MARK, original)
    manager.get_parser = get_parser
    harmony_responses.install()
    harmony: Any = importlib.import_module(_HARMONY)
    if not hasattr(harmony.HarmonyParser, "flush"):
        # Its constructor makes a parser of openai-harmony's, which nothing asks when ours reads.
        harmony.get_streamable_parser_for_assistant = harmony_responses.MessageStream
        harmony_responses.install_contexts()


def _manager() -> Any:
    return importlib.import_module("vllm.parser").ParserManager


def server_parser(composed: Any) -> Any:
    """Our parser over vLLM's `HarmonyParser`, and what it needs around it."""
    steps.install(importlib.import_module("vllm.v1.engine.async_llm").AsyncLLM)
    keepalive.install()
    if find_spec("vllm.entrypoints.openai.chat_completion.stream_processor") is None:
        chat.install(importlib.import_module("vllm.entrypoints.openai.chat_completion.serving").OpenAIServingChat)
    return type("AtomicHarmonyParser", (AtomicHarmonyParser, composed), {})
