import urllib.request

import pytest

from gemmaserve_operator.cluster.kinds import POD
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.runtime.metrics import Metrics
from gemmaserve_operator.runtime.workqueue import WorkQueue

PREFIX = "gemmaserve_operator_"


@pytest.fixture
def metrics():
    return Metrics()


async def test_queue_and_store_are_read_when_asked(metrics):
    queue, store = WorkQueue(), Store()
    metrics.watch(queue, store)

    def value(name, **labels):
        return metrics.registry.get_sample_value(PREFIX + name, labels)

    assert value("queue_depth") == 0
    assert value("watch_staleness_seconds", kind="Pod") == float("inf")
    queue.add(("team", "a"))
    store.heard(POD)
    assert value("queue_depth") == 1
    assert value("queue_age_seconds") >= 0
    assert value("watch_staleness_seconds", kind="Pod") < 5
    assert value("running_gates") == 0


def test_requests_and_reconciles_are_counted(metrics):
    metrics.observe_request("apply", 200, 0.01)
    metrics.observe_request("apply", 409, 0.01)
    metrics.observe_request("apply", 409, 0.01)
    metrics.observe_reconcile("written", 0.02)
    read = metrics.registry.get_sample_value
    assert read(f"{PREFIX}api_requests_total", {"verb": "apply", "code": "409"}) == 2
    assert read(f"{PREFIX}api_request_duration_seconds_count", {"verb": "apply"}) == 3
    assert read(f"{PREFIX}reconcile_duration_seconds_sum", {"outcome": "written"}) == 0.02


def test_served_as_prometheus_text(metrics, unused_tcp_port):
    metrics.observe_request("get", 200, 0.01)
    metrics.serve("127.0.0.1", unused_tcp_port)
    with urllib.request.urlopen(f"http://127.0.0.1:{unused_tcp_port}/metrics", timeout=5) as answer:
        assert f'{PREFIX}api_requests_total{{code="200",verb="get"}} 1.0' in answer.read().decode()
    with pytest.raises(OSError, match="in use"):
        metrics.serve("127.0.0.1", unused_tcp_port)
