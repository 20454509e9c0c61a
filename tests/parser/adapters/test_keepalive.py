"""Signs of life: between lines that are late, none in place of a line, and everything closed at the end."""

import asyncio
import contextvars

import pytest

from gemmaserve_parser.adapters.keepalive import COMMENT, kept_alive

LATE = 0.05
MARK = contextvars.ContextVar("mark", default=0)


class Lines:
    """Lines that come when they are let go; says whether it was closed."""

    def __init__(self, *lines, error=None):
        self.gates = [asyncio.Event() for _ in lines]
        self.closed = False
        self._lines, self._error = lines, error

    async def read(self):
        try:
            for line, gate in zip(self._lines, self.gates, strict=True):
                await gate.wait()
                MARK.set(MARK.get() + 1)
                yield f"{line}{MARK.get()}"
            if self._error is not None:
                raise self._error
        finally:
            self.closed = True


def stream_of(lines, seconds):
    return kept_alive(lines.read(), COMMENT, seconds, contextvars.copy_context())


def run(test):
    asyncio.run(asyncio.wait_for(test(), 20))


def test_what_is_in_time_passes_alone():
    async def test():
        lines = Lines("a", "b")
        for gate in lines.gates:
            gate.set()
        assert [line async for line in stream_of(lines, 10)] == ["a1", "b2"]
        assert lines.closed

    run(test)


def test_a_late_line_comes_after_signs_of_life_and_in_its_makers_own_context():
    async def test():
        lines = Lines("a", "b")
        lines.gates[0].set()
        stream = stream_of(lines, LATE)
        assert [await anext(stream) for _ in range(3)] == ["a1", COMMENT, COMMENT]
        lines.gates[1].set()
        while (line := await anext(stream)) == COMMENT:
            pass
        assert line == "b2"
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    run(test)


def test_a_client_that_leaves_closes_the_stream_at_once():
    async def test():
        lines = Lines("a", "b")
        lines.gates[0].set()
        stream = stream_of(lines, 10)
        assert await anext(stream) == "a1"
        await stream.aclose()
        assert lines.closed

    run(test)


def test_an_error_of_the_stream_is_the_clients():
    async def test():
        lines = Lines("a", error=RuntimeError("engine died"))
        lines.gates[0].set()
        stream = stream_of(lines, 10)
        assert await anext(stream) == "a1"
        with pytest.raises(RuntimeError, match="engine died"):
            await anext(stream)

    run(test)


@pytest.mark.parametrize("seconds", [10, 0])
def test_the_stream_is_read_in_the_context_it_was_made_in(seconds):
    """vLLM makes it in a task of its own, where a parser joins the request, and reads it in another."""

    async def test():
        lines = Lines("a")
        lines.gates[0].set()

        async def handle():
            MARK.set(41)
            return stream_of(lines, seconds)

        stream = await asyncio.create_task(handle())
        assert MARK.get() == 0
        assert [line async for line in stream] == ["a42"]

    run(test)


def test_without_an_interval_nothing_is_added():
    async def test():
        lines = Lines("a")
        asyncio.get_running_loop().call_later(LATE * 2, lines.gates[0].set)
        assert [line async for line in stream_of(lines, 0)] == ["a1"]

    run(test)
