"""What Prometheus scrapes from an operator at work."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gemmaserve_operator.runtime.metrics import DEFINITIONS, PREFIX

from .kube import eventually


@pytest.fixture
def scrape(start_operator, kubelet, resource, unused_tcp_port):
    """An operator of one namespace; reads a sample of its metrics."""
    flags = (f"--namespaces={resource.namespace}", "--bind-address=127.0.0.1", f"--metrics-port={unused_tcp_port}")
    with start_operator(*flags) as operator:
        eventually(
            lambda: "working" in operator.log.read_text(), "the operator works", 120, show=operator.log.read_text
        )

        def read():
            answer = httpx.get(f"http://127.0.0.1:{unused_tcp_port}/metrics", timeout=20).raise_for_status()
            return list(text_string_to_metric_families(answer.text))

        yield read


def test_a_rollout_in_numbers(scrape, resource):
    resource.create().until_ready()
    families = scrape()
    samples = {
        (each.name.removeprefix(PREFIX), *each.labels.values()): each.value for f in families for each in f.samples
    }
    assert samples["leader",] == 1
    assert samples["gemmaserves", "Serving"] == 1
    assert samples["gate_results_total", "parser", "passed"] == 1
    assert samples["gate_results_total", "live", "passed"] == 1
    assert samples["gate_results_total", "parser", "failed"] == 0
    assert samples["phase_duration_seconds_count", "Verifying"] == 1
    assert samples["queue_age_seconds",] < 60
    assert samples["watch_staleness_seconds", "Pod"] < 60
    requests = {key[1:]: value for key, value in samples.items() if key[0] == "api_requests_total"}
    assert any("list" in key for key in requests)
    assert any("apply" in key for key in requests)
    exported = {family.name.removeprefix(PREFIX) for family in families if not family.name.endswith("_created")}
    assert exported == {metric.name for metric in DEFINITIONS}
    assert sum(len(family.samples) for family in families) < 500, "labels are bounded"
