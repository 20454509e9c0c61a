"""The main job, step by step: a cluster, the images, the chart, a GemmaServe, the gate, the pods, the Service.

`make demo` walks it with progress on screen; the end-to-end tests walk the same steps.
"""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import yaml

from localcluster.cluster import Cluster
from localcluster.demo.watch import SECONDS_BETWEEN_LOOKS, Look, RoadError, Watch
from localcluster.images.build import REPOSITORY, PushedImage
from localcluster.tools import program

EXAMPLE = REPOSITORY / "examples" / "gemmaserve.yaml"
CHART = REPOSITORY / "charts" / "gemmaserve-operator"
OPERATOR_NAMESPACE = "gemmaserve-system"
HELM_TIMEOUT_SECONDS = 180
READY_TIMEOUT_SECONDS = 900
REACH_TIMEOUT_SECONDS = 60


def install_operator(cluster: Cluster, image: PushedImage, *settings: str) -> None:
    """Install or upgrade the chart and wait for the operator, under enforced restricted pod security.

    Args:
        cluster: Where to.
        image: The operator's.
        settings: More values of the chart, as `helm --set` takes them.

    Raises:
        RoadError: helm failed; with its words.
    """
    for namespace in (OPERATOR_NAMESPACE, "default"):
        enforce_restricted(cluster, namespace)
    command = [
        str(program("helm")),
        *("upgrade", "--install", "gemmaserve", str(CHART)),
        *("--kubeconfig", str(cluster.kubeconfig), "--namespace", OPERATOR_NAMESPACE),
        *("--set", f"image.repository={image.registry}/{image.repository},image.digest={image.digest}"),
        *(word for setting in settings for word in ("--set", setting)),
        *("--wait", "--timeout", f"{HELM_TIMEOUT_SECONDS}s"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HELM_TIMEOUT_SECONDS + 60)
    if done.returncode:
        pods = cluster.kubectl("get", "pods,events", "--namespace", OPERATOR_NAMESPACE)
        raise RoadError(f"helm could not install the operator: {done.stderr.strip()}\n{pods}")


def enforce_restricted(cluster: Cluster, namespace: str) -> None:
    """Make a namespace, if it is missing, in which only pods of the restricted policy are let in."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
    cluster.kubectl("apply", "--server-side", "--filename", "-", stdin=json.dumps(body))


def read_example(image: PushedImage, path: Path = EXAMPLE) -> dict[str, Any]:
    """An example, with the image of the local cluster's registry in place of the one it names."""
    resource: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    resource["spec"]["image"] = {"repository": f"{image.registry}/{image.repository}", "tag": image.tag}
    return resource


def apply(cluster: Cluster, resource: dict[str, Any]) -> None:
    """`kubectl apply` of a resource, as a user does it."""
    cluster.kubectl("apply", "--filename", "-", stdin=json.dumps(resource))


def wait_ready(watch: Watch, timeout: float = READY_TIMEOUT_SECONDS) -> Look:
    """Wait until the GemmaServe is Ready in its present generation.

    Raises:
        RoadError: it is not in time, or a gate failed: no time will mend that.
    """

    def done(look: Look) -> bool:
        for gate in ("Parser", "Live"):
            verified = look.condition(f"{gate}Verified")
            if verified.get("status") == "False":
                raise RoadError(f"the {gate.lower()} gate failed: {verified.get('message')}")
        return look.ready

    return watch.until(done, f"GemmaServe {watch.name} to be Ready", timeout)


def order_of_events(watch: Watch) -> list[tuple[str, float | None]]:
    """When each step was first seen, in seconds of the watch; the order is the promise of the gates."""

    def seen(kind: str) -> float | None:
        return watch.first(lambda look: look.of_kind(kind))

    return [
        ("the gate's Job is made", seen("Job")),
        ("the regressions have passed", watch.first(lambda look: look.gate_passed)),
        ("serving pods are made", seen("Deployment")),
        ("the live gate has passed", watch.first(lambda look: look.live_gate_passed)),
        ("the Service has its first endpoint", watch.first(lambda look: look.endpoints(watch.name))),
        ("the GemmaServe is Ready", watch.first(lambda look: look.ready)),
    ]


def reach(cluster: Cluster, name: str, namespace: str = "default") -> str:
    """The Service's address, as this machine reaches it by its ClusterIP, once it answers there.

    kube-proxy follows the endpoints with a small delay, in which the node still refuses connections.

    Raises:
        RoadError: it did not answer in time.
    """
    service = json.loads(cluster.kubectl("get", "service", name, "--namespace", namespace, "--output", "json"))
    url = f"http://{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}"
    end = time.monotonic() + REACH_TIMEOUT_SECONDS
    while True:
        try:
            httpx.get(f"{url}/health", timeout=REACH_TIMEOUT_SECONDS).raise_for_status()
        except httpx.HTTPError as error:
            if time.monotonic() > end:
                raise RoadError(f"{url} does not answer, though the Service has an endpoint: {error!r}") from error
            time.sleep(SECONDS_BETWEEN_LOOKS)
        else:
            return url
