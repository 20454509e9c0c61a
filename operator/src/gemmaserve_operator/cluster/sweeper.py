"""The sweeper: lists each kind on a slow period and whenever a watch began anew, and puts the store right.

A watch that had to begin anew (410 Gone) does not tell of what was deleted meanwhile; only a list does.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from gemmaserve_operator.cluster.backoff import Backoff, jitter
from gemmaserve_operator.cluster.client import ApiError, Client
from gemmaserve_operator.cluster.kinds import WATCHED, Key, Kind
from gemmaserve_operator.cluster.store import Store

logger = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 2.0
"""A watch that begins anew tells of many objects at once: one list is made after the last of them."""
FIRST_PERIOD: Final = 5.0
"""Seconds from the start until the first list again: the watches began after the store was first filled."""
_BACKOFF: Final = Backoff(first=1.0, cap=60.0)


class Sweeper:
    """Lists kinds into the store.

    Args:
        client: To list with.
        store: To put right.
        namespaces: The namespaces to list; none means all.
        period: Seconds between two lists of a kind, give or take a tenth.
        on_change: Is told each GemmaServe about which a list said something new.
    """

    def __init__(
        self,
        client: Client,
        store: Store,
        *,
        namespaces: Sequence[str],
        period: float,
        on_change: Callable[[Key], None],
    ) -> None:
        self._client = client
        self._store = store
        self._scopes: Sequence[str | None] = namespaces or (None,)
        self._period = period
        self._on_change = on_change
        self._asked = {kind: asyncio.Event() for kind in WATCHED}

    def ask(self, kind: Kind) -> None:
        """Have a kind listed soon."""
        self._asked[kind].set()

    async def fill(self) -> None:
        """Fill the store before anything is planned from it.

        Raises:
            ApiError: The API server refuses a list; what may pass is tried again for ever.
        """
        failures = 0
        while True:
            try:
                for kind in WATCHED:
                    await self._sweep(kind)
            except ApiError as error:
                if not error.passing:
                    raise
                failures += 1
                wait = _BACKOFF.delay(failures)
                logger.warning("cannot read the cluster yet: %s; again in %.0f s", error, wait)
                await asyncio.sleep(wait)
            else:
                return

    async def run(self) -> None:
        """List every kind for ever."""
        async with asyncio.TaskGroup() as tasks:
            for kind in WATCHED:
                tasks.create_task(self._run(kind), name=f"sweep {kind.plural}")

    async def _run(self, kind: Kind) -> None:
        failures, wait = 0, FIRST_PERIOD
        while True:
            await self._wait(kind, wait * jitter(0.9, 1.1))
            try:
                changed = await self._sweep(kind)
            except ApiError as error:
                failures += 1
                wait = _BACKOFF.delay(failures)
                logger.warning("cannot list %s: %s; again in %.0f s", kind.plural, error, wait)
                continue
            failures, wait = 0, self._period
            if changed:
                logger.info("a list of %s brought news of %d GemmaServes", kind.plural, len(changed))

    async def _wait(self, kind: Kind, seconds: float) -> None:
        """Until the time is over, or a list was asked for and nothing more has come for a while."""
        asked = self._asked[kind]
        try:
            await asyncio.wait_for(asked.wait(), seconds)
            while True:
                asked.clear()
                await asyncio.wait_for(asked.wait(), SETTLE_SECONDS)
        except TimeoutError:
            return

    async def _sweep(self, kind: Kind) -> set[Key]:
        changed: set[Key] = set()
        for namespace in self._scopes:
            listing = await self._client.list_all(kind, namespace)
            changed |= self._store.replace(kind, namespace, listing.items, listing.resource_version)
        for key in changed:
            self._on_change(key)
        return changed
