"""The work queue: each key waits at most once, is worked on by at most one worker, and comes back when asked to."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from gemmaserve_operator.cluster.backoff import Backoff
from gemmaserve_operator.cluster.kinds import Key

logger = logging.getLogger(__name__)

RETRY: Final = Backoff(first=0.5, cap=60.0)
"""Between failed tries of a key; the cap is how long somebody who mends the cause waits at most."""


class WorkQueue:
    """Deduplicates, keeps order of arrival, and starves nobody.

    A key that is added while it is being worked on is worked on once more afterwards. Of several waits of a key the
    last one counts; a key that is added does not wait.
    """

    def __init__(self, retry: Backoff = RETRY) -> None:
        self._retry = retry
        self._waiting: dict[Key, float] = {}
        self._order: deque[Key] = deque()
        self._working: set[Key] = set()
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._arrival = asyncio.Event()
        self._draining = False
        self._idle = asyncio.Event()
        self._calm = asyncio.Event()
        self._calm.set()

    def add(self, key: Key) -> None:
        """Have a key worked on as soon as a worker is free."""
        self._cancel(key)
        if key in self._working:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting[key] = asyncio.get_running_loop().time()
            self._order.append(key)
            self._arrival.set()
            if not self._draining:
                self._calm.clear()

    def add_after(self, key: Key, seconds: float) -> None:
        """Have a key worked on after a while, unless it is added before."""
        self._cancel(key)
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, self._due, key)

    def retry(self, key: Key) -> None:
        """Have a key worked on again after a failure, later each time in a row."""
        self._failures[key] = self._failures.get(key, 0) + 1
        self.add_after(key, self._retry.delay(self._failures[key]))

    def succeeded(self, key: Key) -> None:
        """Forget a key's failures and waits."""
        self._failures.pop(key, None)
        self._cancel(key)

    @property
    def depth(self) -> int:
        """Keys that wait for a worker."""
        return len(self._waiting)

    @property
    def age(self) -> float:
        """Seconds that the key at the head has been waiting; 0 when none is."""
        if not self._order:
            return 0.0
        return asyncio.get_running_loop().time() - self._waiting[self._order[0]]

    async def work(self, handle: Callable[[Key], Awaitable[None]]) -> None:
        """Be one worker, for ever. What `handle` raises is logged, and the key comes back after a while."""
        while True:
            key = await self._next()
            try:
                await handle(key)
            except Exception:
                logger.exception("%s/%s failed", *key)
                self.retry(key)
            finally:
                self._working.discard(key)
                if not self._working:
                    self._idle.set()
            if key in self._again:
                self._again.discard(key)
                self.add(key)

    async def drain(self) -> None:
        """Start on no key any more, and wait until none is being worked on."""
        self._draining = True
        self._calm.set()
        if self._working:
            await self._idle.wait()

    async def calm(self) -> None:
        """Wait until no key waits for a worker, or none will get one any more."""
        await self._calm.wait()

    async def _next(self) -> Key:
        while self._draining or not self._order:
            self._arrival.clear()
            await self._arrival.wait()
        key = self._order.popleft()
        del self._waiting[key]
        if not self._waiting:
            self._calm.set()
        self._working.add(key)
        return key

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _cancel(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
