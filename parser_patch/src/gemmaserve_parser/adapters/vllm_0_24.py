"""vLLM 0.24 to 0.33: the parser engine's generation.

The server composes its parser of two names and asks it with `parse` and `parse_delta(..., finished=...)`.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.gemma4_engine_reasoning_parser import Gemma4ParserReasoningAdapter
from vllm.tool_parsers.abstract_tool_parser import ToolParser

from gemmaserve_parser.adapters import chat, keepalive, steps
from gemmaserve_parser.adapters.parsers import AtomicToolParser, unified

__all__ = ["Gemma4AtomicReasoningParser", "Gemma4AtomicToolParser", "ReasoningParserManager", "server_parser"]


class Gemma4AtomicToolParser(AtomicToolParser, ToolParser):  # type: ignore[misc]
    """`--tool-call-parser gemma4_atomic`."""


class Gemma4AtomicReasoningParser(Gemma4ParserReasoningAdapter):  # type: ignore[misc]
    """`--reasoning-parser gemma4_atomic`: vLLM's own for what the engine asks of it; the server parser reads."""


def server_parser(composed: Any) -> Any:
    """The parser class of a server, and what it needs around it, put in place where the server asks for it."""
    ours = unified(composed)
    if ours is not composed:
        steps.install(importlib.import_module("vllm.v1.engine.async_llm").AsyncLLM)
        keepalive.install()
        if find_spec("vllm.entrypoints.openai.chat_completion.stream_processor") is None:
            chat.install(importlib.import_module("vllm.entrypoints.openai.chat_completion.serving").OpenAIServingChat)
    return ours
