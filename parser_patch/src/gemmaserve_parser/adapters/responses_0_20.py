"""The stream of the responses API before vLLM 0.24.

vLLM's own takes one call a delta, loses a call that comes with its arguments after text, and asserts what a model may
well not do. Here each delta is given to the item that it belongs to; vLLM makes the events.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.adapters.parsers import AtomicParser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

_MARK = "_gemmaserve_original"
_MODULE = "vllm.entrypoints.openai.responses."

_MESSAGE, _REASONING = "message", "reasoning"


def install() -> None:
    """Replace the stream of servers that our parser reads; once is enough, twice does no harm."""
    server = importlib.import_module(f"{_MODULE}serving").OpenAIServingResponses
    original = server._process_simple_streaming_events  # noqa: SLF001
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    async def process(  # noqa: PLR0913, PLR0917  (vLLM's signature)
        self: Any,
        request: Any,
        sampling_params: Any,
        result_generator: Any,
        context: Any,
        model_name: str,
        tokenizer: Any,
        request_metadata: Any,
        created_time: int,
        number: Any,
    ) -> AsyncIterator[Any]:
        if self.parser is not None and issubclass(self.parser, AtomicParser):
            parser = self.parser(tokenizer, request.tools)
            events = _events(self, request, result_generator, parser)
            async for event in events:
                yield number(event)
            return
        rest = (context, model_name, tokenizer, request_metadata, created_time, number)
        async for event in original(self, request, sampling_params, result_generator, *rest):
            yield event

    setattr(process, _MARK, original)
    server._process_simple_streaming_events = process  # noqa: SLF001


async def _events(server: Any, request: Any, results: Any, parser: AtomicParser) -> AsyncIterator[Any]:
    items = _Items()
    async for context in results:
        if context.last_output is None or not context.last_output.outputs:
            continue
        output = context.last_output.outputs[0]
        server._raise_if_error(output.finish_reason, request.request_id)  # noqa: SLF001
        prompt = context.last_output.prompt_token_ids
        delta = parser.parse_delta(output.text, [*output.token_ids], request, prompt)
        if delta is not None:
            for event in items.take(delta):
                yield event
    for event in items.close():
        yield event


class _Items:
    """The response's items, of which one may be open."""

    def __init__(self) -> None:
        self._make = importlib.import_module(f"{_MODULE}streaming_events")
        self._state = self._make.StreamingState()
        self._open: str | None = None
        self._text = ""

    def take(self, delta: Any) -> Iterator[Any]:
        """The events of a delta."""
        if delta.reasoning:
            yield from self._add(_REASONING, delta.reasoning, self._make.emit_reasoning_delta_events)
        if delta.content:
            yield from self._add(_MESSAGE, delta.content, self._make.emit_text_delta_events)
        for call in delta.tool_calls or ():
            yield from self.close()
            function = call.function
            yield from self._make.emit_function_call_delta_events(function.arguments, function.name, self._state)
            done = self._make.emit_function_call_done_events(function.name, function.arguments, self._state)
            done[-1].item.id = self._state.current_item_id
            yield from done
            self._state.reset_for_new_item()

    def close(self) -> Iterator[Any]:
        """The events that end the open item."""
        if self._open == _REASONING:
            yield from self._make.emit_reasoning_done_events(self._text, self._state)
        elif self._open == _MESSAGE:
            yield from self._make.emit_text_output_done_events(self._text, self._state)
        if self._open is not None:
            self._state.reset_for_new_item()
            self._open = None

    def _add(self, kind: str, text: str, emit: Any) -> Iterator[Any]:
        if self._open != kind:
            yield from self.close()
            self._open, self._text = kind, ""
            self._state.current_content_index = -1
        self._text += text
        yield from emit(text, self._state)
