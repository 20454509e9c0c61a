"""Replicas set through the scale subresource, by people and by Kubernetes' own autoscaler, are nobody else's to set."""

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, GEMMASERVE, Kind

from .kube import eventually

_AUTOSCALER = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")


def _scaled(resource, replicas):
    return [d["spec"]["replicas"] for d in resource.of(DEPLOYMENT)] == [replicas] and len(
        resource.endpoints()
    ) == replicas


def test_survive_a_rollout_an_edited_child_and_a_new_operator(start_operator, kubelet, kube, resource):
    with start_operator(f"--namespaces={resource.namespace}"):
        resource.create().until_ready()
        kube.patch(GEMMASERVE, resource.namespace, resource.name, {"spec": {"replicas": 2}}, subresource="scale")
        eventually(lambda: _scaled(resource, 2), "two pods serve")
        first = resource.status["activeRevision"]["name"]
        resource.edit(engine={"maxModelLen": 4096})
        resource.until_ready()
        eventually(lambda: _scaled(resource, 2), "so they do in the next revision")
        assert resource.status["activeRevision"]["name"] != first
        name = resource.of(DEPLOYMENT)[0]["metadata"]["name"]
        kube.patch(DEPLOYMENT, resource.namespace, name, {"spec": {"replicas": 5}})
        eventually(lambda: _scaled(resource, 2), "an edited Deployment is put right")
    with start_operator(f"--namespaces={resource.namespace}") as second:
        eventually(lambda: "working" in second.log.read_text(), "another operator works")
        kube.delete(DEPLOYMENT, resource.namespace, resource.of(DEPLOYMENT)[0]["metadata"]["name"])
        eventually(lambda: _scaled(resource, 2), "two pods serve still")
    assert resource.object["spec"]["replicas"] == 2
    scale = kube.get(GEMMASERVE, resource.namespace, f"{resource.name}/scale")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)
    assert f"{names.LABEL_NAME}={resource.name}" in scale["status"]["selector"]


def test_the_horizontal_pod_autoscaler_scales_it(operator, kube, resource, show_log):
    """To its own least number, for which it needs no metrics; it looks every 15 s."""
    resource.create().until_ready()
    target = {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": resource.name}
    utilization = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    kube.create(
        _AUTOSCALER,
        {
            "apiVersion": _AUTOSCALER.api_version,
            "kind": _AUTOSCALER.kind,
            "metadata": {"name": resource.name, "namespace": resource.namespace},
            "spec": {
                "scaleTargetRef": target,
                "minReplicas": 3,
                "maxReplicas": 4,
                "metrics": [{"type": "Resource", "resource": utilization}],
            },
        },
    )
    eventually(lambda: _scaled(resource, 3), "three pods serve", 60, show=lambda: resource.status)
    resource.until_ready()
    assert resource.object["spec"]["replicas"] == 3
