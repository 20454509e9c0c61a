"""What a real kubelet, scheduler and registry say of pods that do not come up, as conditions with the next step."""

from collections.abc import Callable
from typing import Any

import pytest

from gemmaserve_operator.api import names
from localcluster import Cluster
from localcluster.demo import road
from localcluster.demo.watch import Watch
from localcluster.images.build import PushedImage

from .conftest import GPUS

TIMEOUT = 300
GONE_SECONDS = 60
"""Pods that never served have nothing to drain; the drain of the demo's spec is given five minutes."""
Json = dict[str, Any]
FAULTS: dict[str, tuple[Json, tuple[str, ...]]] = {
    "ImagePullError": ({"image": {"tag": "no-such-tag"}}, ("no-such-tag",)),
    "InsufficientGPU": ({"parallelism": {"tensor": GPUS + 1}}, ("nvidia.com/gpu",)),
    "Unschedulable": ({"scheduling": {"nodeSelector": {"no": "such-node"}}}, ("node(s) didn't match",)),
    "CrashLoop": ({"engine": {"args": ["--no-such-option"]}}, ("--no-such-option",)),
    "ContainerOOMKilled": ({"resources": {"requests": {"memory": "64Mi"}, "limits": {"memory": "128Mi"}}}, ("memory",)),
    "StartupTimeout": ({"startupTimeoutSeconds": 10}, ("spec.startupTimeoutSeconds",)),
}
"""What of the demo's spec is changed, and words of the message, by the reason that it leads to."""


@pytest.mark.parametrize("reason", FAULTS)
def test_what_keeps_pods_from_serving_is_named(
    cluster: Cluster,
    watch: Watch,
    watch_of: Callable[[str], Watch],
    serving_image: PushedImage,
    reason: str,
) -> None:
    changes, words = FAULTS[reason]
    resource = road.read_example(serving_image)
    resource["metadata"]["name"] = name = reason.lower()
    for field, value in changes.items():
        held = resource["spec"].get(field)
        resource["spec"][field] = {**held, **value} if isinstance(held, dict) else value
    road.apply(cluster, resource)
    try:
        failing = watch_of(name)
        look = failing.until(lambda look: look.condition("Ready").get("reason") == reason, reason, TIMEOUT)
        for word in words:
            assert word in look.condition("Ready")["message"]
        assert not any(look.endpoints(name) for look in failing.looks)
        assert watch.look().ready, "what serves beside it goes on"
    finally:
        cluster.kubectl("delete", "gemmaserve", name, "--wait=true")
    pods = f"{names.LABEL_NAME}={name}"
    cluster.kubectl("wait", "pods", "--for=delete", f"--selector={pods}", f"--timeout={GONE_SECONDS}s")
