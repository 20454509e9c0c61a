"""The chart's roles are enough, and a token of the operator opens no more than it needs."""

import json
import subprocess

import pytest
import yaml

from localcluster import ClusterError

from .conftest import SYSTEM
from .operator_process import OperatorProcess


@pytest.fixture
def as_operator(cluster, installed):
    def can(verb, what, namespace="default"):
        user = f"--as=system:serviceaccount:{SYSTEM}:{installed}"
        try:
            return cluster.kubectl("auth", "can-i", verb, what, "-n", namespace, user).strip() == "yes"
        except ClusterError:
            return False

    return can


@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "patch", "delete"])
def test_secrets_are_out_of_reach(as_operator, verb):
    assert as_operator("list", "jobs")
    assert not as_operator(verb, "secrets", "default")
    assert not as_operator(verb, "secrets", SYSTEM)


def test_nothing_that_the_operator_asks_for_is_forbidden(operator, resource, requests_of, show_log):
    resource.create().until_ready()
    resource.edit(model={"uri": "hf://google/gemma-4-e4b-it"})
    resource.until_ready(90)
    refused = [entry["requestURI"] for entry in requests_of() if entry["responseStatus"]["code"] in (401, 403)]
    assert refused == []


def test_without_its_roles_it_says_what_is_missing(cluster, installed, kubelet, tmp_path):
    cluster.kubectl("create", "serviceaccount", "bare", "-n", SYSTEM)
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    token = cluster.kubectl("create", "token", "bare", "-n", SYSTEM).strip()
    config["users"][0]["user"] = {"token": token}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    with OperatorProcess(kubeconfig, tmp_path / "log") as bare:
        try:
            code = bare.wait(60)
        except subprocess.TimeoutExpired:
            pytest.fail(bare.log.read_text())
    assert code == 1
    last = bare.log.read_text().strip().splitlines()[-1]
    assert "cannot list resource" in last
    assert "install the chart with rbac.create" in last
