"""What the chart makes of its values."""

from __future__ import annotations

import argparse

import pytest
import yaml

from gemmaserve_operator.runtime.app import PROBE_PATHS
from gemmaserve_operator.runtime.settings import add_settings, read_settings

NEEDED = {"image": {"repository": "registry.example/gemmaserve-operator"}}
EVERYTHING = {
    "watchNamespaces": ["team-a", "team-b"],
    "replicas": 2,
    "imagePullSecrets": [{"name": "regcred"}],
    "tolerations": [{"key": "infra", "operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    "podLabels": {"team": "ml"},
    "podAnnotations": {"note": "x"},
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}],
    "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prom"}}, "podMonitor": {"enabled": True}},
    "networkPolicy": {"enabled": True, "metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "obs"}}}]},
}


def operator_pod(rendered):
    return rendered.one("Deployment")["spec"]["template"]["spec"]


def operator_container(rendered):
    (container,) = operator_pod(rendered)["containers"]
    return container


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_lint_finds_nothing(helm, values):
    done = helm("lint", "--strict", values=NEEDED | values)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_object_is_labelled_as_helms_and_as_this_chart(render):
    for item in render(**EVERYTHING).objects:
        labels = item["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "gemmaserve-operator", item["kind"]
        assert labels["app.kubernetes.io/instance"] == "gemmaserve"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"


def test_the_operators_own_labels_never_look_like_a_models(default):
    """A Service of a GemmaServe selects pods by gemmaserve.dev/name: the operator's pods must not have it."""
    labels = default.one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert not [label for label in labels if label.startswith("gemmaserve.dev/")]


def test_the_image_is_named_by_tag_or_by_digest(render, default):
    assert operator_container(default)["image"] == "registry.example/gemmaserve-operator:0.1.0"
    assert operator_container(render(image={"tag": "1.2"}))["image"] == "registry.example/gemmaserve-operator:1.2"
    digest = "sha256:" + "0" * 64
    by_digest = operator_container(render(image={"tag": "1.2", "digest": digest}))["image"]
    assert by_digest == f"registry.example/gemmaserve-operator@{digest}"


def test_the_operator_is_told_what_to_do(render, default):
    command, *flags = operator_container(default)["args"]
    assert command == "run"
    lease = "--lease-name=gemmaserve-operator"
    always = {"--metrics-port=8080", "--probe-port=8081", "--leader-elect", lease}
    assert set(flags) == always | {"--max-concurrent-gates=10"}
    _, *flags = operator_container(render(maxConcurrentGates=3, watchNamespaces=["a", "b"]))["args"]
    assert set(flags) == always | {"--max-concurrent-gates=3", "--namespaces=a,b"}


def test_the_operator_understands_what_it_is_told(render):
    """The real command line reads the chart's arguments."""
    _, *flags = operator_container(render(watchNamespaces=["a", "b"]))["args"]
    parser = argparse.ArgumentParser()
    add_settings(parser, {})
    settings = read_settings(parser.parse_args(flags))
    assert settings.namespaces == ("a", "b")
    assert settings.leader_elect
    assert settings.lease_name == "gemmaserve-operator"
    assert (settings.metrics_port, settings.probe_port, settings.max_concurrent_gates) == (8080, 8081, 10)


def test_probes_and_ports_are_those_of_the_arguments(default):
    container = operator_container(default)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"metrics": 8080, "probes": 8081}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "probes", probe
        assert container[probe]["httpGet"]["path"] in PROBE_PATHS


def test_the_crd_is_the_generated_one_and_stays_on_uninstall(render, default, chart_folder):
    crd = default.one("CustomResourceDefinition")
    generated = yaml.safe_load((chart_folder / "files" / "gemmaserves.yaml").read_text())
    assert crd["spec"] == generated["spec"]
    assert crd["metadata"]["name"] == "gemmaserves.gemmaserve.dev"
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    not_kept = render(crds={"keep": False}).one("CustomResourceDefinition")
    assert "helm.sh/resource-policy" not in not_kept["metadata"]["annotations"]
    assert not render(crds={"enabled": False}).of_kind("CustomResourceDefinition")


def test_what_is_asked_for_is_there_and_nothing_else(render, default):
    optional = ("ServiceMonitor", "PodMonitor", "NetworkPolicy")
    assert not [kind for kind in optional if default.of_kind(kind)]
    everything = render(**EVERYTHING)
    assert all(everything.of_kind(kind) for kind in optional)
    assert everything.one("ServiceMonitor")["metadata"]["labels"]["release"] == "prom"
    pod = operator_pod(everything)
    assert pod["imagePullSecrets"] == [{"name": "regcred"}]
    assert pod["tolerations"] == EVERYTHING["tolerations"]
    assert EVERYTHING["env"][0] in operator_container(everything)["env"]
    assert everything.one("Deployment")["spec"]["template"]["metadata"]["labels"]["team"] == "ml"
    assert not render(metrics={"service": {"enabled": False}}).of_kind("Service")


@pytest.mark.parametrize("kind", ["Service", "ServiceMonitor", "PodMonitor", "NetworkPolicy"])
def test_selectors_find_the_operators_pods(render, kind):
    everything = render(**EVERYTHING)
    spec = everything.one(kind)["spec"]
    selector = spec.get("podSelector") or spec["selector"]
    wanted = selector.get("matchLabels", selector)
    labels = everything.one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert wanted.items() <= labels.items()


def test_the_network_policy_lets_the_probes_in_from_the_node_and_scrapes_from_who_may(render):
    policy = render(**EVERYTHING).one("NetworkPolicy")["spec"]
    metrics, probes = policy["ingress"]
    assert metrics["ports"] == [{"port": "metrics"}]
    assert metrics["from"] == EVERYTHING["networkPolicy"]["metricsFrom"]
    assert probes == {"ports": [{"port": "probes"}]}
    assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {53, 443, 6443}
