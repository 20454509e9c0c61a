"""The first rollout's road on a real API server with real controllers; only pods' statuses are a stand-in's."""

import time

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, GEMMASERVE, JOB, SERVICE, Kind

from .kube import CHILDREN, DIGEST, REPOSITORY, eventually

_SECRETS = Kind("v1", "Secret", "secrets")
_WRITES = {"create", "update", "patch", "delete"}


def _writes(requests):
    return [
        f"{entry['verb']} {entry['objectRef']['resource']}/{entry['objectRef'].get('name', '')}"
        for entry in requests
        if entry["verb"] in _WRITES
    ]


def test_gate_first_then_pods_then_traffic(operator, kubelet, kube, resource, show_log):
    kubelet.reports[f"{REPOSITORY}@{DIGEST}"] = None
    resource.create()
    eventually(lambda: resource.of(JOB), "the gate's Job is there")
    eventually(lambda: resource.phase == "Verifying", "the phase says so")
    time.sleep(1)
    assert resource.of(DEPLOYMENT) == []
    assert resource.of(SERVICE) == []
    assert resource.endpoints() == []

    del kubelet.reports[f"{REPOSITORY}@{DIGEST}"]
    resource.until_ready()
    (deployment,) = resource.of(DEPLOYMENT)
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"{REPOSITORY}@{DIGEST}"
    main = kube.get(SERVICE, resource.namespace, "gemma4")
    assert main["spec"]["selector"][names.LABEL_REVISION] == resource.status["activeRevision"]["name"]
    assert len(resource.endpoints()) == 1
    assert resource.status["summary"] == {"replicas": "1/1", "verified": "61/61"}
    assert resource.phase == "Serving"
    assert resource.condition("Available")["status"] == "True"


def test_each_change_is_told_once(operator, resource, show_log):
    resource.create().until_ready()

    def reasons_told():
        return [event["reason"] for event in resource.events()]

    eventually(lambda: "UpToDate" in reasons_told(), "the last change is told")
    reasons = reasons_told()
    assert {"ParserRegressionsRunning", "ParserRegressionsPassed"} <= set(reasons)
    assert len(reasons) == len(set(reasons))


def test_nothing_is_written_at_rest(operator, resource, requests_of, show_log):
    """Over more than one period of lists, and while pods and foreign fields change."""
    resource.create().until_ready()
    before = len(requests_of())
    deployment = resource.of(DEPLOYMENT)[0]["metadata"]["name"]
    note = {"metadata": {"annotations": {"example.com/note": "foreign"}, "labels": {"example.com/team": "a"}}}
    resource.kube.patch(DEPLOYMENT, resource.namespace, deployment, note)
    time.sleep(14)
    requests = requests_of()[before:]
    assert [entry for entry in requests if entry["verb"] == "list"]
    assert _writes(requests) == []
    kept = resource.kube.get(DEPLOYMENT, resource.namespace, deployment)["metadata"]
    assert kept["annotations"]["example.com/note"] == "foreign"
    assert kept["labels"]["example.com/team"] == "a"


def test_edited_children_are_put_right(operator, kube, resource, show_log):
    resource.create().until_ready()
    name = resource.of(DEPLOYMENT)[0]["metadata"]["name"]
    other = {names.LABEL_REVISION: "0000000000"}
    kube.patch(SERVICE, resource.namespace, "gemma4", {"spec": {"selector": other}})
    kube.patch(DEPLOYMENT, resource.namespace, name, {"spec": {"replicas": 3}})
    active = resource.status["activeRevision"]["name"]

    def selected():
        return kube.get(SERVICE, resource.namespace, "gemma4")["spec"]["selector"][names.LABEL_REVISION]

    eventually(lambda: selected() == active, "the selector is back", 2)
    eventually(lambda: kube.get(DEPLOYMENT, resource.namespace, name)["spec"]["replicas"] == 1, "so is replicas", 2)


def test_deleted_children_come_back(operator, kube, resource, show_log):
    resource.create().until_ready()
    for kind in (SERVICE, DEPLOYMENT):
        for child in resource.of(kind):
            name, uid = child["metadata"]["name"], child["metadata"]["uid"]
            kube.delete(kind, resource.namespace, name)

            def is_back(kind=kind, name=name, uid=uid):
                found = kube.get(kind, resource.namespace, name)
                return found is not None and found["metadata"]["uid"] != uid

            eventually(is_back, f"{kind.kind} {name} is back", 2)
    resource.until_ready()


def test_a_child_that_lost_its_labels_is_ours_still(operator, kube, resource, show_log):
    """The watch by label then says that it is gone; its name is taken, though, and by ourselves."""
    resource.create().until_ready()
    kube.patch(SERVICE, resource.namespace, "gemma4", {"metadata": {"labels": {names.LABEL_NAME: None}}})
    eventually(
        lambda: kube.get(SERVICE, resource.namespace, "gemma4")["metadata"]["labels"].get(names.LABEL_NAME) == "gemma4",
        "the label is back",
    )
    resource.until_ready()


def test_a_strangers_object_is_left_alone(operator, kube, resource, show_log):
    """Of the main Service's name, with none of our labels: it is neither adopted nor overwritten."""
    stranger = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "gemma4", "namespace": resource.namespace},
        "spec": {"selector": {"app": "theirs"}, "ports": [{"port": 1234}]},
    }
    kube.create(SERVICE, stranger)
    resource.create()
    eventually(lambda: resource.condition("Degraded").get("reason") == "NameConflict", "the conflict is told")
    assert "Service gemma4" in resource.condition("Degraded")["message"]
    found = kube.get(SERVICE, resource.namespace, "gemma4")
    assert found["spec"]["selector"] == {"app": "theirs"}
    assert not found["metadata"].get("ownerReferences")

    kube.delete(SERVICE, resource.namespace, "gemma4")
    resource.until_ready(90)


def test_a_missing_secret_is_named_and_waited_for(operator, kube, resource, show_log):
    resource.create(model={"uri": "hf://google/gemma-4-31b-it", "tokenSecretRef": {"name": "hf-token", "key": "token"}})
    eventually(lambda: resource.condition("Degraded").get("reason") == "SecretNotFound", "the condition names it")
    assert "hf-token" in resource.condition("Degraded")["message"]
    secret = {"metadata": {"name": "hf-token", "namespace": resource.namespace}, "stringData": {"token": "x"}}
    kube.create(_SECRETS, {"apiVersion": "v1", "kind": "Secret"} | secret)
    resource.until_ready()


def test_children_go_with_the_resource(operator, kube, resource, show_log):
    resource.create().until_ready()
    kube.delete(GEMMASERVE, resource.namespace, resource.name, propagationPolicy="Background")
    eventually(lambda: not any(resource.of(kind) for kind in CHILDREN), "nothing is left", 60)


def test_secrets_are_never_asked_for(operator, resource, requests_of, show_log):
    resource.create().until_ready()
    assert {entry["objectRef"]["resource"] for entry in requests_of() if "objectRef" in entry} >= {"jobs", "services"}
    assert not [entry for entry in requests_of() if entry.get("objectRef", {}).get("resource") == "secrets"]
    assert not [entry for entry in requests_of() if entry["responseStatus"]["code"] in (401, 403)]
