import copy

import pytest

from gemmaserve_operator.planning.drift import needs_apply


def base():
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x", "labels": {"gemmaserve.dev/name": "x"}, "ownerReferences": [{"uid": "1"}]},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "spec": {
                    "nodeSelector": {"gpu": "h100"},
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                    "containers": [
                        {
                            "name": "server",
                            "args": ["a", "b"],
                            "env": [{"name": "E", "value": ""}, {"name": "F", "value": "1"}],
                            "ports": [{"containerPort": 8000, "protocol": "TCP", "name": "http"}],
                            "resources": {"limits": {"nvidia.com/gpu": "1", "memory": "1024Mi", "cpu": "1000m"}},
                            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                        }
                    ],
                    "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "s", "emptyDir": {"sizeLimit": "1Gi"}}],
                }
            },
        },
    }


def pod(obj):
    return obj["spec"]["template"]["spec"]


def container(obj):
    return pod(obj)["containers"][0]


def edited(edit):
    observed = copy.deepcopy(base())
    edit(observed)
    return needs_apply(base(), observed)


@pytest.mark.parametrize(
    "edit",
    [
        lambda o: None,
        lambda o: (o.pop("apiVersion"), o.pop("kind")),
        lambda o: o["metadata"].update(uid="u", resourceVersion="5", managedFields=[{}]),
        lambda o: o["metadata"]["labels"].update(theirs="x"),
        lambda o: o["metadata"]["ownerReferences"].insert(0, {"uid": "2"}),
        lambda o: o["spec"].update(progressDeadlineSeconds=600),
        lambda o: pod(o)["containers"].insert(0, {"name": "sidecar"}),
        lambda o: container(o)["env"].insert(0, {"name": "THEIRS", "value": "x"}),
        lambda o: container(o)["env"][0].pop("value"),
        lambda o: container(o)["env"].reverse(),
        lambda o: container(o)["ports"].append({"containerPort": 9000, "protocol": "TCP"}),
        lambda o: container(o)["volumeMounts"].append({"name": "theirs", "mountPath": "/x"}),
        lambda o: container(o)["resources"]["limits"].update(memory="1Gi", cpu="1"),
        lambda o: container(o)["resources"]["limits"].update({"nvidia.com/gpu": 1}),
        lambda o: container(o)["resources"].update(requests={"cpu": "1"}),
        lambda o: pod(o)["volumes"][0].pop("emptyDir"),
        lambda o: pod(o)["volumes"][1]["emptyDir"].update(sizeLimit="1024Mi"),
        lambda o: o.update(status={"replicas": 1}),
    ],
)
def test_no_difference(edit):
    assert edited(edit) is None


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (lambda o: o["spec"].update(replicas=2), "spec.replicas"),
        (lambda o: o["spec"].pop("replicas"), "spec.replicas"),
        (lambda o: o["metadata"]["labels"].pop("gemmaserve.dev/name"), "metadata.labels.gemmaserve.dev/name"),
        (lambda o: o["metadata"]["labels"].update({"gemmaserve.dev/x": "y"}), "metadata.labels.gemmaserve.dev/x"),
        (lambda o: o["metadata"].update(annotations={"gemmaserve.dev/x": "y"}), "metadata.annotations."),
        (lambda o: o["metadata"].pop("ownerReferences"), "metadata.ownerReferences.0"),
        (lambda o: container(o).update(args=["b", "a"]), "args.0"),
        (lambda o: container(o)["args"].append("c"), "args"),
        (lambda o: container(o)["args"].pop(), "args"),
        (lambda o: container(o)["env"].pop(), "env.1"),
        (lambda o: container(o)["env"][1].update(value="2"), "env.1.value"),
        (lambda o: container(o)["ports"][0].update(protocol="UDP"), "ports.0"),
        (lambda o: container(o)["resources"]["limits"].update({"nvidia.com/gpu": "2"}), "limits.nvidia.com/gpu"),
        (lambda o: container(o)["resources"]["limits"].update(memory="1025Mi"), "limits.memory"),
        (lambda o: container(o)["resources"].pop("limits"), "limits.nvidia.com/gpu"),
        (lambda o: pod(o)["nodeSelector"].update(zone="a"), "nodeSelector"),
        (lambda o: pod(o).pop("nodeSelector"), "nodeSelector"),
        (lambda o: pod(o)["tolerations"].append({"operator": "Exists"}), "tolerations"),
        (lambda o: o["spec"]["selector"]["matchLabels"].update(c="d"), "selector.matchLabels"),
        (lambda o: pod(o)["volumes"][1].update(emptyDir={}), "emptyDir.sizeLimit"),
        (lambda o: pod(o)["containers"].clear(), "containers.0"),
        (lambda o: pod(o).update(containers="nonsense"), "containers.0"),
        (lambda o: o.update(spec="nonsense"), "spec.replicas"),
    ],
)
def test_differences(edit, path):
    assert path in edited(edit)


def test_a_services_selector_is_compared_as_a_whole():
    desired = {"metadata": {}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "protocol": "TCP"}]}}
    observed = copy.deepcopy(desired)
    observed["spec"]["ports"].append({"port": 81, "protocol": "TCP"})
    assert needs_apply(desired, observed) is None
    observed["spec"]["selector"]["c"] = "d"
    assert needs_apply(desired, observed) == "spec.selector"
