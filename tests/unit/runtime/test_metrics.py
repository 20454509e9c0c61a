import re
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gemmaserve_operator.cluster.kinds import GEMMASERVE, POD
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.runtime.metrics import DEFINITIONS, PREFIX, Metrics
from gemmaserve_operator.runtime.metrics_reference import render_reference
from gemmaserve_operator.runtime.workqueue import WorkQueue

from ..cluster.fake_client import gemmaserve  # noqa: TID252

KEY = ("team", "gemma4")


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def metrics(now):
    return Metrics(clock=lambda: now[0])


@pytest.fixture
def value(metrics):
    def read(name, **labels):
        return metrics.registry.get_sample_value(PREFIX + name, labels)

    return read


def status(phase, **conditions):
    return {"phase": phase, "conditions": [{"type": kind, "status": value} for kind, value in conditions.items()]}


async def test_queue_and_store_are_read_when_asked(metrics, value):
    queue, store = WorkQueue(), Store()
    metrics.watch(queue, store)
    assert value("queue_depth") == 0
    assert value("watch_staleness_seconds", kind="Pod") == float("inf")
    queue.add(("team", "a"))
    store.heard(POD)
    assert value("queue_depth") == 1
    assert value("queue_age_seconds") >= 0
    assert value("watch_staleness_seconds", kind="Pod") < 5
    assert value("running_gates") == 0
    made = gemmaserve() | {"status": status("Serving")}
    store.put(GEMMASERVE, made | {"metadata": made["metadata"] | {"resourceVersion": "2", "uid": "u"}})
    assert value("gemmaserves", phase="Serving") == 1
    assert value("gemmaserves", phase="Failed") == 0


def test_requests_and_reconciles_are_counted(metrics, value):
    metrics.observe_request("apply", 200, 0.01)
    metrics.observe_request("apply", 409, 0.01)
    metrics.observe_request("apply", 409, 0.01)
    metrics.observe_reconcile("written", 0.02)
    assert value("api_requests_total", verb="apply", code="409") == 2
    assert value("api_request_duration_seconds_count", verb="apply") == 3
    assert value("reconcile_duration_seconds_sum", outcome="written") == 0.02


def test_a_verdict_is_counted_when_it_comes_and_not_while_it_stands(metrics, value):
    running, failed = status("Verifying", ParserVerified="Unknown"), status("Failed", ParserVerified="False")
    assert value("gate_results_total", gate="parser", result="failed") == 0
    metrics.observe_status(KEY, {}, running)
    metrics.observe_status(KEY, running, failed)
    metrics.observe_status(KEY, failed, failed | {"replicas": 1})
    assert value("gate_results_total", gate="parser", result="failed") == 1
    metrics.observe_status(KEY, failed, running)
    metrics.observe_status(KEY, running, status("Starting", ParserVerified="True", LiveVerified="Unknown"))
    assert value("gate_results_total", gate="parser", result="passed") == 1
    assert value("gate_results_total", gate="live", result="passed") == 0


def test_phases_of_a_rollout_are_timed(metrics, value, now):
    for before, after, moment in (({}, "Verifying", 0), ("Verifying", "Starting", 9), ("Starting", "Serving", 69)):
        now[0] = moment
        metrics.observe_status(KEY, status(before) if before else {}, status(after))
    now[0] = 1000
    metrics.observe_status(KEY, status("Serving"), status("RollingOut"))
    assert value("phase_duration_seconds_sum", phase="Verifying") == 9
    assert value("phase_duration_seconds_sum", phase="Starting") == 60
    assert value("phase_duration_seconds_count", phase="Serving") is None


def test_a_phase_that_was_not_seen_to_begin_is_not_timed(metrics, value):
    metrics.observe_status(KEY, status("Verifying"), status("Starting"))
    metrics.forget(KEY)
    metrics.observe_status(KEY, status("Starting"), status("Serving"))
    assert value("phase_duration_seconds_count", phase="Verifying") is None
    assert value("phase_duration_seconds_count", phase="Starting") is None


def test_who_leads_is_told(metrics, value):
    assert value("leader") == 0
    metrics.lead()
    assert value("leader") == 1


async def test_served_as_prometheus_text(metrics, unused_tcp_port):
    queue = WorkQueue()
    metrics.watch(queue, Store())
    queue.add(KEY)
    metrics.observe_request("get", 200, 0.01)
    async with metrics.serve("127.0.0.1", unused_tcp_port), httpx.AsyncClient() as http:
        answer = await http.get(f"http://127.0.0.1:{unused_tcp_port}/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain")
        samples = {
            sample.name: sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }
        assert samples[f"{PREFIX}api_requests_total"] == 1
        assert samples[f"{PREFIX}queue_age_seconds"] >= 0, "with something in the queue"
        with pytest.raises(OSError, match="in use"):
            async with metrics.serve("127.0.0.1", unused_tcp_port):
                pass


def test_names_follow_prometheus_conventions():
    """https://prometheus.io/docs/practices/naming: base units, no type in the name, lower case."""
    for metric in DEFINITIONS:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", metric.exported)
        assert not re.search(r"_(gauge|histogram|counter|milliseconds|minutes)\b", metric.exported)
        assert metric.exported.endswith("_total") == (metric.kind == "counter")
        assert metric.name.endswith("_seconds") or metric.kind != "histogram"
        assert not {"namespace", "name", "revision", "pod"} & set(metric.labels), "labels are bounded"


async def test_what_is_defined_is_exported(metrics):
    metrics.watch(WorkQueue(), Store())
    exported = {family.name: family.type for family in metrics.registry.collect()}
    assert exported == {PREFIX + metric.name: metric.kind for metric in DEFINITIONS}


def test_the_committed_page_is_what_the_definitions_say():
    page = Path(__file__).parents[3] / "docs/metrics.md"
    assert page.read_text() == render_reference(), "run `make generate` and commit what changed"


def test_each_metric_of_an_alert_exists():
    named = set(re.findall(rf"{PREFIX}\w+", render_reference()))
    assert named <= {metric.exported for metric in DEFINITIONS} | {f"{metric.exported}_count" for metric in DEFINITIONS}
