"""One reconcile: snapshot, plan, writes in order, status, events.

Level-triggered: it asks what is, not what happened.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.apply import StaleStoreError, Writer
from gemmaserve_operator.cluster.client import ApiError, Client
from gemmaserve_operator.cluster.events import EventSender
from gemmaserve_operator.cluster.kinds import Json, Key
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.planning import Apply, Plan, Refusal, Snapshot, Write, plan
from gemmaserve_operator.planning.objects import label
from gemmaserve_operator.runtime.workqueue import WorkQueue

logger = logging.getLogger(__name__)

MAX_PASSES: Final = 8
"""Plans in one reconcile, each made from what the writes of the last have changed. The rest waits its turn."""

Outcome = Literal["unchanged", "written", "refused", "stale", "error"]


class Watcher(Protocol):
    """Is told what reconciles come to; `Metrics` is one."""

    def observe_reconcile(self, outcome: Outcome, seconds: float) -> None:
        """One reconcile has ended."""

    def observe_status(self, key: Key, before: Json, after: Json) -> None:
        """A status has been written."""

    def forget(self, key: Key) -> None:
        """A GemmaServe is gone."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _Progress:
    """What has come of one reconcile so far."""

    plan: Plan
    writes: int = 0
    refusals: dict[str, Refusal] = field(default_factory=dict)
    unfinished: bool = False
    """There was more to write than one reconcile may."""


class Reconciler:
    """Brings one GemmaServe after another to what its plan says."""

    def __init__(  # noqa: PLR0913 - what it works with, each by its name
        self,
        client: Client,
        store: Store,
        queue: WorkQueue,
        events: EventSender,
        *,
        max_concurrent_gates: int,
        watcher: Watcher,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._store = store
        self._queue = queue
        self._events = events
        self._writer = Writer(client, store)
        self._max_gates = max_concurrent_gates
        self._gates_under_way = 0
        self._refusals: dict[Key, dict[str, Refusal]] = {}
        self._watcher = watcher
        self._now = now

    async def reconcile(self, key: Key) -> None:
        """Bring one GemmaServe on, and say when to look at it again. Whatever goes wrong, it is looked at again."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        outcome: Outcome = "error"
        try:
            outcome = await self._reconcile(key)
        except StaleStoreError as news:
            logger.info("%s/%s: %s", *key, news)
            outcome = "stale"
            self._queue.retry(key)
        except ApiError as trouble:
            logger.warning("%s/%s: tried again later: %s", *key, trouble)
            self._queue.retry(key)
        finally:
            self._watcher.observe_reconcile(outcome, loop.time() - start)

    async def _reconcile(self, key: Key) -> Outcome:
        snapshot = self._snapshot(key)
        if snapshot is None:
            self._refusals.pop(key, None)
            self._watcher.forget(key)
            self._queue.succeeded(key)
            return "unchanged"
        progress = await self._write(key, snapshot)
        told = await self._tell(key, progress)
        if progress.refusals:
            self._queue.retry(key)
            return "refused"
        self._queue.succeeded(key)
        if progress.unfinished:
            self._queue.add(key)
        elif progress.plan.requeue_after is not None:
            self._queue.add_after(key, progress.plan.requeue_after)
        return "written" if progress.writes or told else "unchanged"

    def _snapshot(self, key: Key) -> Snapshot | None:
        free = self._max_gates - self._store.running_gates - self._gates_under_way
        return self._store.snapshot(key, free_gates=max(0, free), refusals=self._refusals.get(key))

    async def _write(self, key: Key, snapshot: Snapshot) -> _Progress:
        """Plan and write until there is nothing left to write; the last plan is the one to tell of."""
        progress = _Progress(plan(snapshot, self._now()))
        for _ in range(MAX_PASSES):
            self._refusals.pop(key, None)
            if not progress.plan.writes:
                return progress
            progress.refusals = await self._carry_out(key, snapshot, progress)
            if progress.refusals:
                self._refusals[key] = progress.refusals
            news = self._snapshot(key)
            if news is None:
                raise StaleStoreError("it is gone")
            snapshot = news
            progress.plan = plan(snapshot, self._now())
            if progress.refusals:
                return progress
        progress.unfinished = bool(progress.plan.writes)
        return progress

    async def _carry_out(self, key: Key, snapshot: Snapshot, progress: _Progress) -> dict[str, Refusal]:
        """Make the writes in order, up to the first that is refused."""
        writes = progress.plan.writes
        # Counted before anything else can run, so that two reconciles do not both take the last free gate.
        gates = _gates_in(writes)
        self._gates_under_way += gates
        try:
            for write in writes:
                refusal = await self._writer.carry_out(snapshot.resource, write)
                if refusal is not None:
                    logger.warning("%s/%s: %s: refused with %d: %s", *key, write.why, refusal.code, refusal.message)
                    return {_written(write): refusal}
                progress.writes += 1
                logger.info("%s/%s: %s", *key, write.why)
        finally:
            self._gates_under_way -= gates
        return {}

    async def _tell(self, key: Key, progress: _Progress) -> bool:
        """Write the status if it differs, then have the events sent that go with it."""
        snapshot = self._snapshot(key)
        if snapshot is None:
            return False
        resource = snapshot.resource
        status = progress.plan.status
        if resource["metadata"].get("deletionTimestamp") or status == (resource.get("status") or {}):
            return False
        await self._writer.write_status(resource, status)
        self._watcher.observe_status(key, resource.get("status") or {}, status)
        for event in progress.plan.events:
            self._events.send(resource, event)
        return True


def _gates_in(writes: Sequence[Write]) -> int:
    return sum(
        isinstance(write, Apply)
        and write.creates
        and write.body["kind"] == "Job"
        and label(write.body, names.LABEL_COMPONENT) in names.GATES
        for write in writes
    )


def _written(write: Write) -> str:
    if isinstance(write, Apply):
        return f"{write.body['kind']}/{write.body['metadata']['name']}"
    return f"{write.kind}/{write.name}"
