"""Revision names are pinned: an operator that names an unchanged spec differently restarts every GPU pod."""

import pytest

from gemmaserve_operator.api.revision import Revision, attempt_of, read_revision, revision_hash
from gemmaserve_operator.api.spec import GemmaServeSpec

MINIMAL = {"model": {"uri": "hf://google/gemma-4"}, "image": {"repository": "r.example/vllm", "tag": "0.1.0"}}
EVERY_DEFAULT_WRITTEN = MINIMAL | {
    "image": MINIMAL["image"] | {"pullPolicy": "IfNotPresent", "pullSecrets": []},
    "engine": {"family": "gemma4", "args": [], "env": []},
    "parallelism": {"tensor": 1, "pipeline": 1},
    "resources": {"gpu": {"resource": "nvidia.com/gpu"}, "requests": {}, "limits": {}},
    "scheduling": {"nodeSelector": {}, "tolerations": [], "topologySpreadConstraints": []},
    "storage": {"cache": {}, "sharedMemory": "8Gi"},
    "startupTimeoutSeconds": 1800,
}
SOMETHING_OF_EACH = {
    "model": {"uri": "hf://google/gemma-4", "name": "g", "revision": "main", "tokenSecretRef": {"name": "t"}},
    "image": {"repository": "r.example/vllm", "tag": "0.1.0", "pullSecrets": [{"name": "p"}]},
    "engine": {"maxModelLen": 8192, "args": ["--enforce-eager"], "env": [{"name": "A", "value": "b"}]},
    "parallelism": {"tensor": 2},
    "resources": {"gpu": {"count": 2}, "requests": {"cpu": 8}, "limits": {"memory": "96Gi"}},
    "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    "storage": {"cache": {"claim": "c"}},
    "startupTimeoutSeconds": 60,
}


def name(spec, attempt=""):
    return revision_hash(GemmaServeSpec.model_validate(spec), attempt)


@pytest.mark.parametrize(
    ("spec", "attempt", "pinned"),
    [
        (MINIMAL, "", "b5ff1de89a"),
        (EVERY_DEFAULT_WRITTEN, "", "b5ff1de89a"),
        (SOMETHING_OF_EACH, "", "86f57a1fe9"),
        (MINIMAL, "0123456789", "333062701b"),
    ],
)
def test_names_never_change(spec, attempt, pinned):
    """Golden. If this fails, the change needs a new HASH_INPUT_VERSION and a way to keep what runs."""
    assert name(spec, attempt) == pinned


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 7},
        {"rollout": {"strategy": "Recreate", "drainTimeoutSeconds": 5, "paused": True}},
        {"routing": {"service": {"type": "NodePort", "port": 8080}}},
        {"verification": {"parser": {"timeoutSeconds": 5}}},
        {"revisionHistoryLimit": 1},
    ],
)
def test_what_changes_no_pod_makes_no_revision(change):
    assert name(MINIMAL | change) == name(MINIMAL)


@pytest.mark.parametrize("part", sorted(SOMETHING_OF_EACH))
def test_what_changes_a_pod_makes_a_revision(part):
    changed = MINIMAL | {"parallelism": {"tensor": 2}} if part == "resources" else MINIMAL
    assert name(changed | {part: SOMETHING_OF_EACH[part]}) != name(changed)


def test_the_image_counts_as_it_is_written():
    other = MINIMAL | {"image": {"repository": "r.example/vllm", "tag": "0.1.1"}}
    assert name(other) != name(MINIMAL)


def test_a_record_makes_the_same_revision_again():
    spec = GemmaServeSpec.model_validate(SOMETHING_OF_EACH | {"rollout": {"drainTimeoutSeconds": 7}})
    revision = Revision.of(spec, attempt_of("once more"))
    assert read_revision(revision.name, revision.to_record()) == revision


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{",
        "[]",
        "null",
        '{"spec": {}}',
        '{"spec": {"model": {"uri": "hf://a/b"}, "image": {"repository": "r", "tag": "t"}}, "drainTimeoutSeconds": 1}',
    ],
)
def test_a_record_that_is_not_the_revisions_is_none(record):
    assert read_revision("0123456789", record) is None


def test_a_retry_of_any_length_becomes_a_short_token():
    assert attempt_of(None) == attempt_of("") == ""
    assert len(attempt_of("x" * 100_000)) == 10
    assert attempt_of("1") != attempt_of("2")
