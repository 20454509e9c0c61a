"""Killing the operator anywhere, and everything else that may happen at any time."""

import copy
import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from gemmaserve_operator.api import names
from gemmaserve_operator.planning import Apply

GOOD, ALSO_GOOD, BAD, BAD_LIVE = ("sha256:" + letter * 64 for letter in "abcd")


def essence(cluster):
    """Everything but identities and times."""
    objects = {}
    for (kind, name), obj in copy.deepcopy(cluster.objects).items():
        for field in ("uid", "creationTimestamp", "generation"):
            obj["metadata"].pop(field, None)
        obj["metadata"].get("annotations", {}).pop(names.ANNOTATION_SERVING_SINCE, None)
        for reference in obj["metadata"].get("ownerReferences", []):
            reference.pop("uid")
        obj.pop("status", None)
        obj.pop("endpoints", None)
        obj.pop("revision", None)
        if kind != "Pod":
            objects[kind, name] = obj
    return objects


def finish(cluster):
    cluster.settle()
    cluster.tick(60)
    return cluster.settle()


def count_writes(cluster):
    finish(cluster)
    return len(cluster.log)


SECOND = {"engine": {"maxModelLen": 1}}
ROADS = {
    "first": ({}, None),
    "second": ({}, SECOND),
    "recreate": ({"rollout": {"strategy": "Recreate"}}, SECOND | {"replicas": 2}),
    "capacity": ({"rollout": {"onInsufficientCapacity": "Recreate", "capacityTimeoutSeconds": 0}}, SECOND),
}


@pytest.mark.parametrize("road", ROADS)
def test_killed_after_any_write_it_ends_the_same(make_cluster, road):
    """The process dies after each single write in turn, before the next write and before the status."""
    spec, edit = ROADS[road]

    def start():
        cluster = make_cluster(spec, gpus=1 if road in ("recreate", "capacity") else 8)
        cluster.resource["spec"]["replicas"] = 1
        if edit is not None:
            finish(cluster).log.clear()
            cluster.edit(**edit | ({"replicas": 1} if road == "recreate" else {}))
        return cluster

    undisturbed = start()
    total = count_writes(undisturbed)
    assert total >= 5
    for kill in range(1, total + 1):
        cluster = start()
        for _ in range(200):
            cluster.controllers()
            left = kill - len(cluster.log)
            if left <= len(cluster.plan().writes) and left > 0:
                cluster.reconcile(writes=left)
                break
            cluster.reconcile()
            cluster.tick(10)
        assert len(cluster.log) >= kill
        assert essence(finish(cluster)) == essence(undisturbed), f"killed after write {kill}"
        assert cluster.status["phase"] == "Serving"


class Chaos(RuleBasedStateMachine):
    """Users, nodes, other people's kubectl, and an operator that dies, in any order."""

    def __init__(self, make_cluster, reports):
        super().__init__()
        self.cluster = make_cluster(gpus=2)
        self.cluster.reports[f"r.example/vllm@{BAD}"] = reports["failed"]()
        self.cluster.live_reports[f"r.example/vllm@{BAD_LIVE}"] = reports["failed live"]()
        self.led = set()
        """Revisions that traffic was led to, each after its live gate had passed, or while there was none to pass."""

    @rule(digest=st.sampled_from([GOOD, ALSO_GOOD, BAD, BAD_LIVE]), length=st.integers(1, 2))
    def edit(self, digest, length):
        self.cluster.edit(image={"repository": "r.example/vllm", "digest": digest}, engine={"maxModelLen": length})

    @rule(replicas=st.integers(0, 2))
    def scale(self, replicas):
        self.cluster.edit(replicas=replicas)

    @rule(
        strategy=st.sampled_from(["BlueGreen", "Recreate"]),
        short=st.sampled_from(["Wait", "Recreate"]),
        paused=st.booleans(),
    )
    def rollout(self, strategy, short, paused):
        self.cluster.edit(rollout={"strategy": strategy, "onInsufficientCapacity": short, "paused": paused})

    @rule(enabled=st.booleans())
    def live_gate(self, enabled):
        self.cluster.edit(verification={"live": {"enabled": enabled}})

    @rule(value=st.sampled_from(["1", "2", None]))
    def retry(self, value):
        self.cluster.retry(value)

    @rule(gpus=st.integers(0, 4), ready=st.booleans(), follow=st.booleans(), slots=st.integers(0, 1))
    def weather(self, gpus, ready, follow, slots):
        cluster = self.cluster
        cluster.gpus, cluster.pods_ready, cluster.slices_follow, cluster.free_gates = gpus, ready, follow, slots

    @rule(data=st.data())
    def somebody_deletes(self, data):
        keys = [key for key in self.cluster.objects if key[0] in ("Job", "Deployment", "Service", "Pod")]
        if keys:
            self.cluster.remove(data.draw(st.sampled_from(sorted(keys))))

    @rule(data=st.data())
    def somebody_edits_the_selector(self, data):
        service = self.cluster.objects.get(("Service", "gemma4"))
        if service:
            there = sorted(name.removeprefix("gemma4-") for name in self.cluster.names("Deployment"))
            service["spec"]["selector"] = {names.LABEL_REVISION: data.draw(st.sampled_from(["0000000000", *there]))}

    @rule()
    def the_status_is_lost(self):
        self.cluster.resource.pop("status", None)

    @rule(seconds=st.sampled_from([1, 31, 1000, 4000]))
    def time_passes(self, seconds):
        self.cluster.tick(seconds)

    @rule()
    def the_cluster_acts(self):
        self.cluster.controllers()

    @rule(writes=st.integers(0, 8))
    def the_operator_acts(self, writes):
        """Up to eight writes; with fewer than planned it has died, and its status was never written."""
        cluster = self.cluster
        result = cluster.plan()
        for write in result.writes[:writes]:
            self.check(write)
            cluster.write(write)
        if writes >= len(result.writes):
            cluster.resource["status"] = result.status

    def check(self, write):
        """What must hold of every single write at the moment it is made."""
        if not isinstance(write, Apply):
            if write.kind == "Deployment":
                self.check_delete(write)
        elif write.body["kind"] == "Deployment":
            self.check_deployment(write.body)
            self.check_mark(write.body)
        elif write.body["kind"] == "Service" and write.body["metadata"]["name"] == "gemma4":
            self.check_traffic(write.body)

    def enabled(self):
        return self.cluster.resource["spec"].get("verification", {"live": {"enabled": True}})["live"]["enabled"]

    def check_mark(self, body):
        """Traffic moves to what bears this mark, at once or when the main Service is lost."""
        revision = body["metadata"]["labels"][names.LABEL_REVISION]
        if names.ANNOTATION_SERVING_SINCE in body["metadata"]["annotations"] and revision not in self.led:
            assert not self.enabled() or revision in self.cluster.live_passed, "traffic to what failed the live gate"
            self.led.add(revision)

    def check_deployment(self, body):
        spec, cluster = body["spec"], self.cluster
        image = spec["template"]["spec"]["containers"][0]["image"]
        assert not image.endswith(BAD), "a serving pod of an image that failed"
        wanted = cluster.resource["spec"]
        if body["metadata"]["name"] == f"gemma4-{cluster.selected}" and wanted["replicas"] > spec["replicas"] == 0:
            rollout = wanted["rollout"]
            assert "Recreate" in (rollout["strategy"], rollout["onInsufficientCapacity"]), "stopping what serves"
            assert wanted["image"]["digest"] != BAD, "stopping what serves for an image that failed"

    def check_traffic(self, body):
        cluster, revision = self.cluster, body["spec"]["selector"][names.LABEL_REVISION]
        deployment = cluster.objects.get(("Deployment", f"gemma4-{revision}"))
        assert deployment is not None, "traffic to what is not there"
        assert revision in self.led, "traffic to what passed no live gate"
        served_before = names.ANNOTATION_SERVING_SINCE in deployment["metadata"]["annotations"]
        ready = sum(cluster.is_ready(pod) for pod in cluster._pods_of(deployment))
        assert served_before or ready >= cluster.resource["spec"]["replicas"], "traffic to what is not ready"

    def check_delete(self, write):
        cluster = self.cluster
        assert write.name != f"gemma4-{cluster.selected}", "deleting what is selected"
        slices = cluster.objects.get(("EndpointSlice", "gemma4"), {"endpoints": []})
        endpoints = {each["targetRef"]["name"]: each["conditions"]["ready"] for each in slices["endpoints"]}
        deployment = cluster.objects["Deployment", write.name]
        assert not endpoints.keys() & {pod["metadata"]["name"] for pod in cluster._pods_of(deployment)}
        if names.ANNOTATION_SERVING_SINCE in deployment["metadata"]["annotations"]:
            confirmed = any(endpoints.values()) or cluster.resource["spec"]["replicas"] == 0
            assert confirmed, "deleting what served before its successor is confirmed"

    @invariant()
    def planning_never_raises_and_is_repeatable(self):
        assert self.cluster.plan() == self.cluster.plan()

    def teardown(self):
        """In fair weather it comes to rest, with nothing left to write, serving what is asked if that can be."""
        cluster = self.cluster
        cluster.gpus, cluster.pods_ready, cluster.slices_follow, cluster.free_gates = 100, True, True, 10
        cluster.edit(rollout={"paused": False})
        wanted = cluster.resource["spec"]
        for _ in range(4):
            cluster.settle()
            cluster.tick(4000)
        cluster.settle()
        assert cluster.plan().writes == ()
        assert len(cluster.names("Deployment")) <= 2
        bad = {BAD, BAD_LIVE} if self.enabled() else {BAD}
        waits = cluster.reason("Progressing") == "ScaledToZero"
        assert not waits or (wanted["replicas"] == 0 and self.enabled())
        if wanted["image"]["digest"] not in bad and cluster.status["phase"] != "Degraded" and not waits:
            assert cluster.condition("Ready")["status"] == "True"
            assert cluster.names("Deployment") == [f"gemma4-{cluster.selected}"]


def test_chaos(make_cluster, reports):
    """GEMMASERVE_CHAOS_EXAMPLES=10000 looks longer than a test run has time for."""
    run_state_machine_as_test(
        lambda: Chaos(make_cluster, reports),
        settings=settings(
            max_examples=int(os.environ.get("GEMMASERVE_CHAOS_EXAMPLES", "30")),
            stateful_step_count=40,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
