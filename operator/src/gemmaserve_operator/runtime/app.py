"""The running operator: client, store, queue, workers and sweeper put together, under a lease, under kopf."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any, Final

from aiohttp import web

from gemmaserve_operator.cluster import client as cluster_client
from gemmaserve_operator.cluster.client import ApiError, Client
from gemmaserve_operator.cluster.events import EventSender
from gemmaserve_operator.cluster.kinds import GEMMASERVE, WATCHED, Json, Kind
from gemmaserve_operator.cluster.lease import Lease
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.cluster.sweeper import Sweeper
from gemmaserve_operator.runtime.handlers import Hooks, watch
from gemmaserve_operator.runtime.metrics import Metrics
from gemmaserve_operator.runtime.reconciler import Reconciler
from gemmaserve_operator.runtime.settings import Settings
from gemmaserve_operator.runtime.workqueue import WorkQueue

logger = logging.getLogger(__name__)

PROBE_PATHS: Final = ("/healthz", "/readyz")
DRAIN_SECONDS: Final = 10.0
"""How long reconciles that are under way may take to end when the operator stops."""
FLUSH_SECONDS: Final = 3.0
"""How long events that wait may take then."""
_STALE_SECONDS: Final = 60.0
_STALE_PERIODS: Final = 2.5
"""The store is stale when nothing was heard about a kind for so many sweeps' periods, and the seconds above."""


class StartError(Exception):
    """The operator cannot work in this cluster; the message names the next step."""


class App:
    """Everything but watches and lease."""

    def __init__(self, client: Client, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self.store = Store()
        self.queue = WorkQueue()
        self._sweeper = Sweeper(
            client,
            self.store,
            namespaces=settings.namespaces,
            period=settings.resync_seconds,
            on_change=self.queue.add,
        )
        self._events = EventSender(client, self.queue.calm)
        self._reconciler = Reconciler(
            client,
            self.store,
            self.queue,
            self._events,
            max_concurrent_gates=settings.max_concurrent_gates,
            watcher=metrics,
        )
        self._tasks: list[asyncio.Task[None]] = []
        metrics.watch(self.queue, self.store)

    @property
    def hooks(self) -> Hooks:
        """What kopf calls."""
        return Hooks(start=self.start, see=self.see, probe=self.probe, stop=self.stop)

    async def start(self) -> None:
        """Fill the store, then begin to work: nothing is planned from half a picture.

        Raises:
            StartError: The API server refuses what the operator needs.
        """
        try:
            await self._sweeper.fill()
        except ApiError as error:
            raise StartError(_explain(error)) from error
        for key in self.store.gemmaserves():
            self.queue.add(key)
        self._tasks = [
            asyncio.create_task(self.queue.work(self._reconciler.reconcile), name=f"worker {number}")
            for number in range(self._settings.workers)
        ]
        self._tasks.append(asyncio.create_task(self._sweeper.run(), name="sweeper"))
        self._tasks.append(asyncio.create_task(self._events.run(), name="events"))
        logger.info("working", extra={"gemmaserves": self.queue.depth})

    def see(self, kind: Kind, change: str | None, obj: Json) -> None:
        """Take in one event of a watch."""
        self.store.heard(kind)
        if change is None:
            # The watch began anew, and does not tell of what was deleted meanwhile.
            self._sweeper.ask(kind)
        held = self.store.get(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
        news = self.store.remove(kind, obj) if change == "DELETED" else self.store.put(kind, obj)
        if not news:
            return
        for key in {kind.owner_key(obj), kind.owner_key(held) if held else None}:
            if key is not None:
                self.queue.add(key)

    def probe(self) -> dict[str, Any]:
        """How long ago each kind was heard of, in seconds.

        Raises:
            StaleError: A kind was not heard of for too long, or a task that must not end has ended.
        """
        ended = [task.get_name() for task in self._tasks if task.done()]
        if ended:
            raise StaleError(f"ended: {', '.join(ended)}")
        limit = self._settings.resync_seconds * _STALE_PERIODS + _STALE_SECONDS
        ages = {kind.kind: self.store.staleness(kind) for kind in WATCHED}
        stale = [f"{kind} for {age:.0f} s" for kind, age in ages.items() if age > limit]
        if stale:
            raise StaleError(f"nothing heard of {', '.join(stale)}")
        return {kind: round(age, 1) for kind, age in ages.items()}

    async def stop(self) -> None:
        """Let reconciles that are under way end, then stop."""
        try:
            await asyncio.wait_for(self.queue.drain(), DRAIN_SECONDS)
        except TimeoutError:
            logger.warning("stopped in the middle of a reconcile; the next start goes on from there")
        with suppress(TimeoutError):
            await asyncio.wait_for(self._events.flush(), FLUSH_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class StaleError(Exception):
    """The operator does not know the cluster's state any more; it is to be started again."""


def _explain(error: ApiError) -> str:
    if error.code == 404:
        return f"the API server knows no {GEMMASERVE.plural}.{GEMMASERVE.group}: install the chart, or apply its CRD"
    if error.code == 403:
        return f"{error.message}: install the chart with rbac.create, or grant what it would grant"
    return str(error)


async def run(settings: Settings, *, observe: Callable[[str, int, float], None] | None = None) -> None:
    """Run the operator until a signal.

    Args:
        settings: How to run.
        observe: Is told verb, code and seconds of each try of a request, beside the metrics.

    Raises:
        StartError: It cannot work in this cluster; kopf may have wrapped it.
        ApiError: There is no cluster, or no lease to be had.
        OSError: A port is taken.
    """
    metrics = Metrics()
    shown = metrics.serve(settings.bind_address, settings.metrics_port) if settings.metrics_port else nullcontext()

    def tell(verb: str, code: int, seconds: float) -> None:
        metrics.observe_request(verb, code, seconds)
        if observe is not None:
            observe(verb, code, seconds)

    async with shown, cluster_client.connect(tell) as client, _leadership(client, settings):
        metrics.lead()
        app = App(client, settings, metrics)
        await watch(app.hooks, namespaces=settings.namespaces, liveness_endpoint=_probe_url(settings))


def _probe_url(settings: Settings) -> str | None:
    if not settings.probe_port:
        return None
    host = f"[{settings.bind_address}]" if ":" in settings.bind_address else settings.bind_address
    names = "|".join(path.removeprefix("/") for path in PROBE_PATHS)
    # One of aiohttp's variable routes, so that kopf's one endpoint answers to each of the paths.
    return f"http://{host}:{settings.probe_port}/{{probe:{names}}}"


@asynccontextmanager
async def _leadership(client: Client, settings: Settings) -> AsyncIterator[None]:
    """Hold the lease for as long as the body runs. When it is lost the process ends at once, in whatever state."""
    if not settings.leader_elect:
        yield
        return
    lease = Lease(client, settings.lease_namespace, settings.lease_name)
    async with _standing_by(settings):
        await lease.acquire()
    keeper = asyncio.create_task(lease.keep(), name="lease")
    keeper.add_done_callback(_end_when_lost)
    try:
        yield
    finally:
        keeper.cancel()
        await lease.release()


def _end_when_lost(keeper: asyncio.Task[None]) -> None:
    """Leave no time for one write more: every prefix of a plan's writes is a safe state."""
    if not keeper.cancelled():
        logger.critical("%s; ending at once", keeper.exception())
        logging.shutdown()
        os._exit(1)


@asynccontextmanager
async def _standing_by(settings: Settings) -> AsyncIterator[None]:
    """Answer probes while another operator leads: standing by is being well."""
    if not settings.probe_port:
        yield
        return

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"standby": True})

    application = web.Application()
    application.add_routes([web.get(path, answer) for path in PROBE_PATHS])
    runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.bind_address, settings.probe_port).start()
        yield
    finally:
        await runner.cleanup()
