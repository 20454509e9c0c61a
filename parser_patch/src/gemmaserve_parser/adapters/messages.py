"""The stop_reason of `/v1/messages`, where the installed vLLM takes it from chat completions alone.

There a forced tool ends with `stop`, and so older versions tell an Anthropic client `end_turn` beside a call: its loop
ends before it runs the tool. Anthropic's API says `tool_use` whenever there is a call.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.adapters.parsers import AtomicParser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_MARK = "_gemmaserve_original"


def install() -> None:
    """Correct the class `AnthropicServingMessages` where it needs it; once is enough, twice does no harm."""
    serving = importlib.import_module("vllm.entrypoints.anthropic.serving")
    server = serving.AnthropicServingMessages
    if hasattr(serving, "_to_anthropic_stop_reason") or hasattr(server.messages_full_converter, _MARK):
        return
    server.messages_full_converter = _full(server.messages_full_converter)
    server.message_stream_converter = _stream(server.message_stream_converter)


def _is_ours(server: Any) -> bool:
    parser = getattr(server, "parser_cls", None)
    return getattr(server, "use_harmony", False) or (parser is not None and issubclass(parser, AtomicParser))


def _full(original: Any) -> Any:
    @functools.wraps(original)
    def messages_full_converter(self: Any, *args: Any, **kwargs: Any) -> Any:
        response = original(self, *args, **kwargs)
        called = any(block.type == "tool_use" for block in response.content)
        if called and response.stop_reason == "end_turn" and _is_ours(self):
            response.stop_reason = "tool_use"
        return response

    setattr(messages_full_converter, _MARK, original)
    return messages_full_converter


def _stream(original: Any) -> Any:
    @functools.wraps(original)
    async def message_stream_converter(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[str]:
        ours, called = _is_ours(self), False
        async for event in original(self, *args, **kwargs):
            if event.startswith("event: content_block_start"):
                called = called or '"type":"tool_use"' in event
            elif ours and called and event.startswith("event: message_delta"):
                yield event.replace('"stop_reason":"end_turn"', '"stop_reason":"tool_use"', 1)
                continue
            yield event

    return message_stream_converter
