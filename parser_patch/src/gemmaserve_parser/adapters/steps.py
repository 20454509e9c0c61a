"""Where the engine's outputs pass on their way to the server (`AsyncLLM.generate`).

The server's parser interface says neither how an answer ended (`length` or a natural end, rule 5), nor lets a parser
give more than one delta an engine step (rule 6, and a responses stream that takes one call a delta). Every endpoint
takes its outputs from `AsyncLLM.generate`, so both are put right there, for streams whose choices a parser of ours
reads: the last output is divided into its text and its end, and while a parser has more to say, empty outputs follow.
Other streams pass untouched.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

_MARK = "_gemmaserve_original"


class Reader(Protocol):
    """A parser of ours that reads a choice of the current request."""

    @property
    def pending(self) -> int:
        """How much it has to say that the last delta could not carry."""


class Step(NamedTuple):
    """The output that the server is handling.

    Attributes:
        text: Its text, by which a parser makes sure that this is what it was given.
        ending: How the answer ended with this output, in vLLM's words; None where it goes on.
    """

    text: str
    ending: str | None = None


_readers: ContextVar[list[ref[Reader]] | None] = ContextVar("gemmaserve_readers", default=None)
_step: ContextVar[Step | None] = ContextVar("gemmaserve_step", default=None)
_result: ContextVar[Any] = ContextVar("gemmaserve_result", default=None)


def join(reader: Reader) -> None:
    """Say that `reader` takes part in the request of the current context."""
    readers = _readers.get()
    if readers is None:
        readers = []
        _readers.set(readers)
    readers[:] = [*(each for each in readers if each() is not None), ref(reader)]


def current(text: str) -> Step | None:
    """The output that the server is handling, if it is the one with this text; None where outputs do not pass here."""
    step = _step.get()
    return step if step is not None and step.text == text else None


def whole(text: str) -> tuple[Any, Any]:
    """The finished result and its output with this text, of a request that is not streamed; two None for none."""
    result = _result.get()
    for output in result.outputs if result is not None else ():
        if output.text == text:
            return result, output
    return None, None


def ending_of(text: str) -> str | None:
    """How the whole answer with this text ended, as far as its outputs passed here; None where they did not."""
    _, output = whole(text)
    if output is not None:
        return str(output.finish_reason)
    step = _step.get()
    return step.ending if step is not None else None


def install(engine: Any) -> None:
    """Put ourselves into `engine.generate` (the class `AsyncLLM`); once is enough, twice does no harm."""
    original = engine.generate
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    async def generate(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        readers = _readers.get()
        parameters = kwargs.get("sampling_params", args[1] if len(args) > 1 else None)
        if readers and parameters is not None:
            # A parser of ours needs the markers in the text, also where vLLM would not ask it (tool_choice none).
            parameters.skip_special_tokens = False
        async with contextlib.aclosing(original(self, *args, **kwargs)) as results:
            async for result in results:
                if not readers or not _is_stream(parameters):
                    _result.set(result)
                    yield result
                    continue
                for step, divided in divide(result, readers):
                    _step.set(step)
                    yield divided

    setattr(generate, _MARK, original)
    engine.generate = generate


def divide(result: Any, readers: Sequence[ref[Reader]]) -> Iterator[tuple[Step, Any]]:
    """A streamed result as steps of one output, with empty ones between while a reader has more to say."""
    alone = len(result.outputs) == 1
    for output in result.outputs:
        ending = output.finish_reason
        if ending is None or ending == "error":
            yield Step(output.text), result if alone else _with(result, output)
            if _waiting(readers):
                yield from _drain(result, output, readers)
            continue
        unfinished = copy.copy(output)
        unfinished.finish_reason = unfinished.stop_reason = None
        yield Step(output.text, ending), _with(result, unfinished, finished=False)
        yield from _drain(result, output, readers)
        yield Step("", ending), _with(result, _emptied(output), finished=result.finished)


def _drain(result: Any, output: Any, readers: Sequence[ref[Reader]]) -> Iterator[tuple[Step, Any]]:
    left, waiting = math.inf, _waiting(readers)
    # Until all has left, or nothing leaves: a server that does not ask must not be asked for ever.
    while 0 < waiting < left:
        empty = _emptied(output)
        empty.finish_reason = empty.stop_reason = None
        yield Step(""), _with(result, empty, finished=False)
        left, waiting = waiting, _waiting(readers)


def _waiting(readers: Sequence[ref[Reader]]) -> int:
    """How much the readers that are still there have to say."""
    return sum([reader.pending for each in readers if (reader := each()) is not None])


def _emptied(output: Any) -> Any:
    empty = copy.copy(output)
    empty.text, empty.token_ids = "", []
    if empty.logprobs is not None:
        empty.logprobs = []
    return empty


def _with(result: Any, output: Any, *, finished: bool | None = None) -> Any:
    divided = copy.copy(result)
    divided.outputs = [output]
    if finished is not None:
        divided.finished = finished
    return divided


def _is_stream(parameters: Any) -> bool:
    return getattr(getattr(parameters, "output_kind", None), "name", "") == "DELTA"
