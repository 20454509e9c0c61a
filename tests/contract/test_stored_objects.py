"""Objects that an older CRD let in, or none: the operator meets them under a CRD that they break."""

import time

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import EVENT, GEMMASERVE, Kind

from .kube import CHILDREN, DIGEST, REPOSITORY, Resource, eventually

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions")
CRD_NAME = f"{names.PLURAL}.{names.GROUP}"
LEAST = {"model": {"uri": "hf://a/b"}, "image": {"repository": REPOSITORY, "digest": DIGEST}}
REST_SECONDS = 8
MOST_TRIES = 6
"""Of a status write that is refused, in that time."""
TOLD = {
    "quantity": ({"resources": {"limits": {"memory": "abc"}}}, "spec.resources.limits.memory: must be a Kubernetes"),
    "no-model": ({"model": None}, "spec.model"),
    "scheme": ({"model": {"uri": "s3://bucket/model"}}, "spec.model.uri must be hf://"),
    "many-replicas": ({"replicas": 10_001}, "spec.replicas"),
}
"""What is wrong, and the words that name it. (What the CRD does not know, the API server drops when it reads.)"""
NEVER_TOLD = {"text": {"resources": "many"}, "map": {"engine": {"env": {"A": "B"}}}, "a" * 63: {}}
"""Of a wrong type, or of a name that is too long: the API server itself refuses every write to them, their status
too, until they are mended or deleted. The operator says so in its log."""


def body(name, spec, namespace):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": LEAST | spec}


@pytest.fixture
def stored(kube, installed, new_namespace):
    """A namespace with all of them, stored while the CRD was lax."""
    whole = kube.get(CRD, None, CRD_NAME)["spec"]["versions"]
    lax = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    namespace = new_namespace("stored")

    def validate(versions, *, how):
        kube.patch(CRD, None, CRD_NAME, {"spec": {"versions": versions}})
        eventually(lambda: validates() == how, "the CRD is in force", 60)

    def validates():
        wrong = body("probe", {"revisionHistoryLimit": -1}, namespace)
        return kube._http.post(GEMMASERVE.path(namespace), params={"dryRun": "All"}, json=wrong).status_code == 422

    try:
        validate([version | {"schema": lax} for version in whole], how=False)
        for name, spec in {**{name: spec for name, (spec, _) in TOLD.items()}, **NEVER_TOLD}.items():
            kube.create(GEMMASERVE, body(name, spec, namespace))
    finally:
        validate(whole, how=True)
    return namespace


def test_stored_objects_that_do_not_validate(kube, stored, start_operator, requests_of):
    with start_operator(f"--namespaces={stored}") as operator:
        eventually(lambda: "working" in operator.log.read_text(), "it works", 300, show=operator.log.read_text)
        for name, (_, words) in TOLD.items():
            resource = Resource(kube, stored, name)
            eventually(
                lambda resource=resource: resource.condition("Degraded").get("reason") == "InvalidSpec",
                f"{name} is told",
                90,
                show=operator.log.read_text,
            )
            assert words in resource.condition("Degraded")["message"]
            assert resource.condition("Ready")["reason"] == "InvalidSpec"
        for name in NEVER_TOLD:
            eventually(lambda name=name: f"{stored}/{name}: tried again later" in operator.log.read_text(), name, 90)
        # Events come behind everything else.
        eventually(
            lambda: TOLD.keys() <= {event["regarding"]["name"] for event in kube.list(EVENT, stored)}, "all events", 90
        )
        before = len(requests_of())
        time.sleep(REST_SECONDS)
        writes = [entry for entry in requests_of()[before:] if entry["verb"] not in ("get", "list", "watch")]
        assert [entry["requestURI"] for entry in writes if entry["responseStatus"]["code"] < 300] == []
        assert len(writes) <= MOST_TRIES * len(NEVER_TOLD)
        assert "Traceback" not in operator.log.read_text()
        for kind in CHILDREN:
            assert kube.list(kind, stored) == []

    # A user can mend what cannot be told, and it serves; or delete it.
    mended = {"metadata": {"labels": {"mended": "yes"}}, "spec": {"resources": None}}
    assert kube.patch(GEMMASERVE, stored, "text", mended)["spec"]["resources"] == {
        "gpu": {"resource": "nvidia.com/gpu"}
    }
    for name in ("map", "a" * 63):
        kube.delete(GEMMASERVE, stored, name)
        assert kube.get(GEMMASERVE, stored, name) is None
