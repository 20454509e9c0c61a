"""What others do to children, and what is done about it."""

import copy

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.planning import Apply, Refusal, plan


@pytest.fixture
def serving(cluster):
    cluster.settle()
    cluster.log.clear()
    return cluster


def child(cluster, kind):
    name = "gemma4" if kind == "Service" else f"gemma4-{cluster.selected}"
    return cluster.objects[kind, name]


def test_at_rest_nothing_is_written(serving):
    result = serving.plan()
    assert result.writes == ()
    assert result.status == serving.status
    assert result.events == ()
    assert result.requeue_after is None


@pytest.mark.parametrize("key", [("Deployment", "gemma4-{}"), ("Service", "gemma4-{}"), ("Service", "gemma4")])
def test_a_deleted_child_is_made_again_as_it_was(serving, key):
    key = (key[0], key[1].format(serving.selected))
    before = serving.objects.pop(key)
    serving.settle()
    after = serving.objects[key]
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert serving.condition("Ready")["status"] == "True"


def test_a_deleted_gate_job_is_not_missed(serving):
    del serving.objects["Job", serving.names("Job")[0]]
    serving.settle()
    assert serving.log == []


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["spec"].update(replicas=7),
        lambda d: d["spec"]["template"]["spec"]["containers"][0].update(image="r.example/vllm:latest"),
        lambda d: d["spec"]["template"]["spec"]["containers"][0]["args"].append("--port=1"),
        lambda d: d["metadata"]["labels"].pop(names.LABEL_MANAGED_BY),
        lambda d: d["metadata"]["annotations"].update({names.ANNOTATION_IMAGE_DIGEST: "sha256:" + "f" * 64}),
    ],
)
def test_an_edited_deployment_is_put_right(serving, edit):
    wanted = copy.deepcopy(child(serving, "Deployment"))
    edit(child(serving, "Deployment"))
    for write in serving.plan().writes:
        serving.write(write)
    now = child(serving, "Deployment")
    assert now["spec"] == wanted["spec"]
    assert wanted["metadata"]["annotations"].items() <= now["metadata"]["annotations"].items()


def test_what_others_add_stays(serving):
    deployment = child(serving, "Deployment")
    deployment["metadata"]["labels"]["team"] = "a"
    deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "1"
    deployment["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "s"})
    deployment["spec"]["template"]["spec"]["dnsPolicy"] = "ClusterFirst"
    child(serving, "Service")["spec"]["clusterIP"] = "10.0.0.1"
    assert serving.plan().writes == ()


def test_another_operators_template_is_left_alone(serving):
    """Upgrading the operator restarts no serving pod; everything but the pod template is still looked after."""
    deployment = child(serving, "Deployment")
    deployment["metadata"]["annotations"][names.ANNOTATION_TEMPLATE_VERSION] = "0"
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessProbe"] = {"httpGet": {"path": "/old"}}
    template = copy.deepcopy(deployment["spec"]["template"])
    assert serving.plan().writes == ()
    serving.edit(replicas=3)
    serving.settle()
    deployment = child(serving, "Deployment")
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["template"] == template
    assert deployment["metadata"]["annotations"][names.ANNOTATION_TEMPLATE_VERSION] == "0"


def test_the_active_deployment_is_made_again_during_a_rollout(serving):
    old = serving.selected
    before = copy.deepcopy(child(serving, "Deployment"))
    serving.pods_ready = False
    serving.edit(engine={"maxModelLen": 1})
    serving.settle()
    del serving.objects["Deployment", f"gemma4-{old}"]
    serving.settle()
    assert serving.objects["Deployment", f"gemma4-{old}"]["spec"] == before["spec"]
    assert serving.selected == old


@pytest.mark.parametrize("loss", ["deleted", "edited"])
@pytest.mark.parametrize("status_too", [False, True])
def test_a_lost_selector_goes_back_to_what_served(serving, loss, status_too):
    old = serving.selected
    serving.pods_ready = False
    serving.edit(engine={"maxModelLen": 1})
    serving.settle()
    new = serving.status["candidateRevision"]["name"]
    if loss == "deleted":
        del serving.objects["Service", "gemma4"]
    else:
        child(serving, "Service")["spec"]["selector"] = {"app": "mine"}
    if status_too:
        del serving.resource["status"]
    (write,) = [w for w in serving.plan().writes if w.body["metadata"]["name"] == "gemma4"]
    assert write.body["spec"]["selector"][names.LABEL_REVISION] == old
    serving.settle()
    assert serving.selected == old
    assert {f"gemma4-{old}", f"gemma4-{new}"} <= set(serving.names("Deployment"))


def test_a_selector_that_names_an_unverified_revision_is_put_right(serving):
    old = serving.selected
    child(serving, "Service")["spec"]["selector"][names.LABEL_REVISION] = "0000000000"
    serving.settle()
    assert serving.selected == old


def test_losing_the_status_loses_only_history(serving):
    before = serving.resource.pop("status")
    serving.settle()
    assert serving.log == []
    lost = {"history", "conditions"}
    assert {k: v for k, v in serving.status.items() if k not in lost} == {
        k: v for k, v in before.items() if k not in lost
    }


def strange(cluster, kind, name):
    labels = {names.LABEL_NAME: "gemma4", names.LABEL_REVISION: "x", "theirs": "yes"}
    cluster.objects[kind, name] = {
        "kind": kind,
        "metadata": {"name": name, "uid": "stranger", "labels": labels},
        "spec": {"selector": {"app": "theirs"}, "replicas": 1},
        "status": {"succeeded": 1},
    }


@pytest.mark.parametrize("kind", ["Job", "Deployment", "Service", "main"])
def test_a_strangers_object_is_never_touched(cluster, kind):
    revision = cluster.plan().writes[0].body["metadata"]["labels"][names.LABEL_REVISION]
    name = {"Job": f"gemma4-{revision}-gate", "main": "gemma4"}.get(kind, f"gemma4-{revision}")
    kind = "Service" if kind == "main" else kind
    strange(cluster, kind, name)
    before = copy.deepcopy(cluster.objects[kind, name])
    for _ in range(5):
        cluster.reconcile()
        cluster._jobs()
    assert cluster.objects[kind, name] == before
    assert cluster.reason("Degraded") == cluster.reason("Ready") == "NameConflict"
    assert f"{kind} {name}" in cluster.condition("Degraded")["message"]


def with_refusal(cluster, written, code, message):
    snapshot = cluster.snapshot()
    fields = {key: getattr(snapshot, key) for key in snapshot.__dataclass_fields__}
    return plan(type(snapshot)(**(fields | {"refusals": {written: Refusal(code, message)}})), cluster.now)


def test_a_refused_write_is_told_in_the_servers_words(cluster):
    status = with_refusal(cluster, "Job/gemma4-x-gate", 403, "jobs is forbidden: the words").status
    degraded = next(c for c in status["conditions"] if c["type"] == "Degraded")
    assert degraded["reason"] == "WriteRefused"
    assert "Job gemma4-x-gate: jobs is forbidden: the words" in degraded["message"]


def test_an_unlabelled_strangers_object_is_a_conflict(cluster):
    status = with_refusal(cluster, "Service/gemma4", 409, "already exists").status
    assert next(c for c in status["conditions"] if c["type"] == "Ready")["reason"] == "NameConflict"


def test_what_is_being_deleted_is_waited_for(serving):
    child(serving, "Deployment")["metadata"]["deletionTimestamp"] = serving.stamp()
    serving.edit(replicas=2)
    assert not [w for w in serving.plan().writes if isinstance(w, Apply) and w.body["kind"] == "Deployment"]


def test_a_resource_that_is_being_deleted_is_left_to_kubernetes(serving):
    serving.resource["metadata"]["deletionTimestamp"] = serving.stamp()
    serving.edit(replicas=2)
    result = serving.plan()
    assert result.writes == ()
    assert result.status == serving.status


class TestInvalidSpec:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"replicas": -1}, "spec.replicas"),
            ({"unknown": 1}, "spec.unknown"),
            ({"model": None}, "spec.model"),
            ({"model": {"uri": "s3://x"}}, "spec.model.uri must be"),
            ({"resources": {"requests": {"cpu": "abc"}}}, "spec.resources.requests.cpu"),
            ({"engine": {"args": ["--port=1"]}}, "--port"),
            ({"engine": []}, "spec.engine"),
        ],
    )
    def test_it_is_told_and_what_serves_goes_on(self, serving, change, words):
        serving.edit(**change)
        serving.settle()
        assert serving.log == []
        for kind in ("Ready", "Progressing", "Degraded"):
            assert serving.reason(kind) == "InvalidSpec"
            assert words in serving.condition(kind)["message"]
        assert serving.condition("Available")["status"] == "True"
        assert serving.status["observedGeneration"] == 2
        assert serving.status["activeRevision"]["name"] == serving.selected

    def test_putting_it_right_goes_on(self, serving):
        serving.edit(replicas=-1)
        serving.settle()
        serving.edit(replicas=2)
        serving.settle()
        assert serving.condition("Ready")["status"] == "True"
        assert serving.status["phase"] == "Serving"

    @pytest.mark.parametrize("spec", [None, {}, [], "text"])
    def test_from_the_start(self, cluster, spec):
        cluster.resource["spec"] = spec
        cluster.reconcile()
        assert cluster.log == []
        assert cluster.status["phase"] == "Failed"
        assert cluster.reason("Ready") == "InvalidSpec"

    def test_a_name_that_leaves_no_room(self, make_cluster):
        cluster = make_cluster(name="a" * 63)
        cluster.reconcile()
        assert cluster.log == []
        assert "metadata.name" in cluster.condition("Ready")["message"]
