"""Two clusters with a node each, side by side: what pods get there, and that nothing is left of them."""

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localcluster import Cluster, ClusterError
from localcluster.archive import write_archive
from localcluster.launcher import recorded
from localcluster.paths import clusters_dir

pytestmark = [pytest.mark.node, pytest.mark.timeout(1800)]  # a first run builds Kubernetes

LOADED = "test.invalid/busybox:1"
SYSCTLS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
SERVE = "echo serving; echo {text} > /tmp/index.html; exec busybox httpd -f -p 8000 -h /tmp"


def eventually(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.2)
    return condition()


def answers(address: str, text: str) -> bool:
    with contextlib.suppress(OSError):
        return get(f"http://{address}/") == text
    return False


def client_reads(cluster: Cluster) -> str:
    """What the client's pod gets by the Service's name; nothing while a new kubelet has not found its pods yet."""
    with contextlib.suppress(ClusterError):
        return cluster.kubectl("exec", "client", "--", "wget", "-qO-", "http://web/").strip()
    return ""


def folder_of(cluster: Cluster) -> Path:
    assert cluster.name
    return clusters_dir() / cluster.name


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode().strip()


def pod(name: str, command: list[str], *, image: str = LOADED, gpus: int = 0) -> dict[str, Any]:
    """A pod as the restricted pod security standard wants it, as GemmaServe's own are."""
    container = {
        "name": "main",
        "image": image,
        "command": command,
        "resources": {"limits": {"nvidia.com/gpu": gpus}} if gpus else {},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 2000,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}],
        "terminationGracePeriodSeconds": 0,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def start_web(cluster: Cluster, text: str) -> str:
    """A pod `web` that serves `text` behind a Service, and a pod `client`; the Service's ClusterIP."""
    web = pod("web", ["sh", "-c", SERVE.format(text=text)], gpus=1)
    web["spec"]["containers"][0]["readinessProbe"] = {"httpGet": {"path": "/", "port": 8000}, "periodSeconds": 1}
    ports = [{"port": 80, "targetPort": 8000}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    service |= {"spec": {"selector": {"app": "web"}, "ports": ports}}
    items = [web, service, pod("client", ["sleep", "3600"])]
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    cluster.kubectl("wait", "--for=condition=Ready", "pod/web", "pod/client", "--timeout=60s")
    return cluster.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    packages = {"busybox": "busybox-static", "buildah": "buildah"}
    missing = [package for name, package in packages.items() if not shutil.which(name)]
    if missing:
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", *missing], check=True)
    busybox = Path(shutil.which("busybox") or "")
    archive = tmp_path_factory.mktemp("image") / "busybox.tar"
    files = {f"/bin/{name}": busybox for name in ("busybox", "sh", "sleep", "wget", "cat")}
    write_archive(archive, LOADED, files, ["/bin/busybox"], platform.machine())
    return archive


@pytest.fixture(scope="module")
def sysctls() -> dict[str, str]:
    return {name: Path("/proc/sys", name).read_text() for name in SYSCTLS}


@pytest.fixture(scope="module")
def first(image: Path, sysctls: dict[str, str]) -> Iterator[Cluster]:
    with Cluster.start(f"node-{uuid.uuid4().hex[:8]}", node=True, gpus=2) as cluster:
        cluster.load(image)
        yield cluster


@pytest.fixture(scope="module")
def second(image: Path, first: Cluster) -> Iterator[Cluster]:
    with Cluster.start(f"node-{uuid.uuid4().hex[:8]}", node=True, gpus=1) as cluster:
        cluster.load(image)
        yield cluster


@pytest.fixture(scope="module")
def first_ip(first: Cluster) -> str:
    return start_web(first, "first")


@pytest.fixture(scope="module")
def second_ip(second: Cluster) -> str:
    return start_web(second, "second")


def test_the_host_reaches_each_clusters_service(first_ip: str, second_ip: str) -> None:
    assert first_ip != second_ip
    assert eventually(lambda: answers(first_ip, "first"))  # kube-proxy hears of a Ready pod a moment later
    assert eventually(lambda: answers(second_ip, "second"))


def test_pods_reach_services_by_name(first: Cluster, first_ip: str, second: Cluster, second_ip: str) -> None:
    for cluster, text in ((first, "first"), (second, "second")):
        for name in ("web", "web.default.svc.cluster.local"):
            assert cluster.kubectl("exec", "client", "--", "wget", "-qO-", f"http://{name}/").strip() == text


def test_a_pod_reaches_itself_through_its_service(first: Cluster, first_ip: str) -> None:
    assert first.kubectl("exec", "web", "--", "wget", "-qO-", "http://web.default/").strip() == "first"


def test_pods_talk_to_the_api_server(first: Cluster, first_ip: str) -> None:
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    assert first.kubectl("exec", "client", "--", "cat", token).count(".") == 2  # a JSON web token
    with pytest.raises(ClusterError, match="400 Bad Request"):  # that of plain HTTP: an answer, through the Service
        first.kubectl("exec", "client", "--", "wget", "-qO-", "http://kubernetes:443/")


def test_logs(first: Cluster, first_ip: str) -> None:
    assert "serving" in first.kubectl("logs", "web").splitlines()


def test_port_forward(first: Cluster, first_ip: str) -> None:
    command = [first._kubectl, "--kubeconfig", first.kubeconfig, "port-forward", "service/web", ":80"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        try:
            assert forward.stdout
            line = forward.stdout.readline()  # Forwarding from 127.0.0.1:40123 -> 8000
            port = line.split(" -> ")[0].rpartition(":")[2]
            assert get(f"http://127.0.0.1:{port}/") == "first"
        finally:
            forward.terminate()


def test_pods_run_images_pushed_to_the_registry(first: Cluster, image: Path, tmp_path: Path) -> None:
    digest = tmp_path / "digest"
    name = f"localhost/localcluster-test:{uuid.uuid4().hex[:8]}"
    pulled = subprocess.run(
        ["buildah", "pull", "--quiet", f"oci-archive:{image}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        subprocess.run(["buildah", "tag", pulled, name], check=True)
        push = ["buildah", "push", "--tls-verify=false", "--digestfile", str(digest), name]
        subprocess.run([*push, f"docker://{first.registry}/busybox:1"], check=True, capture_output=True)
    finally:
        subprocess.run(["buildah", "rmi", "--force", pulled], check=False, capture_output=True)
    reference = f"{first.registry}/busybox@{digest.read_text().strip()}"

    first.kubectl("apply", "-f", "-", stdin=json.dumps(pod("pulled", ["sleep", "3600"], image=reference)))

    first.kubectl("wait", "--for=condition=Ready", "pod/pulled", "--timeout=60s")
    first.kubectl("delete", "pod", "pulled")


def test_gpus_are_counted(first: Cluster, first_ip: str) -> None:
    """Two GPUs, one taken by `web`: a pod that wants two waits until they are free."""
    first.kubectl("apply", "-f", "-", stdin=json.dumps(pod("greedy", ["sleep", "3600"], gpus=2)))
    condition = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"
    assert eventually(lambda: "Insufficient nvidia.com/gpu" in first.kubectl("get", "pod", "greedy", "-o", condition))
    first.kubectl("delete", "pod", "greedy")
    first.kubectl("apply", "-f", "-", stdin=json.dumps(pod("modest", ["sleep", "3600"], gpus=1)))
    first.kubectl("wait", "--for=condition=Ready", "pod/modest", "--timeout=60s")


def test_killed_programs_come_back_and_pods_go_on(second: Cluster, second_ip: str) -> None:
    before = recorded(folder_of(second))
    for name in ("kubelet", "containerd", "kube-proxy", "fakegpu", "coredns"):
        os.kill(before[name].pid, signal.SIGKILL)

    Cluster.start(second.name or "", node=True, gpus=1)

    path = "jsonpath={.status.allocatable.nvidia\\.com/gpu}"
    assert second.kubectl("get", "node", f"{second.name}-node", "-o", path) == "1"
    assert get(f"http://{second_ip}/") == "second"
    restarts = "jsonpath={.status.containerStatuses[0].restartCount}"
    assert second.kubectl("get", "pod", "web", "-o", restarts) == "0"
    assert eventually(lambda: client_reads(second) == "second")


def test_a_node_that_died_as_a_whole_comes_back(second: Cluster, second_ip: str) -> None:
    os.kill(recorded(folder_of(second))["sandbox"].pid, signal.SIGKILL)

    Cluster.start(second.name or "", node=True, gpus=1)

    assert eventually(lambda: answers(second_ip, "second"))


def test_down_after_kills_leaves_nothing(
    first: Cluster, second: Cluster, first_ip: str, second_ip: str, sysctls: dict[str, str]
) -> None:
    folder, processes = folder_of(second), recorded(folder_of(second))
    namespace = Path(f"/proc/{processes['sandbox'].pid}/ns/pid").readlink()
    assert len(pids_in(namespace)) > len(processes)  # containers and their shims
    network = second_ip.rsplit(".", 2)[0]  # 10.N
    assert f"{network}.0.0/16" in host_routes()
    for name in ("kubelet", "containerd"):
        os.kill(processes[name].pid, signal.SIGKILL)

    second.stop()

    assert not folder.exists()
    assert not any(process.alive() for process in processes.values())
    assert pids_in(namespace) == []
    assert second.name not in Path("/proc/self/mounts").read_text()
    assert network + "." not in host_routes()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/localcluster/{second.name}"))
    assert {name: Path("/proc/sys", name).read_text() for name in SYSCTLS} == sysctls
    assert get(f"http://{first_ip}/") == "first"  # its neighbour does not notice


def pids_in(namespace: Path) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (path / "ns" / "pid").readlink() == namespace:
                found.append(int(path.name))
    return found


def host_routes() -> str:
    return subprocess.run(["ip", "-4", "route"], check=True, capture_output=True, text=True).stdout
