"""vLLM 0.20.2 to 0.23: before the parser engine.

The server streams through a composed parser, whose `parse_delta` is not told the last delta, and reads whole answers
with the two registered parsers, one after the other.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vllm.reasoning.gemma4_reasoning_parser import Gemma4ReasoningParser
from vllm.tool_parsers.abstract_tool_parser import ToolParser

from gemmaserve_parser.adapters import chat, keepalive, responses_0_20, steps
from gemmaserve_parser.adapters.parsers import AtomicParser, AtomicToolParser, protocol, unified

if TYPE_CHECKING:
    from collections.abc import Sequence


class Gemma4AtomicToolParser(AtomicToolParser, ToolParser):  # type: ignore[misc]
    """`--tool-call-parser gemma4_atomic`."""


class Gemma4AtomicReasoningParser(Gemma4ReasoningParser):  # type: ignore[misc]
    """`--reasoning-parser gemma4_atomic`: vLLM's own for what the engine asks of it; the server parser reads."""


class AtomicParser020(AtomicParser):
    """The server's parser, with the two steps in which this generation reads a whole answer of the responses API."""

    _read_ids: Sequence[int] = ()
    _read_calls: Sequence[Any] = ()

    def extract_response_outputs(self, *, model_output: str, model_output_token_ids: Sequence[int], **rest: Any) -> Any:
        """The response's items of a whole answer."""
        self._read_ids = model_output_token_ids
        return super().extract_response_outputs(  # type: ignore[misc]
            model_output=model_output, model_output_token_ids=model_output_token_ids, **rest
        )

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Reasoning and content of a whole answer; keeps its calls for `_parse_tool_calls`, which follows."""
        reasoning, content, found = self.parse(model_output, request, model_output_token_ids=self._read_ids)
        self._read_calls = found or ()
        return reasoning, content

    def _parse_tool_calls(self, request: Any, content: str | None, enable_auto_tools: bool) -> Any:  # noqa: ARG002
        return [*self._read_calls], content


def server_parser(composed: Any) -> Any:
    """The parser class of a server, and what it needs around it, put in place where the server asks for it."""
    ours = unified(composed, AtomicParser020)
    if ours is not composed:
        steps.install(importlib.import_module("vllm.v1.engine.async_llm").AsyncLLM)
        keepalive.install()
        serving = importlib.import_module("vllm.entrypoints.openai.chat_completion.serving")
        chat.install(serving.OpenAIServingChat, _complete)
        responses_0_20.install()
    return ours


def _complete(server: Any, request: Any, choice: Any, result: Any, output: Any) -> None:
    """Make a whole answer's message what a stream of it would have been."""
    parser = server.parser_cls(server.renderer.tokenizer, request.tools)
    message, types = choice.message, protocol()
    message.reasoning, message.content, found = parser.read(
        output.text, request, output.token_ids, output.finish_reason, result.prompt_token_ids
    )
    message.tool_calls = [types.ToolCall(id=call.id, type="function", function=call) for call in found]
    if request.include_reasoning is False:
        message.reasoning = None
