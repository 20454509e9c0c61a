"""How one revision takes over from another, and what never happens meanwhile."""

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.planning import Delete

DIGEST = "sha256:" + "a" * 64
BAD = "sha256:" + "c" * 64
IMAGE = {"repository": "r.example/vllm", "digest": DIGEST}


@pytest.fixture
def serving(cluster):
    """A cluster in which a first revision serves."""
    return cluster.settle()


def deployment_of(cluster, revision):
    name = names.revision_name("gemma4", revision)
    return cluster.objects.get(("Deployment", name))


def candidate_of(cluster):
    return cluster.status["candidateRevision"]["name"]


class TestBlueGreen:
    def test_the_candidate_starts_beside_the_active(self, serving):
        old = serving.selected
        serving.pods_ready = False
        serving.edit(engine={"maxModelLen": 4096})
        serving.settle()
        assert serving.selected == old
        assert len(serving.names("Deployment")) == 2
        assert serving.names("Service") == sorted(["gemma4", f"gemma4-{old}", f"gemma4-{candidate_of(serving)}"])
        assert serving.status["phase"] == "RollingOut"
        assert serving.condition("Available")["status"] == "True"
        assert serving.condition("Ready")["status"] == "False"
        assert serving.reason("Progressing") == "StartingPods"

    def test_traffic_moves_when_as_many_as_asked_are_ready(self, serving):
        old = serving.selected
        serving.edit(engine={"maxModelLen": 4096}, replicas=3)
        serving.pods_ready = False
        serving.settle()
        new = candidate_of(serving)
        pods = [
            p
            for (k, n), p in serving.objects.items()
            if k == "Pod" and n.startswith(f"gemma4-{new}-") and "gate" not in n
        ]
        for pod in pods[:2]:
            pod["status"]["conditions"].append({"type": "Ready", "status": "True"})
        serving.settle()
        assert serving.selected == old
        serving.pods_ready = True
        serving.settle()
        assert serving.selected == new

    def test_the_old_revision_stays_until_endpoints_confirm_and_the_delay_is_over(self, serving):
        old = serving.selected
        serving.slices_follow = False
        serving.edit(engine={"maxModelLen": 4096})
        serving.settle()
        serving.tick(10_000)
        serving.settle()
        assert serving.selected != old
        assert deployment_of(serving, old) is not None
        assert serving.reason("Progressing") == "SwitchingTraffic"
        serving.slices_follow = True
        serving.settle()
        assert deployment_of(serving, old) is None
        assert serving.condition("Ready")["status"] == "True"

    def test_the_old_revision_stays_while_its_successor_has_no_ready_endpoint(self, serving):
        old = serving.selected
        serving.edit(engine={"maxModelLen": 4096})
        serving.settle()
        serving.pods_ready = False
        for pod in serving._pods_of(deployment_of(serving, serving.selected)):
            serving.objects["Pod", pod["metadata"]["name"]]["status"]["conditions"].pop()
        serving.tick(10_000)
        serving.settle()
        assert deployment_of(serving, old)["spec"]["replicas"] == 1
        serving.pods_ready = True
        serving.settle()
        assert deployment_of(serving, old) is None

    def test_the_delay_counts_from_the_switch(self, serving):
        old = serving.selected
        serving.tick(500)
        serving.edit(engine={"maxModelLen": 4096})
        serving.settle()
        serving.tick(29)
        serving.settle()
        assert deployment_of(serving, old) is not None
        assert serving.reason("Progressing") == "DrainingOldRevision"
        assert serving.plan().requeue_after == 1
        serving.tick(1)
        serving.settle()
        assert deployment_of(serving, old) is None
        assert serving.names("Service") == ["gemma4", f"gemma4-{serving.selected}"]

    def test_a_failed_gate_touches_nothing_that_serves(self, serving, reports):
        before = {key: obj for key, obj in serving.objects.items() if key[0] in ("Deployment", "Service")}
        serving.reports[f"r.example/vllm@{BAD}"] = reports["failed"]()
        serving.edit(image=IMAGE | {"digest": BAD})
        serving.settle()
        after = {key: obj for key, obj in serving.objects.items() if key[0] in ("Deployment", "Service")}
        assert after == before
        assert serving.status["phase"] == "Degraded"
        assert serving.condition("Available")["status"] == "True"
        assert serving.reason("Ready") == "ParserRegressionsFailed"

    def test_a_newer_edit_replaces_only_the_candidate(self, serving):
        old = serving.selected
        serving.pods_ready = False
        serving.edit(engine={"maxModelLen": 1})
        serving.settle()
        first = candidate_of(serving)
        serving.edit(engine={"maxModelLen": 2})
        serving.settle()
        assert deployment_of(serving, first) is None
        assert deployment_of(serving, old) is not None
        assert serving.selected == old
        assert serving.status["history"][0]["outcome"] == "Superseded"
        assert serving.status["history"][0]["revision"] == first

    def test_going_back_deletes_the_candidate_and_nothing_else(self, serving):
        old = serving.selected
        serving.pods_ready = False
        serving.edit(engine={"maxModelLen": 1})
        serving.settle()
        gone = {f"gemma4-{candidate_of(serving)}"}
        serving.log.clear()
        serving.edit(engine={})
        serving.settle()
        assert {write.name for write in serving.log if isinstance(write, Delete)} == gone
        assert {w.body["kind"] for w in serving.log if not isinstance(w, Delete)} == {"ControllerRevision"}
        assert serving.selected == old
        assert serving.condition("Ready")["status"] == "True"

    def test_an_older_revision_comes_back_without_a_second_parser_gate(self, serving):
        first = serving.selected
        serving.edit(engine={"maxModelLen": 1})
        serving.settle()
        serving.tick(31)
        serving.settle()
        serving.log.clear()
        serving.edit(engine={})
        serving.settle()
        assert serving.selected == first
        jobs = {
            w.body["metadata"]["name"] for w in serving.log if not isinstance(w, Delete) and w.body["kind"] == "Job"
        }
        assert jobs == {f"gemma4-{first}-live"}

    def test_going_back_within_the_delay_switches_back_at_once(self, serving):
        first = serving.selected
        serving.edit(engine={"maxModelLen": 1})
        serving.settle()
        serving.edit(engine={})
        serving.settle()
        assert serving.selected == first

    def test_a_service_lost_at_the_switch_is_made_once_for_the_new_revision(self, serving):
        serving.pods_ready = False
        serving.edit(engine={"maxModelLen": 1})
        serving.settle()
        serving.pods_ready = True
        while not any(write.body["metadata"]["name"] == "gemma4" for write in serving.plan().writes):
            serving.reconcile()
            serving.controllers()
        del serving.objects["Service", "gemma4"]
        made = [w.body for w in serving.plan().writes if w.body["metadata"]["name"] == "gemma4"]
        assert [body["spec"]["selector"][names.LABEL_REVISION] for body in made] == [candidate_of(serving)]

    def test_what_is_no_revision_restarts_nothing(self, serving):
        template = deployment_of(serving, serving.selected)["spec"]["template"]
        serving.edit(
            rollout={"drainTimeoutSeconds": 5, "progressDeadlineSeconds": 60}, routing={"service": {"port": 81}}
        )
        serving.settle()
        assert len(serving.names("Deployment")) == 1
        assert deployment_of(serving, serving.selected)["spec"]["template"] == template
        assert serving.objects["Service", "gemma4"]["spec"]["ports"][0]["port"] == 81
        assert serving.status["url"] == "http://gemma4.team.svc:81/v1"

    def test_old_gate_jobs_are_kept_up_to_the_limit(self, serving):
        serving.edit(revisionHistoryLimit=2)
        for length in range(1, 6):
            serving.edit(engine={"maxModelLen": length})
            serving.tick(60)
            serving.settle()
            serving.tick(60)
            serving.settle()
        assert len([name for name in serving.names("Job") if name.endswith("-gate")]) == 3
        assert [name for name in serving.names("Job") if name.endswith("-live")] == [f"gemma4-{serving.selected}-live"]
        assert len(serving.status["history"]) == 3
        assert [entry["outcome"] for entry in serving.status["history"]] == ["Active", "Replaced", "Replaced"]


class TestScale:
    def test_replicas_make_no_revision(self, serving):
        selected = serving.selected
        serving.edit(replicas=4)
        serving.settle()
        assert serving.selected == selected
        assert serving.status["readyReplicas"] == serving.status["replicas"] == 4
        assert serving.status["summary"]["replicas"] == "4/4"

    def test_the_selector_is_of_the_active_revisions_pods(self, serving):
        pairs = dict(pair.split("=") for pair in serving.status["selector"].split(","))
        (pod,) = (p for p in serving.of("Pod") if pairs.items() <= p["metadata"]["labels"].items())
        assert pod["metadata"]["labels"][names.LABEL_COMPONENT] == names.COMPONENT_SERVER

    def test_too_few_ready_pods_are_told(self, serving):
        serving.pods_ready = False
        serving.edit(replicas=2)
        serving.settle()
        assert serving.reason("Degraded") == serving.reason("Ready") == "ReplicasNotReady"
        assert serving.condition("Available")["status"] == "True"
        assert serving.status["phase"] == "Degraded"

    def test_none_at_all(self, serving):
        serving.edit(replicas=0)
        serving.settle()
        assert serving.reason("Available") == "ScaledToZero"
        assert serving.condition("Degraded")["status"] == "False"
        serving.edit(replicas=1)
        serving.settle()
        assert serving.condition("Available")["status"] == "True"

    def test_a_rollout_of_none(self, make_cluster):
        cluster = make_cluster({"replicas": 0, "verification": {"live": {"enabled": False}}}).settle()
        first = cluster.selected
        cluster.edit(engine={"maxModelLen": 1})
        cluster.settle()
        cluster.tick(31)
        cluster.settle()
        assert cluster.selected != first
        assert deployment_of(cluster, first) is None


class TestPaused:
    @pytest.mark.parametrize("paused", [True])
    def test_before_the_gate(self, serving, paused):
        serving.edit(engine={"maxModelLen": 1}, rollout={"paused": paused})
        serving.log.clear()
        serving.settle()
        assert serving.log == []
        assert serving.reason("Progressing") == "Paused"
        assert serving.condition("Available")["status"] == "True"

    def test_before_the_pods(self, serving):
        serving.edit(engine={"maxModelLen": 1})
        serving.reconcile()
        serving.edit(rollout={"paused": True})
        serving.settle()
        assert serving.reason("ParserVerified") == "ParserRegressionsPassed"
        assert len(serving.names("Deployment")) == 1
        assert serving.reason("Progressing") == "Paused"

    def test_before_the_switch_and_the_clean_up(self, serving):
        old = serving.selected
        serving.pods_ready = False
        serving.edit(engine={"maxModelLen": 1})
        serving.settle()
        serving.edit(rollout={"paused": True})
        serving.pods_ready = True
        serving.settle()
        assert serving.selected == old
        assert serving.reason("Progressing") == "Paused"
        serving.edit(rollout={})
        serving.settle()
        assert serving.selected != old
        serving.edit(rollout={"paused": True})
        serving.tick(1000)
        serving.settle()
        assert deployment_of(serving, old) is not None

    def test_what_serves_is_still_looked_after(self, serving):
        serving.edit(rollout={"paused": True})
        del serving.objects["Deployment", f"gemma4-{serving.selected}"]
        serving.settle()
        assert deployment_of(serving, serving.selected) is not None


class TestCapacity:
    @pytest.fixture
    def full(self, make_cluster):
        """One GPU, one pod on it."""
        return make_cluster(gpus=1).settle()

    def test_waiting_for_gpus_is_no_fault_and_never_ends(self, full):
        old = full.selected
        full.edit(engine={"maxModelLen": 1})
        full.settle()
        full.tick(10_000_000)
        full.settle()
        assert full.selected == old
        assert full.status["phase"] == "WaitingForCapacity"
        assert full.reason("Progressing") == "InsufficientGPU"
        assert full.condition("Degraded")["status"] == "False"
        assert deployment_of(full, old)["spec"]["replicas"] == 1
        assert full.plan().requeue_after is None

    def test_the_old_gives_way_after_the_timeout(self, full):
        old = full.selected
        full.edit(engine={"maxModelLen": 1}, rollout={"onInsufficientCapacity": "Recreate"})
        full.settle()
        full.tick(899)
        full.settle()
        assert deployment_of(full, old)["spec"]["replicas"] == 1
        assert full.plan().requeue_after == 1
        full.tick(1)
        full.settle()
        assert full.selected != old
        assert full.condition("Ready")["status"] == "True"

    def test_it_does_not_come_back_while_the_new_one_starts(self, full):
        old = full.selected
        full.edit(engine={"maxModelLen": 1}, rollout={"onInsufficientCapacity": "Recreate"})
        full.settle()
        full.pods_ready = False
        full.tick(900)
        full.settle()
        full.tick(100)
        full.settle()
        assert deployment_of(full, old)["spec"]["replicas"] == 0

    def test_it_never_gives_way_to_an_unverified_one(self, full, reports):
        old = full.selected
        full.reports[f"r.example/vllm@{BAD}"] = reports["failed"]()
        full.edit(image=IMAGE | {"digest": BAD}, rollout={"onInsufficientCapacity": "Recreate"})
        full.settle()
        full.tick(100_000)
        full.settle()
        assert deployment_of(full, old)["spec"]["replicas"] == 1

    def test_it_comes_back_when_the_new_one_is_given_up(self, full):
        old = full.selected
        full.edit(engine={"maxModelLen": 1}, rollout={"onInsufficientCapacity": "Recreate"})
        full.settle()
        full.pods_ready = False
        full.tick(900)
        full.settle()
        full.tick(3600)
        full.pods_ready = True
        for pod in full.of("Pod"):
            assert not full.is_ready(pod)
        full.reconcile()
        full.settle()
        assert deployment_of(full, old)["spec"]["replicas"] == 1
        assert full.selected == old
        assert full.reason("Ready") == "ProgressDeadlineExceeded"

    def test_going_back_brings_it_back(self, full):
        old = full.selected
        full.edit(engine={"maxModelLen": 1}, rollout={"onInsufficientCapacity": "Recreate"})
        full.settle()
        full.pods_ready = False
        full.tick(900)
        full.settle()
        full.pods_ready = True
        full.edit(engine={})
        full.settle()
        assert full.selected == old
        assert full.condition("Ready")["status"] == "True"

    def test_a_first_revision_without_gpus_is_told(self, make_cluster):
        cluster = make_cluster(gpus=0).settle()
        assert cluster.status["phase"] == "WaitingForCapacity"
        assert cluster.reason("Degraded") == "InsufficientGPU"


class TestRecreate:
    def test_old_pods_are_gone_before_new_ones_are_made(self, make_cluster):
        cluster = make_cluster({"rollout": {"strategy": "Recreate"}}, gpus=1).settle()
        old = cluster.selected
        cluster.edit(engine={"maxModelLen": 1})
        cluster.settle()
        written = [write.body for write in cluster.log if not isinstance(write, Delete)]
        stopped = written.index(next(b for b in written if b["kind"] == "Deployment" and b["spec"]["replicas"] == 0))
        made = max(i for i, b in enumerate(written) if b["kind"] == "Deployment")
        assert stopped < made
        assert cluster.selected != old
        assert deployment_of(cluster, old) is None

    def test_nothing_is_made_while_an_old_pod_is_left(self, make_cluster):
        cluster = make_cluster({"rollout": {"strategy": "Recreate"}}).settle()
        old = deployment_of(cluster, cluster.selected)
        cluster.edit(engine={"maxModelLen": 1})
        while old["spec"]["replicas"]:
            cluster.controllers()
            cluster.reconcile()
            old = deployment_of(cluster, cluster.selected)
        for _ in range(3):
            cluster.reconcile()
        assert len(cluster.names("Deployment")) == 1
        assert cluster.reason("Progressing") == "StoppingOldRevision"
        assert cluster.status["phase"] == "RollingOut"

    def test_what_an_eviction_left_behind_is_not_waited_for(self, make_cluster):
        cluster = make_cluster({"rollout": {"strategy": "Recreate"}}, gpus=1).settle()
        (pod,) = cluster._pods_of(deployment_of(cluster, cluster.selected))
        left = {**pod, "metadata": pod["metadata"] | {"name": "evicted", "ownerReferences": [{"uid": "replicaset"}]}}
        cluster.objects["Pod", "evicted"] = left | {"status": {"phase": "Failed", "reason": "Evicted"}}
        cluster.settle()
        assert cluster.condition("Degraded")["status"] == "False"
        old = cluster.selected
        cluster.edit(engine={"maxModelLen": 1})
        cluster.settle()
        assert cluster.selected != old

    def test_only_behind_the_gate(self, make_cluster, reports):
        cluster = make_cluster({"rollout": {"strategy": "Recreate"}}).settle()
        cluster.reports[f"r.example/vllm@{BAD}"] = reports["failed"]()
        cluster.edit(image=IMAGE | {"digest": BAD})
        cluster.settle()
        assert deployment_of(cluster, cluster.selected)["spec"]["replicas"] == 1
        assert cluster.condition("Available")["status"] == "True"


class TestDeadline:
    def stuck(self, cluster):
        cluster.pods_ready = False
        cluster.edit(engine={"maxModelLen": 1})
        cluster.settle()
        return candidate_of(cluster)

    def test_a_candidate_is_given_up_and_frees_its_gpus(self, serving):
        old, new = serving.selected, self.stuck(serving)
        serving.tick(3599)
        serving.settle()
        assert deployment_of(serving, new)["spec"]["replicas"] == 1
        assert serving.plan().requeue_after == 1
        serving.tick(1)
        serving.settle()
        assert deployment_of(serving, new)["spec"]["replicas"] == 0
        assert serving.selected == old
        assert serving.status["phase"] == "Degraded"
        assert serving.reason("Degraded") == "ProgressDeadlineExceeded"
        assert serving.condition("Progressing")["status"] == "False"
        serving.tick(100_000)
        assert serving.plan().writes == ()

    def test_a_retry_goes_on(self, serving):
        new = self.stuck(serving)
        serving.tick(3600)
        serving.settle()
        serving.pods_ready = True
        serving.retry("again")
        serving.settle()
        assert serving.condition("Ready")["status"] == "True"
        assert deployment_of(serving, new) is None

    def test_with_nothing_to_fall_back_on_it_goes_on_trying(self, cluster):
        cluster.pods_ready = False
        cluster.settle()
        cluster.tick(3600)
        cluster.settle()
        assert cluster.reason("Degraded") == "ProgressDeadlineExceeded"
        cluster.pods_ready = True
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True"

    def test_waiting_for_gpus_does_not_count(self, make_cluster):
        cluster = make_cluster(gpus=1).settle()
        cluster.edit(engine={"maxModelLen": 1})
        cluster.settle()
        cluster.tick(100_000)
        cluster.gpus = 2
        cluster.pods_ready = False
        cluster.settle()
        assert cluster.reason("Progressing") == "StartingPods"
        cluster.pods_ready = True
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True"


def test_pods_that_are_not_made_are_told_in_kubernetes_words(serving):
    serving.pods_ready = False
    serving.edit(engine={"maxModelLen": 1})
    serving.settle()
    words = 'pods "x" is forbidden: maximum memory usage per Container is 1Gi'
    refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": words}
    deployment_of(serving, candidate_of(serving))["status"]["conditions"] = [refused]
    serving.reconcile()
    assert serving.reason("Degraded") == "PodsRefused"
    assert words in serving.condition("Degraded")["message"]
