"""The cluster without a node, for real: what other contract tests stand on."""

import json
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localcluster import Cluster, ClusterError
from localcluster.launcher import recorded
from localcluster.paths import clusters_dir

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(900)]  # a first run builds Kubernetes


def eventually(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.2)
    return condition()


def folder_of(cluster: Cluster) -> Path:
    assert cluster.name
    return clusters_dir() / cluster.name


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.start(f"lc-{uuid.uuid4().hex[:8]}", audit=True) as cluster:
        yield cluster


def test_controllers_work(cluster: Cluster) -> None:
    cluster.kubectl("create", "deployment", "web", "--image=registry.invalid/web:1")

    def replicas() -> list[int]:
        listed = json.loads(cluster.kubectl("get", "replicasets", "--selector=app=web", "-o", "json"))
        return [item["status"].get("replicas", 0) for item in listed["items"]]

    assert eventually(lambda: replicas() == [1])


def test_deleted_owners_take_what_they_own_along(cluster: Cluster) -> None:
    cluster.kubectl("create", "job", "brief", "--image=registry.invalid/brief:1")
    assert eventually(lambda: "brief-" in cluster.kubectl("get", "pods", "-o", "name"))
    cluster.kubectl("delete", "job", "brief")
    assert eventually(lambda: "brief-" not in cluster.kubectl("get", "pods", "-o", "name"))


def test_without_a_node_there_is_no_registry(cluster: Cluster) -> None:
    assert cluster.registry is None


def test_the_audit_log_names_user_verb_and_resource(cluster: Cluster) -> None:
    cluster.kubectl("get", "configmaps", "--as=somebody", "--as-group=system:masters")
    assert cluster.audit_log
    events = [json.loads(line) for line in cluster.audit_log.read_text().splitlines()]
    assert any(
        event.get("impersonatedUser", {}).get("username") == "somebody"
        and event["verb"] == "list"
        and event["objectRef"]["resource"] == "configmaps"
        for event in events
    )


def test_a_failing_kubectl_raises_what_it_said(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match=r'configmaps "none" not found'):
        cluster.kubectl("get", "configmap", "none")


def test_what_was_killed_is_started_again_with_its_data(cluster: Cluster) -> None:
    cluster.kubectl("create", "configmap", "kept")
    before = recorded(folder_of(cluster))
    for name in ("kube-apiserver", "etcd"):
        os.kill(before[name].pid, signal.SIGKILL)
    assert eventually(lambda: not before["kube-apiserver"].alive() and not before["etcd"].alive())

    again = Cluster.start(cluster.name or "", audit=True)

    assert again.kubectl("get", "configmap", "kept", "-o", "name").strip() == "configmap/kept"
    after = recorded(folder_of(cluster))
    assert after["etcd"] != before["etcd"]
    assert after["kube-controller-manager"] == before["kube-controller-manager"]


def test_other_options_are_refused_while_it_stands(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match=r"exists with other options.*localcluster down"):
        Cluster.start(cluster.name or "", audit=False)


def test_two_stand_side_by_side_and_stop_leaves_no_trace(cluster: Cluster) -> None:
    with Cluster.start(f"lc-{uuid.uuid4().hex[:8]}", controllers=False) as other:
        folder = folder_of(other)
        processes = recorded(folder)
        assert set(processes) == {"etcd", "kube-apiserver"}
        other.kubectl("create", "configmap", "only-there")
    assert not folder.exists()
    assert not any(process.alive() for process in processes.values())
    assert "only-there" not in cluster.kubectl("get", "configmaps", "-o", "name")
    other.stop()  # once more is no error


def test_the_next_start_removes_a_cluster_whose_owner_died(cluster: Cluster) -> None:
    name = f"lc-{uuid.uuid4().hex[:8]}"
    child = os.fork()
    if child == 0:
        Cluster.start(name, controllers=False)
        os._exit(0)  # without a stop, as if killed
    assert os.waitpid(child, 0)[1] == 0
    left = recorded(clusters_dir() / name)
    assert all(process.alive() for process in left.values())

    Cluster.start(cluster.name or "", audit=True)

    assert not (clusters_dir() / name).exists()
    assert not any(process.alive() for process in left.values())


def test_a_program_that_fails_shows_its_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = tmp_path / "assets"
    programs.mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (programs / name).write_text("#!/bin/sh\necho 'no such luck' >&2\nexit 3\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(programs))
    monkeypatch.setenv("GEMMASERVE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ClusterError, match=r"(?s)(etcd|kube-apiserver) ended.*no such luck"):
        Cluster.start("failing", controllers=False)


def test_a_cluster_named_by_kubeconfig_is_used_and_left(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    existing = Cluster.existing()
    assert existing
    with existing:
        assert existing.kubectl("get", "namespace", "default", "-o", "name").strip() == "namespace/default"
    assert cluster.kubectl("get", "namespace", "default", "-o", "name")
