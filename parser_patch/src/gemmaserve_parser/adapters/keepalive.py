"""Signs of life in the streams of responses and messages while a call is withheld (rule 10).

A chat stream gets an empty delta, which its clients ignore. The other two have no such thing: a responses stream gets a
comment, which the format of server-sent events tells every client to ignore, and a messages stream the `ping` event
that its protocol has for this.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import importlib
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.adapters.answer import heartbeat_seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextvars import Context

COMMENT = ": keep-alive\n\n"
PING = 'event: ping\ndata: {"type": "ping"}\n\n'

_MARK = "_gemmaserve_original"
_END = object()


def install() -> None:
    """Keep both kinds of stream alive; once is enough, twice does no harm."""
    responses = importlib.import_module("vllm.entrypoints.openai.responses.api_router")
    messages = importlib.import_module("vllm.entrypoints.anthropic.serving").AnthropicServingMessages
    for owner, name, beat in (
        (responses, "_convert_stream_to_sse_events", COMMENT),
        (messages, "message_stream_converter", PING),
    ):
        original = getattr(owner, name)
        if not hasattr(original, _MARK):
            setattr(owner, name, _wrapped(original, beat))


def _wrapped(original: Any, beat: str) -> Any:
    @functools.wraps(original)
    def convert(*args: Any, **kwargs: Any) -> AsyncIterator[str]:
        return kept_alive(original(*args, **kwargs), beat, heartbeat_seconds(), contextvars.copy_context())

    setattr(convert, _MARK, original)
    return convert


async def kept_alive(lines: AsyncIterator[str], beat: str, seconds: float, context: Context) -> AsyncIterator[str]:
    """The lines, with `beat` after every `seconds` without one; never, where these are 0 or less.

    One task reads all of them, so that what a line's making keeps in its context is there for the next. It works in the
    context that the request was handled in: vLLM does that in a task of its own, in which the parser of a responses
    stream is made and joins the stream (`steps`), and reads the stream in another. It ends with this generator, and
    closes `lines` when it does.
    """
    queue: asyncio.Queue[Any] = asyncio.Queue(maxsize=1)
    reading = context.run(asyncio.ensure_future, _read(lines, queue))
    try:
        while True:
            try:
                line = await asyncio.wait_for(queue.get(), seconds if seconds > 0 else None)
            except asyncio.TimeoutError:  # noqa: UP041  (another class than TimeoutError before Python 3.11)
                yield beat
                continue
            if line is _END:
                break
            yield line
        await reading
    finally:
        reading.cancel()
        await asyncio.wait({reading})


async def _read(lines: AsyncIterator[str], queue: asyncio.Queue[Any]) -> None:
    try:
        async for line in lines:
            await queue.put(line)
        await queue.put(_END)
    except Exception:
        await queue.put(_END)
        raise
    finally:
        await lines.aclose()  # type: ignore[attr-defined]
