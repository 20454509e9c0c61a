"""The gate: what opens the way to traffic, what does not, and what is no verdict at all."""

import json

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.planning import Apply, Delete, plan

DIGEST = "sha256:" + "a" * 64
OTHER_DIGEST = "sha256:" + "b" * 64
TAGGED = {"image": {"repository": "r.example/vllm", "tag": "v1"}}


def gate_pod(cluster):
    return next(p for p in cluster.of("Pod") if p["metadata"]["labels"][names.LABEL_COMPONENT] == names.COMPONENT_GATE)


def start_gate(cluster, **status):
    """A gate whose one pod has the given status, and whose Job has not ended."""
    cluster.reports = dict.fromkeys(["r.example/vllm@" + DIGEST, "r.example/vllm:v1"])
    cluster.settle()
    (job,) = (obj for (kind, _), obj in cluster.objects.items() if kind == "Job")
    pod = cluster._pod("gate-x", job, job["spec"]["template"]["metadata"]["labels"], job["spec"]["template"]["spec"])
    pod["status"] = status
    return job


def ended(code, message="", **more):
    container = {"name": "gate", "imageID": f"r.example/vllm@{DIGEST}"}
    return {
        "phase": "Succeeded" if code == 0 else "Failed",
        "containerStatuses": [container | {"state": {"terminated": {"exitCode": code, "message": message} | more}}],
    }


def waiting(reason, message=""):
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "gate", "state": state}]}


def end_job(cluster, job, kind="Failed"):
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": cluster.stamp()}]
    cluster.objects["Job", job["metadata"]["name"]]["status"] = {"conditions": conditions}


def test_the_gate_comes_before_anything_that_serves(cluster):
    (first,) = cluster.plan().writes
    assert first.body["kind"] == "Job"
    assert first.creates
    cluster.settle()
    kinds = [write.body["kind"] for write in cluster.log]
    gate, pods, live, recorded = ["Job", "Job"], ["Deployment", "Service"], ["Job", "Job"], ["Deployment", "Service"]
    assert kinds == [*gate, *pods, *live, *recorded, "Deployment", "Service"]
    assert cluster.condition("Ready")["status"] == "True"


def test_nothing_is_made_while_the_gate_runs(cluster):
    start_gate(cluster)
    assert cluster.names("Deployment") == cluster.names("Service") == []
    assert cluster.reason("Progressing") == "ParserRegressionsRunning"
    assert cluster.status["phase"] == "Verifying"


def test_the_verdict_is_recorded_before_it_is_acted_on(cluster):
    cluster.reconcile()
    cluster.controllers()
    (write,) = cluster.plan().writes
    assert json.loads(write.body["metadata"]["annotations"][names.ANNOTATION_VERIFICATION])["passed"] == 61
    assert write.body["metadata"]["annotations"][names.ANNOTATION_IMAGE_DIGEST] == DIGEST


def test_a_failed_gate_makes_nothing_and_names_the_tests(cluster, reports):
    cluster.reports["r.example/vllm@" + DIGEST] = reports["failed"]()
    cluster.settle()
    assert cluster.names("Deployment") == cluster.names("Service") == []
    assert cluster.status["phase"] == "Failed"
    for kind in ("Ready", "ParserVerified", "Degraded", "Progressing"):
        assert cluster.reason(kind) == "ParserRegressionsFailed"
    assert "mega_delta_with_all_tools_in_one_chunk: 2 calls instead of 3" in cluster.condition("Degraded")["message"]
    assert cluster.status["summary"]["verified"] == "60/61"


def test_a_failed_digest_is_not_tried_again(cluster, reports):
    cluster.reports["r.example/vllm@" + DIGEST] = reports["failed"]()
    cluster.settle()
    del cluster.objects["Pod", gate_pod(cluster)["metadata"]["name"]]
    cluster.tick(100_000)
    assert cluster.plan().writes == ()
    assert cluster.plan().requeue_after is None


@pytest.mark.parametrize(
    ("code", "change"),
    [
        (0, "no JSON at all"),
        (0, ""),
        (0, "[]"),
        (0, {"failed": 1, "passed": 60}),
        (0, {"passed": 60}),
        (0, {"passed": 0, "total": 0}),
        (0, {"parser": "gemma4"}),
        (1, {}),
        (1, "Traceback (most recent call last)"),
        (2, "usage: gemmaserve-parser"),
        (127, "not found"),
    ],
)
def test_only_a_whole_and_consistent_report_passes(cluster, reports, code, change):
    message = change if isinstance(change, str) else json.dumps(reports["passed"](**change))
    start_gate(cluster, **ended(code, message))
    cluster.settle()
    assert cluster.reason("ParserVerified") == "ParserRegressionsFailed"
    assert cluster.condition("ParserVerified")["status"] == "False"
    assert cluster.names("Deployment") == []


def test_last_words_are_told(cluster):
    start_gate(cluster, **ended(2, "unknown parser gemma4_atomic"))
    cluster.settle()
    assert "unknown parser gemma4_atomic" in cluster.condition("ParserVerified")["message"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (ended(137, reason="OOMKilled"), "ran out of memory"),
        (ended(137) | {"reason": "DeadlineExceeded"}, "did not finish"),
        (ended(128, "exec: gemmaserve-parser: not found", reason="StartError"), "gemmaserve-parser: not found"),
    ],
)
def test_other_ends_count_once_the_job_has_given_up(cluster, status, words):
    job = start_gate(cluster, **status)
    cluster.settle()
    assert cluster.reason("ParserVerified") == "ParserRegressionsRunning"
    end_job(cluster, job)
    cluster.settle()
    assert cluster.reason("ParserVerified") == "ParserRegressionsFailed"
    assert words in cluster.condition("ParserVerified")["message"]


DISRUPTED = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    "status",
    [
        ended(1, "evicted while failing") | DISRUPTED,
        ended(137) | DISRUPTED,
        waiting("ImagePullBackOff") | {"phase": "Failed", "reason": "DeadlineExceeded"},
    ],
)
def test_what_is_no_verdict_is_tried_again(cluster, status):
    job = start_gate(cluster, **status)
    end_job(cluster, job)
    cluster.settle()
    assert cluster.names("Job") == [job["metadata"]["name"]], "not at once"
    assert cluster.plan().requeue_after == 30
    cluster.tick(30)
    (write,) = cluster.plan().writes
    assert isinstance(write, Delete)
    assert write.uid == job["metadata"]["uid"]
    cluster.reports.clear()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


def test_a_pod_of_an_earlier_job_of_the_same_name_says_nothing(cluster, reports):
    start_gate(cluster, **ended(0, json.dumps(reports["passed"]())))
    cluster.objects["Pod", "gate-x"]["metadata"]["ownerReferences"][0]["uid"] = "another"
    cluster.settle()
    assert cluster.reason("ParserVerified") == "ParserRegressionsRunning"


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (waiting("ErrImagePull", "403 Forbidden"), "ImagePullError", "403 Forbidden"),
        (waiting("CreateContainerConfigError", 'secret "hf-token" not found'), "SecretNotFound", "hf-token"),
        (
            waiting("CreateContainerConfigError", "couldn't find key token in Secret team/hf-token"),
            "SecretNotFound",
            "no key token",
        ),
    ],
)
def test_what_keeps_the_gate_from_running_is_told(cluster, status, reason, words):
    start_gate(cluster, **status)
    cluster.settle()
    assert cluster.reason("Degraded") == cluster.reason("Ready") == reason
    assert words in cluster.condition("Degraded")["message"]
    assert cluster.status["phase"] == "Verifying"


class TestAGateWithoutAPod:
    """Its controller tells why in an event only, which nobody looks for unless told to."""

    @pytest.fixture
    def lonely(self, cluster):
        cluster.reports[cluster.plan().writes[0].body["spec"]["template"]["spec"]["containers"][0]["image"]] = None
        cluster.reconcile()
        return cluster

    def test_is_told_once_it_should_have_one(self, lonely):
        assert lonely.reconcile().requeue_after == 20
        assert lonely.reason("Degraded") == "AsExpected"
        lonely.tick(20)
        lonely.settle()
        assert lonely.reason("Degraded") == lonely.reason("Ready") == "PodsRefused"
        assert "kubectl describe job gemma4-" in lonely.condition("Degraded")["message"]

    def test_goes_on_when_it_gets_one(self, lonely):
        lonely.tick(20)
        lonely.settle()
        lonely.reports.clear()
        lonely.settle()
        assert lonely.condition("Ready")["status"] == "True"

    def test_may_wait_when_it_is_suspended(self, lonely):
        """As a queue of jobs does until there is room."""
        for (kind, _), job in lonely.objects.items():
            if kind == "Job":
                job["spec"]["suspend"] = True
        lonely.tick(20)
        lonely.settle()
        assert lonely.reason("Degraded") == "AsExpected"


def test_a_tag_is_resolved_once_and_pods_run_the_digest(make_cluster):
    cluster = make_cluster(TAGGED).settle()
    (deployment,) = cluster.of("Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"r.example/vllm@{DIGEST}"
    assert cluster.status["activeRevision"]["image"] == f"r.example/vllm@{DIGEST}"
    cluster.registry["v1"] = OTHER_DIGEST
    del cluster.objects["Job", cluster.names("Job")[0]]
    cluster.log.clear()
    cluster.settle()
    assert cluster.log == []


def test_an_image_without_a_digest_is_not_served(cluster, make_cluster, reports):
    cluster = make_cluster(TAGGED)
    status = ended(0, json.dumps(reports["passed"]()))
    status["containerStatuses"][0]["imageID"] = DIGEST
    start_gate(cluster, **status)
    cluster.settle()
    assert cluster.reason("ParserVerified") == "ImageDigestUnknown"
    assert cluster.names("Deployment") == []


def with_verifications(cluster, **verifications):
    snapshot = cluster.snapshot()
    fields = {key: getattr(snapshot, key) for key in snapshot.__dataclass_fields__}
    return plan(type(snapshot)(**(fields | verifications)), cluster.now)


def test_a_digest_that_passed_in_the_namespace_is_not_verified_again(cluster, reports):
    record = reports["passed"](job="another-gate")
    result = with_verifications(cluster, verifications={DIGEST: record})
    assert [write.body["kind"] for write in result.writes] == ["Deployment", "Service"]
    kept = json.loads(result.writes[0].body["metadata"]["annotations"][names.ANNOTATION_VERIFICATION])
    assert kept["job"] == "another-gate"


@pytest.mark.parametrize(
    "record",
    [{"parser": "hermes"}, {"passed": 60, "failed": 1}, {"error": "no report"}, {"passed": "many"}, {"total": 0}],
)
def test_a_record_that_is_not_about_this_does_not_count(cluster, reports, record):
    result = with_verifications(cluster, verifications={DIGEST: reports["passed"](**record)})
    assert [write.body["kind"] for write in result.writes] == ["Job"]


def test_a_tag_is_never_verified_by_somebody_elses_digest(make_cluster, reports):
    result = with_verifications(make_cluster(TAGGED), verifications={DIGEST: reports["passed"]()})
    assert [write.body["kind"] for write in result.writes] == ["Job"]


def test_gates_wait_for_a_slot(cluster):
    cluster.free_gates = 0
    cluster.settle()
    assert cluster.log == []
    assert cluster.reason("Progressing") == "WaitingForGateSlot"
    assert cluster.plan().requeue_after == 5
    cluster.free_gates = 1
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


class TestRetry:
    @pytest.fixture
    def failed(self, make_cluster, reports):
        cluster = make_cluster(TAGGED)
        cluster.reports["r.example/vllm:v1"] = reports["failed"]()
        return cluster.settle()

    def test_a_retry_runs_the_gate_again(self, failed):
        failed.reports.clear()
        failed.retry("1")
        failed.settle()
        assert failed.condition("Ready")["status"] == "True"
        assert [entry["outcome"] for entry in failed.status["history"]] == ["Active", "Failed"]

    def test_each_value_is_one_attempt(self, failed):
        failed.retry("1")
        failed.settle()
        jobs = failed.names("Job")
        failed.tick(1000)
        failed.settle()
        assert failed.names("Job") == jobs
        failed.retry("2")
        failed.settle()
        assert len(failed.names("Job")) == len(jobs) + 1

    def test_taking_the_annotation_away_changes_nothing(self, failed):
        failed.reports.clear()
        failed.retry("1")
        failed.settle()
        selected = failed.selected
        failed.retry(None)
        failed.log.clear()
        failed.settle()
        assert failed.log == []
        assert failed.selected == selected

    def test_a_moved_tag_is_resolved_anew(self, make_cluster):
        cluster = make_cluster(TAGGED).settle()
        old = cluster.selected
        cluster.registry["v1"] = OTHER_DIGEST
        cluster.retry("1")
        cluster.settle()
        assert cluster.selected != old
        assert cluster.status["activeRevision"]["image"].endswith(OTHER_DIGEST)

    def test_there_is_nothing_to_retry_about_a_digest_that_serves(self, cluster):
        cluster.settle()
        cluster.retry("1")
        cluster.log.clear()
        cluster.settle()
        assert cluster.log == []

    def test_going_back_after_a_retry_is_no_further_attempt(self, make_cluster, reports):
        cluster = make_cluster(TAGGED).settle()
        serving, old_engine = cluster.selected, cluster.resource["spec"].get("engine", {})
        cluster.reports["r.example/vllm:v1"] = reports["failed"]()
        cluster.edit(engine={"maxModelLen": 4096})
        cluster.settle()
        cluster.retry("1")
        cluster.settle()
        cluster.edit(engine=old_engine)
        cluster.log.clear()
        cluster.settle()
        assert cluster.selected == serving
        assert not [write for write in cluster.log if isinstance(write, Apply)]
        assert cluster.condition("Ready")["status"] == "True"
