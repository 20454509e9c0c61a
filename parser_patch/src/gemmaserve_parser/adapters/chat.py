"""The finish_reason of a chat completion, where the installed vLLM decides it wrongly.

Before 0.33 an answer with a call ends with `tool_calls` even when max_tokens cut it (rule 5), and `required` ends so
without any call.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.adapters import messages
from gemmaserve_parser.adapters.parsers import AtomicParser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_MARK = "_gemmaserve_original"
_WRONG = '"finish_reason":"tool_calls"'


def finish_reason(engine: str | None, request: Any, *, calls: bool) -> str:
    """What a client is told: the engine's own reason, but `tool_calls` where it stopped by itself after a call.

    A forced named tool ends with `stop`, as OpenAI's API has it.
    """
    forced = not isinstance(getattr(request, "tool_choice", None), str | None)
    return "tool_calls" if calls and not forced and engine in {None, "stop"} else engine or "stop"


def install(chat: Any, complete: Callable[..., Any] | None = None) -> None:
    """Correct `chat` (the class `OpenAIServingChat`); once is enough, twice does no harm.

    Args:
        chat: The class.
        complete: Called with the server, the request, a choice of the response and the engine's output before the
            choice's finish_reason is set, where the message itself has to be put right too.
    """
    if not hasattr(chat.chat_completion_stream_generator, _MARK):
        chat.chat_completion_stream_generator = _stream(chat.chat_completion_stream_generator)
        chat.chat_completion_full_generator = _full(chat.chat_completion_full_generator, complete)
    messages.install()


def is_ours(server: Any) -> bool:
    """Whether a parser of ours reads this server's chat completions."""
    parser = getattr(server, "parser_cls", None)
    return parser is not None and issubclass(parser, AtomicParser)


def _stream(original: Any) -> Any:
    @functools.wraps(original)
    async def chat_completion_stream_generator(
        self: Any, request: Any, result_generator: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[str]:
        endings: dict[int, str | None] = {}
        results = _noting(result_generator, endings) if is_ours(self) else result_generator
        async for line in original(self, request, results, *args, **kwargs):
            yield _corrected(line, request, endings) if endings and _WRONG in line else line

    setattr(chat_completion_stream_generator, _MARK, original)
    return chat_completion_stream_generator


async def _noting(results: Any, endings: dict[int, str | None]) -> AsyncIterator[Any]:
    async for result in results:
        for output in result.outputs:
            endings[output.index] = output.finish_reason
        yield result


def _corrected(line: str, request: Any, endings: dict[int, str | None]) -> str:
    prefix, _, data = line.partition("data: ")
    chunk = json.loads(data)
    for choice in chunk.get("choices", ()):
        if choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = finish_reason(endings.get(choice["index"]), request, calls=True)
    return f"{prefix}data: {json.dumps(chunk, ensure_ascii=False, separators=(',', ':'))}\n\n"


def _full(original: Any, complete: Callable[..., Any] | None) -> Any:
    @functools.wraps(original)
    async def chat_completion_full_generator(
        self: Any, request: Any, result_generator: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if not is_ours(self):
            return await original(self, request, result_generator, *args, **kwargs)
        final: list[Any] = []
        asked = request
        if complete is not None and request.tool_choice not in ("auto", "none"):
            # 0.20 asserts that a forced call was made, and drops the content beside it; `complete` puts both right.
            asked = request.model_copy(update={"tool_choice": "auto"})
        response = await original(self, asked, _keeping_last(result_generator, final), *args, **kwargs)
        for choice in getattr(response, "choices", ()):
            output = next(each for each in final[0].outputs if each.index == choice.index)
            if complete is not None:
                complete(self, request, choice, final[0], output)
            choice.finish_reason = finish_reason(output.finish_reason, request, calls=bool(choice.message.tool_calls))
        return response

    setattr(chat_completion_full_generator, _MARK, original)
    return chat_completion_full_generator


async def _keeping_last(results: Any, final: list[Any]) -> AsyncIterator[Any]:
    async for result in results:
        final[:] = [result]
        yield result
