"""Prometheus metrics of the operator itself."""

from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from gemmaserve_operator.cluster.kinds import WATCHED
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.runtime.workqueue import WorkQueue

_RECONCILE_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_REQUEST_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)


class Metrics:
    """What the operator counts, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._reconciles = Histogram(
            "gemmaserve_operator_reconcile_duration_seconds",
            "Duration of one reconcile of one GemmaServe, by outcome: unchanged, written, refused, stale, error",
            ["outcome"],
            buckets=_RECONCILE_BUCKETS,
            registry=self.registry,
        )
        self._requests = Counter(
            "gemmaserve_operator_api_requests",
            "Requests to the API server by verb and HTTP code (0: no answer), watches left out",
            ["verb", "code"],
            registry=self.registry,
        )
        self._durations = Histogram(
            "gemmaserve_operator_api_request_duration_seconds",
            "Duration of requests to the API server by verb, watches left out",
            ["verb"],
            buckets=_REQUEST_BUCKETS,
            registry=self.registry,
        )

    def observe_reconcile(self, outcome: str, seconds: float) -> None:
        """One reconcile has ended."""
        self._reconciles.labels(outcome).observe(seconds)

    def observe_request(self, verb: str, code: int, seconds: float) -> None:
        """One try of a request has ended."""
        self._requests.labels(verb, str(code)).inc()
        self._durations.labels(verb).observe(seconds)

    def watch(self, queue: WorkQueue, store: Store) -> None:
        """Show the queue and the store from now on."""
        self._gauge("queue_depth", "GemmaServes that wait for a reconcile").set_function(lambda: queue.depth)
        self._gauge(
            "queue_age_seconds", "How long the GemmaServe at the head of the queue has been waiting"
        ).set_function(lambda: queue.age)
        self._gauge("running_gates", "Gate Jobs that have been made and have not ended").set_function(
            lambda: store.running_gates
        )
        staleness = Gauge(
            "gemmaserve_operator_watch_staleness_seconds",
            "Time since the API server was last heard about a kind, by watch or by list",
            ["kind"],
            registry=self.registry,
        )
        for kind in WATCHED:
            staleness.labels(kind.kind).set_function(partial(store.staleness, kind))

    def serve(self, address: str, port: int) -> None:
        """Serve /metrics in a thread of its own.

        Raises:
            OSError: The port is taken.
        """
        start_http_server(port, addr=address, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"gemmaserve_operator_{name}", text, registry=self.registry)
