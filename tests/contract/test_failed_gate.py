"""A gate that fails keeps a revision away from traffic, and what serves serves on."""

import time

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, GEMMASERVE, JOB, SERVICE

from .fake_kubelet import failed_live_report, failed_report
from .kube import REPOSITORY, eventually

GOOD, BAD = "sha256:" + "a" * 64, "sha256:" + "b" * 64
FAILING = ("mega_delta_with_all_tools_in_one_chunk", "id_resets_between_requests")


def _image(digest):
    return {"repository": REPOSITORY, "digest": digest}


def _fail(kubelet):
    kubelet.reports[f"{REPOSITORY}@{BAD}"] = failed_report(*FAILING)


def _has_failed(resource):
    return resource.condition("ParserVerified").get("reason") == "ParserRegressionsFailed"


def test_first_revision_never_gets_an_endpoint(operator, kubelet, resource, show_log):
    _fail(kubelet)
    resource.create(image=_image(BAD))
    eventually(lambda: _has_failed(resource), "the gate has failed")
    message = resource.condition("ParserVerified")["message"]
    assert all(name in message for name in FAILING)
    assert resource.condition("ParserVerified")["status"] == "False"
    assert resource.condition("Available")["status"] == "False"
    assert resource.phase == "Failed"
    record = resource.status["candidateRevision"]["verification"]["parser"]
    assert [failure["name"] for failure in record["failures"]] == list(FAILING)
    assert resource.status["summary"]["verified"] == "59/61"
    time.sleep(2)
    assert resource.of(DEPLOYMENT) == []
    assert resource.of(SERVICE) == []
    assert resource.endpoints() == []


def test_older_revision_serves_on(operator, kubelet, kube, resource, show_log):
    _fail(kubelet)
    resource.create(image=_image(GOOD)).until_ready()
    active, endpoints = resource.status["activeRevision"]["name"], resource.endpoints()
    resource.edit(image=_image(BAD))
    eventually(lambda: _has_failed(resource), "the gate has failed")
    time.sleep(2)
    assert resource.endpoints() == endpoints
    assert resource.status["activeRevision"]["name"] == active
    assert resource.condition("Available")["status"] == "True"
    assert resource.phase == "Degraded"
    selector = kube.get(SERVICE, resource.namespace, "gemma4")["spec"]["selector"]
    assert selector[names.LABEL_REVISION] == active

    resource.edit(image=_image(GOOD))
    resource.until_ready()
    assert resource.endpoints() == endpoints


def test_pods_that_break_rules_get_no_traffic(operator, kubelet, kube, resource, show_log):
    """With a parser gate that has passed, or was deceived: the live gate asks the pods themselves."""
    bad = "sha256:" + "d" * 64
    kubelet.live_reports[f"{REPOSITORY}@{bad}"] = failed_live_report("call-has-id", "one-delta-per-call")
    resource.create(image=_image(GOOD)).until_ready()
    active, endpoints = resource.status["activeRevision"]["name"], resource.endpoints()
    assert resource.condition("LiveVerified")["reason"] == "LiveCheckPassed"
    resource.edit(image=_image(bad))
    eventually(lambda: resource.condition("LiveVerified").get("status") == "False", "the live gate has failed")
    time.sleep(2)
    assert "call-has-id, one-delta-per-call" in resource.condition("Degraded")["message"]
    assert resource.endpoints() == endpoints
    assert kube.get(SERVICE, resource.namespace, "gemma4")["spec"]["selector"][names.LABEL_REVISION] == active
    assert resource.condition("Available")["status"] == "True"
    held = resource.status["candidateRevision"]["name"]
    assert kube.get(DEPLOYMENT, resource.namespace, f"gemma4-{held}")["spec"]["replicas"] == 0
    assert [event["reason"] for event in resource.events()].count("LiveCheckFailed") == 1

    del kubelet.live_reports[f"{REPOSITORY}@{bad}"]
    retry = {"metadata": {"annotations": {names.ANNOTATION_RETRY: "1"}}}
    kube.patch(GEMMASERVE, resource.namespace, "gemma4", retry)
    eventually(lambda: resource.status["activeRevision"]["name"] != active, "the retry has taken over", 60)


def test_next_revision_takes_over_once_its_gate_has_passed(operator, kube, resource, show_log):
    resource.create(image=_image(GOOD)).until_ready()
    first = resource.status["activeRevision"]["name"]
    resource.edit(image=_image("sha256:" + "c" * 64))
    resource.until_ready(90)
    assert resource.status["activeRevision"]["name"] != first
    assert len(resource.endpoints()) == 1
    eventually(lambda: len(resource.of(DEPLOYMENT)) == 1, "the old revision is gone", 60)


def test_same_digest_in_a_namespace_is_not_verified_again(operator, kube, resource, show_log):
    resource.create(image=_image(GOOD)).until_ready()
    second = type(resource)(kube, resource.namespace, "second").create(image=_image(GOOD)).until_ready()
    live = f"second-{second.status['activeRevision']['name']}-live"
    assert [job["metadata"]["name"] for job in second.of(JOB)] == [live]
    assert second.status["summary"]["verified"] == "61/61"


def test_a_tag_is_pinned_to_the_digest_that_the_gate_ran_in(operator, resource, show_log):
    resource.create(image={"repository": REPOSITORY, "tag": "0.1.0"}).until_ready()
    (deployment,) = resource.of(DEPLOYMENT)
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image.startswith(f"{REPOSITORY}@sha256:")
