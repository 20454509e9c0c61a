"""The live gate: what opens the way to traffic, what does not, and what is no verdict about the pods."""

import json

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.planning import Delete

DIGEST = "sha256:" + "a" * 64
BAD = "sha256:" + "c" * 64
IMAGE = f"r.example/vllm@{DIGEST}"
BAD_IMAGE = f"r.example/vllm@{BAD}"
DISABLED = {"live": {"enabled": False}}
ROLL_TO_BAD = {"image": {"repository": "r.example/vllm", "digest": BAD}}


def target_of(cluster):
    status = cluster.status
    return (status.get("candidateRevision") or status["activeRevision"])["name"]


def live_job(cluster):
    return cluster.objects.get(("Job", f"gemma4-{target_of(cluster)}-live"))


def deployment_of(cluster, revision):
    return cluster.objects.get(("Deployment", f"gemma4-{revision}"))


def start_check(cluster, **status):
    """A check whose one pod has the given status, and whose Job has not ended."""
    cluster.live_reports = {IMAGE: None}
    cluster.settle()
    job = live_job(cluster)
    template = job["spec"]["template"]
    pod = cluster._pod("live-x", job, template["metadata"]["labels"], template["spec"])
    pod["status"] = status
    return job


def ended(code, message="", **more):
    terminated = {"exitCode": code, "message": message if isinstance(message, str) else json.dumps(message)}
    return {
        "phase": "Succeeded" if code == 0 else "Failed",
        "containerStatuses": [{"name": "live", "state": {"terminated": terminated | more}}],
    }


def end_job(cluster, job, kind="Failed"):
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": cluster.stamp()}]
    cluster.objects["Job", job["metadata"]["name"]]["status"] = {"conditions": conditions}


@pytest.fixture
def held(cluster, reports):
    """A first revision whose pods break rules."""
    cluster.live_reports[IMAGE] = reports["failed live"]("call-has-id", "one-delta-per-call")
    return cluster.settle()


@pytest.fixture
def serving(cluster):
    return cluster.settle()


@pytest.fixture
def rolling(serving, reports):
    """A revision that serves, and a candidate whose pods break rules."""
    serving.live_reports[BAD_IMAGE] = reports["failed live"]("call-has-id")
    serving.edit(**ROLL_TO_BAD)
    return serving


class TestPassed:
    def test_no_traffic_before_the_check_has_passed(self, cluster):
        cluster.live_reports[IMAGE] = None
        cluster.settle()
        assert cluster.selected is None
        assert deployment_of(cluster, target_of(cluster))["status"]["readyReplicas"] == 1
        assert cluster.reason("Progressing") == cluster.reason("Ready") == cluster.reason("LiveVerified")
        assert cluster.reason("LiveVerified") == "LiveCheckRunning"
        assert cluster.condition("LiveVerified")["status"] == "Unknown"
        cluster.live_reports.clear()
        cluster.settle()
        assert cluster.selected == target_of(cluster)
        assert cluster.condition("LiveVerified")["status"] == "True"

    def test_it_asks_the_candidates_own_service(self, serving):
        (container,) = live_job(serving)["spec"]["template"]["spec"]["containers"]
        assert f"http://gemma4-{serving.selected}.team.svc" in container["command"]
        assert container["image"] == IMAGE

    def test_it_waits_for_the_services_endpoints(self, cluster):
        cluster.live_reports[IMAGE] = None
        while deployment_of(cluster, cluster.plan().status["candidateRevision"]["name"]) is None:
            cluster.reconcile()
            cluster.controllers()
        for key in [key for key in cluster.objects if key[0] == "EndpointSlice"]:
            del cluster.objects[key]
        result = cluster.reconcile()
        assert result.writes == ()
        assert cluster.reason("LiveVerified") == "LiveCheckPending"
        assert "endpoints" in cluster.condition("LiveVerified")["message"]

    def test_the_record_outlives_job_and_pod(self, serving):
        del serving.objects["Job", f"gemma4-{serving.selected}-live"]
        serving.log.clear()
        serving.settle()
        assert serving.log == []
        assert serving.status["activeRevision"]["verification"]["live"]["passed"] == 14
        assert serving.condition("LiveVerified")["status"] == "True"

    def test_what_is_kept_is_kept_on_deployment_and_service(self, serving):
        for kind in ("Deployment", "Service"):
            kept = serving.objects[kind, f"gemma4-{serving.selected}"]["metadata"]["annotations"]
            assert json.loads(kept[names.ANNOTATION_LIVE_VERIFICATION])["total"] == 16

    def test_a_revision_that_comes_back_is_checked_again(self, serving, reports):
        first = serving.selected
        serving.edit(engine={"maxModelLen": 1})
        serving.settle()
        serving.tick(60)
        serving.settle()
        assert serving.names("Deployment") == [f"gemma4-{serving.selected}"]
        serving.live_reports[IMAGE] = reports["failed live"]()
        serving.edit(engine={})
        serving.settle()
        assert serving.selected != first
        assert serving.reason("LiveVerified") == "LiveCheckFailed"

    def test_one_that_has_not_left_is_not(self, serving, reports):
        first = serving.selected
        serving.edit(engine={"maxModelLen": 1})
        serving.settle()
        serving.live_reports[IMAGE] = reports["failed live"]()
        serving.edit(engine={})
        serving.settle()
        assert serving.selected == first

    def test_only_the_road_to_traffic_is_checked(self, serving, reports):
        """Pods that are added by scaling, or made again, are those of a revision that was."""
        serving.live_reports[IMAGE] = reports["failed live"]()
        serving.edit(replicas=3)
        del serving.objects["Deployment", f"gemma4-{serving.selected}"]
        serving.settle()
        assert serving.condition("Ready")["status"] == "True"
        assert serving.condition("LiveVerified")["status"] == "True"


class TestFailed:
    def test_a_first_revision_gets_no_traffic_and_frees_its_gpus(self, held):
        assert held.selected is None
        assert deployment_of(held, target_of(held))["spec"]["replicas"] == 0
        assert held.status["phase"] == "Failed"
        for kind in ("Ready", "LiveVerified", "Degraded", "Progressing"):
            assert held.reason(kind) == "LiveCheckFailed"
        assert held.condition("LiveVerified")["status"] == "False"
        assert held.condition("ParserVerified")["status"] == "True"
        assert held.gpus_used() == 0

    def test_the_broken_rules_are_named(self, held):
        message = held.condition("Degraded")["message"]
        assert "call-has-id, one-delta-per-call" in message
        assert "chat stream auto one-call" in message
        assert "gemmaserve.dev/retry" in message
        failures = held.status["candidateRevision"]["verification"]["live"]["failures"]
        assert [failure["name"] for failure in failures] == ["call-has-id", "one-delta-per-call"]
        assert held.status["summary"]["verified"] == "61/61"

    def test_it_is_an_event_and_history(self, cluster, reports):
        cluster.live_reports[IMAGE] = reports["failed live"]()
        events = []
        for _ in range(20):
            events += cluster.reconcile().events
            cluster.controllers()
        assert [(e.type, e.reason) for e in events if e.reason == "LiveCheckFailed"] == [("Warning", "LiveCheckFailed")]
        assert [(e["outcome"], e["reason"]) for e in cluster.status["history"]] == [("Failed", "LiveCheckFailed")]

    def test_nothing_that_serves_is_touched(self, rolling):
        before = {key: obj for key, obj in rolling.objects.items() if key[0] in ("Deployment", "Service")}
        old = rolling.selected
        rolling.settle()
        assert {key: rolling.objects[key] for key in before} == before
        assert rolling.selected == old
        assert rolling.status["phase"] == "Degraded"
        assert rolling.condition("Available")["status"] == "True"
        assert rolling.reason("Ready") == "LiveCheckFailed"
        assert deployment_of(rolling, target_of(rolling))["spec"]["replicas"] == 0

    def test_it_is_not_tried_again_by_itself(self, held):
        for key in [("Job", f"gemma4-{target_of(held)}-live"), ("Deployment", f"gemma4-{target_of(held)}")]:
            held.remove(key)
            held.tick(100_000)
            held.settle()
        assert held.selected is None
        assert live_job(held) is None
        assert deployment_of(held, target_of(held))["spec"]["replicas"] == 0
        assert held.reason("Ready") == "LiveCheckFailed"

    def test_a_retry_takes_the_road_again(self, held):
        failed = target_of(held)
        held.live_reports.clear()
        held.retry("1")
        held.settle()
        assert held.condition("Ready")["status"] == "True"
        assert held.selected != failed
        assert deployment_of(held, failed) is None
        assert f"gemma4-{failed}-live" not in held.names("Job")

    def test_going_back_deletes_the_candidate(self, rolling):
        old, image = rolling.selected, {"repository": "r.example/vllm", "digest": DIGEST}
        rolling.settle()
        rolling.edit(image=image)
        rolling.settle()
        assert rolling.condition("Ready")["status"] == "True"
        assert rolling.names("Deployment") == [f"gemma4-{old}"]
        assert rolling.reason("LiveVerified") == "LiveCheckPassed"

    @pytest.mark.parametrize("how", [{"strategy": "Recreate"}, {"onInsufficientCapacity": "Recreate"}])
    def test_what_gave_way_comes_back(self, make_cluster, reports, how):
        cluster = make_cluster({"rollout": how}, gpus=1).settle()
        old = cluster.selected
        cluster.live_reports[BAD_IMAGE] = reports["failed live"]()
        cluster.edit(**ROLL_TO_BAD)
        cluster.settle()
        cluster.tick(1000)
        cluster.settle()
        assert cluster.reason("Ready") == "LiveCheckFailed"
        assert cluster.selected == old
        assert cluster.status["readyReplicas"] == 1

    @pytest.mark.parametrize(
        ("code", "change"),
        [
            (0, "no JSON at all"),
            (0, ""),
            (0, {"failures": [{"name": "call-has-id", "message": "x"}]}),
            (0, {"failed": 1}),
            (0, {"passed": 0}),
            (0, {"parser": "gemma4"}),
            (1, {}),
            (1, "Traceback (most recent call last)"),
            (1, {"failures": [{"name": "call-seen", "message": "no tool call in 16 answers"}]}),
            (127, "toolstream: not found"),
        ],
    )
    def test_only_a_whole_and_consistent_report_passes(self, cluster, reports, code, change):
        start_check(cluster, **ended(code, change if isinstance(change, str) else reports["passed live"](**change)))
        cluster.settle()
        assert cluster.reason("LiveVerified") == "LiveCheckFailed"
        assert cluster.selected is None

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (ended(137, reason="OOMKilled"), "ran out of memory"),
            (ended(137) | {"reason": "DeadlineExceeded"}, "spec.verification.live.timeoutSeconds"),
            (ended(2, "usage: toolstream check"), "usage: toolstream check"),
            (
                ended(2, {"parser": "gemma4_atomic", "passed": 0, "failed": 0, "total": 16}
                      | {"failures": [{"name": "unfinished", "message": "names no model at /v1/models"}]}),
                "unfinished. names no model at /v1/models",
            ),
        ],
    )  # fmt: skip
    def test_other_ends_count_once_the_job_has_given_up(self, cluster, status, words):
        job = start_check(cluster, **status)
        cluster.settle()
        assert cluster.reason("LiveVerified") == "LiveCheckRunning"
        end_job(cluster, job)
        cluster.settle()
        assert cluster.reason("LiveVerified") == "LiveCheckFailed"
        assert words in cluster.condition("LiveVerified")["message"]


DISRUPTED = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}


class TestNoVerdict:
    @pytest.mark.parametrize(
        "status",
        [
            ended(1, "evicted while failing") | DISRUPTED,
            ended(137) | DISRUPTED,
            {"phase": "Failed", "reason": "DeadlineExceeded", "containerStatuses": []},
        ],
    )
    def test_what_is_none_is_tried_again(self, cluster, status):
        job = start_check(cluster, **status)
        end_job(cluster, job)
        cluster.settle()
        assert live_job(cluster) is not None, "not at once"
        assert cluster.plan().requeue_after == 30
        cluster.tick(30)
        (write,) = cluster.plan().writes
        assert isinstance(write, Delete)
        assert write.uid == job["metadata"]["uid"]
        cluster.live_reports.clear()
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True"

    def disturb(self, cluster, reports):
        """A check that fails while one of the pods is ready only since it began."""
        job = start_check(cluster, phase="Running")
        (pod,) = cluster._pods_of(deployment_of(cluster, target_of(cluster)))
        cluster.tick(5)
        pod["status"]["conditions"][-1]["lastTransitionTime"] = cluster.stamp()
        cluster.objects["Pod", "live-x"]["status"] = ended(1, reports["failed live"]("stream-survives"))
        end_job(cluster, job)
        return job

    def test_a_failure_of_pods_that_came_and_went_is_none(self, cluster, reports):
        job = self.disturb(cluster, reports)
        cluster.settle()
        assert cluster.reason("LiveVerified") == "LiveCheckRunning"
        cluster.tick(30)
        assert [write.uid for write in cluster.plan().writes] == [job["metadata"]["uid"]]
        cluster.live_reports.clear()
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True"

    def test_it_counts_past_the_progress_deadline(self, cluster, reports):
        self.disturb(cluster, reports)
        cluster.tick(3600)
        cluster.settle()
        assert cluster.reason("LiveVerified") == "LiveCheckFailed"

    def test_a_success_of_such_pods_counts(self, cluster, reports):
        self.disturb(cluster, reports)
        cluster.objects["Pod", "live-x"]["status"] = ended(0, reports["passed live"]())
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True"

    def test_what_keeps_it_from_running_is_told(self, cluster):
        state = {"waiting": {"reason": "ErrImagePull", "message": "403 Forbidden"}}
        start_check(cluster, phase="Pending", containerStatuses=[{"name": "live", "state": state}])
        cluster.settle()
        assert cluster.reason("Degraded") == cluster.reason("LiveVerified") == "ImagePullError"
        assert cluster.selected is None


class TestStops:
    def test_paused_before_it(self, serving):
        old = serving.selected
        serving.pods_ready = False
        serving.edit(engine={"maxModelLen": 1})
        serving.settle()
        serving.edit(rollout={"paused": True})
        serving.pods_ready = True
        serving.settle()
        assert live_job(serving) is None
        assert serving.reason("Progressing") == "Paused"
        assert serving.selected == old

    def test_it_takes_a_slot(self, cluster):
        while not any(kind == "Deployment" for kind, _ in cluster.objects):
            cluster.reconcile()
            cluster.controllers()
        cluster.free_gates = 0
        cluster.settle()
        assert live_job(cluster) is None
        assert cluster.reason("LiveVerified") == cluster.reason("Progressing") == "WaitingForGateSlot"
        assert cluster.plan().requeue_after == 5
        cluster.free_gates = 1
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True"

    def test_without_pods_there_is_nothing_to_check(self, make_cluster):
        cluster = make_cluster({"replicas": 0}).settle()
        assert cluster.selected is None
        assert cluster.reason("Progressing") == cluster.reason("LiveVerified") == "ScaledToZero"
        assert cluster.condition("Progressing")["status"] == "False"
        cluster.edit(replicas=1)
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True"


class TestDisabled:
    def test_it_is_left_out_and_told(self, make_cluster):
        cluster = make_cluster({"verification": DISABLED}).settle()
        assert cluster.condition("Ready")["status"] == "True"
        assert live_job(cluster) is None
        live = cluster.condition("LiveVerified")
        assert (live["status"], live["reason"]) == ("Unknown", "LiveCheckSkipped")
        assert "spec.verification.live.enabled is false" in live["message"]
        assert "live" not in cluster.status["activeRevision"]["verification"]

    def test_switching_it_on_checks_the_next_revision(self, make_cluster, reports):
        cluster = make_cluster({"verification": DISABLED}).settle()
        old = cluster.selected
        cluster.live_reports[IMAGE] = reports["failed live"]()
        cluster.edit(verification={})
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True"
        assert cluster.reason("LiveVerified") == "LiveCheckSkipped"
        cluster.edit(engine={"maxModelLen": 1})
        cluster.settle()
        assert cluster.reason("Ready") == "LiveCheckFailed"
        assert cluster.selected == old

    def test_switching_it_off_lets_a_held_one_through(self, held):
        held.edit(verification=DISABLED)
        held.settle()
        assert held.condition("Ready")["status"] == "True"
        assert held.reason("LiveVerified") == "LiveCheckFailed"

    def test_no_new_revision_for_it(self, serving):
        old = serving.selected
        serving.edit(verification={"live": {"requests": 4, "concurrency": 2, "timeoutSeconds": 10}})
        serving.log.clear()
        serving.settle()
        assert (serving.selected, serving.log) == (old, [])


@pytest.mark.parametrize("checked", ["failed", "not yet"])
def test_a_selector_that_names_an_unchecked_candidate_is_put_right(rolling, checked):
    old = rolling.selected
    if checked == "not yet":
        rolling.live_reports[BAD_IMAGE] = None
    rolling.settle()
    rolling.objects["Service", "gemma4"]["spec"]["selector"][names.LABEL_REVISION] = target_of(rolling)
    rolling.settle()
    assert rolling.selected == old
    assert rolling.status["activeRevision"]["name"] == old


def test_a_strangers_job_of_that_name_is_told(cluster):
    name = f"gemma4-{cluster.plan().status['candidateRevision']['name']}-live"
    labels = {names.LABEL_NAME: "gemma4", names.LABEL_REVISION: "x"}
    cluster.objects["Job", name] = {
        "kind": "Job",
        "metadata": {"name": name, "uid": "stranger", "labels": labels},
        "spec": {},
        "status": {"succeeded": 1},
    }
    cluster.settle()
    assert cluster.selected is None
    assert cluster.reason("Degraded") == "NameConflict"
    assert name in cluster.condition("Degraded")["message"]
