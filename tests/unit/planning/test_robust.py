"""Nothing that a user, an older operator or a stranger may leave in the cluster makes the planner raise."""

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemmaserve_operator.api import names
from gemmaserve_operator.planning import Plan

ANNOTATIONS = sorted(value for key, value in vars(names).items() if key.startswith("ANNOTATION_"))
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)
SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def rolling(cluster):
    """A second revision is coming up beside the first."""
    cluster.settle()
    cluster.pods_ready = False
    cluster.edit(engine={"maxModelLen": 1})
    return cluster.settle()


def paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*path, key))


SPEC = {
    "model": {"uri": "hf://a/b", "tokenSecretRef": {"name": "t"}},
    "image": {"repository": "r", "tag": "t"},
    "engine": {"args": [], "env": []},
    "resources": {"gpu": {"count": 1}, "requests": {"cpu": 1}, "limits": {}},
    "scheduling": {"tolerations": [], "affinity": {}},
    "storage": {"cache": {}, "sharedMemory": "1Gi"},
    "rollout": {"paused": False},
    "routing": {"service": {"port": 80}},
    "replicas": 1,
}


@SETTINGS
@given(path=st.sampled_from([path for path in paths(SPEC) if path]), value=JSON)
def test_any_spec(rolling, path, value):
    spec = copy.deepcopy(SPEC)
    part = spec
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    rolling.resource["spec"] = spec
    assert isinstance(rolling.plan(), Plan)


@SETTINGS
@given(annotation=st.sampled_from(ANNOTATIONS), text=st.text(max_size=30) | st.sampled_from(["{}", "[]", "null", "1"]))
def test_any_annotation(rolling, annotation, text):
    for kind in ("Job", "Deployment", "Service"):
        for obj in [obj for (k, _), obj in rolling.objects.items() if k == kind]:
            obj["metadata"].setdefault("annotations", {})[annotation] = text
    rolling.retry(text)
    assert isinstance(rolling.plan(), Plan)


@SETTINGS
@given(key=st.sampled_from(["history", "candidateRevision", "activeRevision", "conditions"]), value=st.data())
def test_another_versions_status(rolling, key, value):
    items = st.lists(st.dictionaries(st.sampled_from(["revision", "name", "type", "outcome"]), LEAVES, max_size=3))
    drawn = value.draw(items if key in ("history", "conditions") else st.dictionaries(st.text(max_size=5), LEAVES))
    rolling.resource["status"][key] = drawn
    assert isinstance(rolling.plan(), Plan)


def test_objects_without_a_status(rolling):
    for obj in rolling.objects.values():
        obj.pop("status", None)
        obj.pop("endpoints", None)
    assert isinstance(rolling.plan(), Plan)


def test_a_100_kb_annotation(rolling):
    rolling.retry("x" * 100_000)
    (job,) = (write.body for write in rolling.plan().writes if getattr(write, "body", {}).get("kind") == "Job")
    assert len(str(job)) < 10_000
