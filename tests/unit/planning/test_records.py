"""What a revision was made from outlives its pods, and goes once nobody can want it any more."""

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.planning import Delete


@pytest.fixture
def serving(cluster):
    return cluster.settle()


def roll(cluster, length):
    cluster.edit(engine={"maxModelLen": length})
    cluster.settle()
    cluster.tick(60)
    return cluster.settle()


def record_of(cluster, revision):
    return cluster.objects.get(("ControllerRevision", names.revision_name("gemma4", revision)))


def test_what_serves_has_none(serving):
    assert serving.names("ControllerRevision") == []


def test_a_revision_that_leaves_is_recorded_before_anything_of_it_goes(serving):
    old = serving.selected
    serving.edit(engine={"maxModelLen": 1})
    serving.settle()
    serving.tick(60)
    serving.log.clear()
    serving.settle()
    kinds = [write.kind if isinstance(write, Delete) else write.body["kind"] for write in serving.log]
    assert kinds[:4] == ["ControllerRevision", "Job", "Service", "Deployment"]
    kept = record_of(serving, old)
    assert kept["data"]["spec"]["model"] == {"uri": "hf://google/gemma-4"}
    assert "engine" not in kept["data"]["spec"]
    assert kept["metadata"]["annotations"][names.ANNOTATION_IMAGE_DIGEST] == serving.resource["spec"]["image"]["digest"]


def test_a_candidate_that_was_replaced_is_recorded_too(serving):
    serving.pods_ready = False
    serving.edit(engine={"maxModelLen": 1})
    serving.settle()
    candidate = serving.status["candidateRevision"]["name"]
    serving.edit(engine={"maxModelLen": 2})
    serving.settle()
    assert record_of(serving, candidate)["data"]["spec"]["engine"] == {"maxModelLen": 1}


def test_death_after_the_record_changes_nothing(serving):
    old = serving.selected
    serving.edit(engine={"maxModelLen": 1})
    serving.settle()
    serving.tick(60)
    serving.reconcile(writes=1)
    assert record_of(serving, old)
    serving.tick(1)
    serving.log.clear()
    serving.settle()
    assert "ControllerRevision" not in {write.body["kind"] for write in serving.log if not isinstance(write, Delete)}
    assert serving.names("Deployment") == [f"gemma4-{serving.selected}"]


def test_one_that_came_back_and_leaves_again_is_the_latest(serving):
    first = serving.selected
    roll(serving, 1)
    second = serving.selected
    serving.edit(engine={})
    serving.settle()
    serving.tick(60)
    serving.settle()
    assert serving.selected == first
    roll(serving, 2)
    assert record_of(serving, first)["revision"] > record_of(serving, second)["revision"]


def test_they_are_kept_up_to_the_limit(serving):
    serving.edit(revisionHistoryLimit=2)
    revisions = [roll(serving, length).selected for length in range(1, 6)]
    kept = [record_of(serving, revision) is not None for revision in revisions]
    assert kept == [False, False, True, True, False]


def test_a_strangers_is_neither_overwritten_nor_in_the_way(serving):
    old = serving.selected
    metadata = {"name": f"gemma4-{old}", "uid": "stranger", "labels": {names.LABEL_NAME: "gemma4"}}
    serving.objects["ControllerRevision", metadata["name"]] = {"kind": "ControllerRevision", "metadata": metadata}
    roll(serving, 1)
    assert record_of(serving, old)["metadata"] == metadata
    assert serving.names("Deployment") == [f"gemma4-{serving.selected}"]
