"""Prometheus metrics of the operator itself. No label has more values than kinds, verbs, codes, phases or gates."""

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Final, Literal, get_args

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder

from gemmaserve_operator.api.conditions import LIVE_VERIFIED, PARSER_VERIFIED
from gemmaserve_operator.api.status import Phase
from gemmaserve_operator.cluster.kinds import WATCHED, Json, Key
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.runtime.workqueue import WorkQueue

PREFIX: Final = "gemmaserve_operator_"
_RECONCILE_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_REQUEST_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_PHASE_BUCKETS: Final = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 21600.0)
_ROLLOUT_PHASES: Final = ("Verifying", "WaitingForCapacity", "Starting", "RollingOut")
"""Phases that are on the way to somewhere; for how long it serves, or has failed, is no duration of a rollout."""
_GATES: Final = {PARSER_VERIFIED: "parser", LIVE_VERIFIED: "live"}


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric, as it is exported and as docs/metrics.md tells of it."""

    name: str
    """Without the prefix, and without what its type adds (`_total`)."""
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def exported(self) -> str:
        """The name that queries use; a histogram's series add `_bucket`, `_sum` and `_count`."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"


RECONCILES: Final = Definition(
    "reconcile_duration_seconds",
    "histogram",
    "Duration of one reconcile of one GemmaServe, by outcome: unchanged, written, refused, stale, error",
    ("outcome",),
    _RECONCILE_BUCKETS,
)
QUEUE_DEPTH: Final = Definition("queue_depth", "gauge", "GemmaServes that wait for a reconcile")
QUEUE_AGE: Final = Definition(
    "queue_age_seconds", "gauge", "How long the GemmaServe at the head of the queue has been waiting"
)
REQUESTS: Final = Definition(
    "api_requests",
    "counter",
    "Requests to the API server by verb and HTTP code (0: no answer), watches left out",
    ("verb", "code"),
)
REQUEST_DURATIONS: Final = Definition(
    "api_request_duration_seconds",
    "histogram",
    "Duration of requests to the API server by verb, watches left out",
    ("verb",),
    _REQUEST_BUCKETS,
)
STALENESS: Final = Definition(
    "watch_staleness_seconds",
    "gauge",
    "Time since the API server was last heard about a kind, by watch or by list",
    ("kind",),
)
GEMMASERVES: Final = Definition("gemmaserves", "gauge", "GemmaServes by phase", ("phase",))
RUNNING_GATES: Final = Definition("running_gates", "gauge", "Gate Jobs that have been made and have not ended")
GATE_RESULTS: Final = Definition(
    "gate_results", "counter", "Verdicts of gates: parser or live; passed or failed", ("gate", "result")
)
PHASES: Final = Definition(
    "phase_duration_seconds",
    "histogram",
    "How long a GemmaServe was in a phase of a rollout, observed when it leaves it, if it was seen to enter it",
    ("phase",),
    _PHASE_BUCKETS,
)
LEADER: Final = Definition("leader", "gauge", "1 while this process leads (or runs without a lease), else 0")
BUILD: Final = Definition("build_info", "gauge", "Always 1; the operator's version", ("version",))
DEFINITIONS: Final = (
    RECONCILES,
    QUEUE_DEPTH,
    QUEUE_AGE,
    REQUESTS,
    REQUEST_DURATIONS,
    STALENESS,
    GEMMASERVES,
    RUNNING_GATES,
    GATE_RESULTS,
    PHASES,
    LEADER,
    BUILD,
)


class Metrics:
    """What the operator counts, in a registry of its own. Read and written on the event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        self._reconciles = self._histogram(RECONCILES)
        self._requests = self._counter(REQUESTS)
        self._durations = self._histogram(REQUEST_DURATIONS)
        self._gate_results = self._counter(GATE_RESULTS)
        self._phases = self._histogram(PHASES)
        self._leader = self._gauge(LEADER)
        self._entered: dict[Key, float] = {}
        for gate in _GATES.values():
            for result in ("passed", "failed"):
                # There from the start, so that the first failure is an increase.
                self._gate_results.labels(gate, result)
        self._gauge(BUILD).labels(version("gemmaserve-operator")).set(1)

    def observe_reconcile(self, outcome: str, seconds: float) -> None:
        """One reconcile has ended."""
        self._reconciles.labels(outcome).observe(seconds)

    def observe_request(self, verb: str, code: int, seconds: float) -> None:
        """One try of a request has ended."""
        self._requests.labels(verb, str(code)).inc()
        self._durations.labels(verb).observe(seconds)

    def observe_status(self, key: Key, before: Json, after: Json) -> None:
        """A GemmaServe's status has been written; `before` is what it was, empty for a new one."""
        for condition, gate in _GATES.items():
            verdict = _status_of(after, condition)
            if verdict in ("True", "False") and verdict != _status_of(before, condition):
                self._gate_results.labels(gate, "passed" if verdict == "True" else "failed").inc()
        if before.get("phase") != after.get("phase"):
            entered = self._entered.pop(key, None)
            if entered is not None:
                self._phases.labels(before.get("phase")).observe(self._clock() - entered)
            if after.get("phase") in _ROLLOUT_PHASES:
                self._entered[key] = self._clock()

    def forget(self, key: Key) -> None:
        """A GemmaServe is gone."""
        self._entered.pop(key, None)

    def lead(self) -> None:
        """This process leads from now on, until it ends."""
        self._leader.set(1)

    def watch(self, queue: WorkQueue, store: Store) -> None:
        """Show the queue and the store from now on."""
        self._gauge(QUEUE_DEPTH).set_function(lambda: queue.depth)
        self._gauge(QUEUE_AGE).set_function(lambda: queue.age)
        self._gauge(RUNNING_GATES).set_function(lambda: store.running_gates)
        staleness, gemmaserves = self._gauge(STALENESS), self._gauge(GEMMASERVES)
        for kind in WATCHED:
            staleness.labels(kind.kind).set_function(partial(store.staleness, kind))
        for phase in get_args(Phase):
            gemmaserves.labels(phase).set_function(partial(store.count_phase, phase))

    @asynccontextmanager
    async def serve(self, address: str, port: int) -> AsyncIterator[None]:
        """Serve /metrics for as long as the body runs, on this event loop: what is read does not change meanwhile.

        Raises:
            OSError: The port is taken.
        """
        application = web.Application()
        application.add_routes([web.get("/metrics", self._answer)])
        runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, address, port).start()
            yield
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self.registry), headers={"Content-Type": content_type})

    def _gauge(self, metric: Definition) -> Gauge:
        return Gauge(PREFIX + metric.name, metric.text, metric.labels, registry=self.registry)

    def _counter(self, metric: Definition) -> Counter:
        return Counter(PREFIX + metric.name, metric.text, metric.labels, registry=self.registry)

    def _histogram(self, metric: Definition) -> Histogram:
        return Histogram(
            PREFIX + metric.name, metric.text, metric.labels, buckets=metric.buckets, registry=self.registry
        )


def _status_of(status: Json, kind: str) -> str | None:
    conditions: Iterable[Json] = status.get("conditions") or []
    return next((condition.get("status") for condition in conditions if condition.get("type") == kind), None)
