"""Many requests, so many at a time, until they are done, time is up, or the user interrupts."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Stop:
    """Whether to go on: set by Ctrl-C, SIGTERM or the end of the time.

    Attributes:
        reason: Why it was set; empty while it is not.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.reason = ""

    def set(self, reason: str) -> None:
        """Stop. The first reason stands."""
        self.reason = self.reason or reason
        self._event.set()

    @property
    def is_set(self) -> bool:
        """Whether it was set."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Until it is set."""
        await self._event.wait()

    @contextlib.contextmanager
    def on_signals_or_after(self, seconds: float) -> Iterator[None]:
        """Set it on SIGINT, on SIGTERM, and after `seconds`, as long as the context lasts."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(seconds, self.set, f"the time of {seconds:g} s was up")
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.set, f"interrupted by {signal.Signals(number).name}")
        try:
            yield
        finally:
            timer.cancel()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


async def run_all(
    items: Iterable[Item],
    work: Callable[[Item], Awaitable[Result]],
    take: Callable[[Item, Result], None],
    *,
    concurrency: int,
    stop: Stop,
) -> None:
    """Work on the items, `concurrency` at a time, and hand each result over as it comes.

    When `stop` is set, what is under way is cancelled and gives no result.
    """
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            take(item, await work(item))

    workers = [asyncio.ensure_future(worker()) for _ in range(concurrency)]
    everything = asyncio.ensure_future(_together(workers))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({everything, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if everything.done():
            everything.result()
    finally:
        tasks = [everything, stopping, *workers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _together(tasks: Sequence[asyncio.Future[None]]) -> None:
    await asyncio.gather(*tasks)
