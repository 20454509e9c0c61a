"""What is known of past revisions, and the patch that goes back to one."""

import json

import pytest

from gemmaserve_operator.plugin.history import SOURCES, UndoError, build_undo, choose, read_history, read_sources

TAG = {"repository": "r.example/vllm", "tag": "v1"}


def children(kubectl):
    return kubectl.children("gemma4", SOURCES)


def undo(kubectl, wanted=None):
    resource = kubectl.get("gemma4")
    _, source = choose(resource, children(kubectl), wanted)
    return build_undo(resource, source)


def test_a_lost_status_loses_no_way_back(kubectl, first, rolled):
    resource = kubectl.get("gemma4")
    resource["status"] = {"activeRevision": {"name": rolled.selected}}
    assert [past.revision for past in read_history(resource, children(kubectl))] == [first]
    assert choose(resource, children(kubectl), None)[0] == first


def test_only_the_fields_that_differ_are_changed(kubectl, rolled):
    assert [(op["op"], op["path"]) for op in undo(kubectl)[1:]] == [("remove", "/spec/engine")]


def test_what_the_api_server_filled_in_is_no_difference(kubectl, rolled):
    rolled.resource["spec"] |= {
        "parallelism": {"tensor": 1, "pipeline": 1},
        "storage": {"cache": {}, "sharedMemory": "8Gi"},
        "startupTimeoutSeconds": 1800,
    }
    assert [op["path"] for op in undo(kubectl)[1:]] == ["/spec/engine"]


def test_a_tag_comes_back_as_the_digest_that_it_stood_for(kubectl, serving):
    serving.edit(image=TAG)
    serving.settle()
    tagged = serving.selected
    serving.edit(engine={"maxModelLen": 1})
    serving.settle()
    serving.tick(60)
    serving.settle()
    image = next(op["value"] for op in undo(kubectl, tagged) if op["path"] == "/spec/image")
    assert image == {"repository": "r.example/vllm", "digest": "sha256:" + "a" * 64}


def test_a_tag_that_still_serves_stays_one(kubectl, serving):
    """So that nothing of it is touched."""
    serving.edit(image=TAG)
    serving.settle()
    tagged = serving.selected
    serving.pods_ready = False
    serving.edit(engine={"maxModelLen": 1})
    serving.settle()
    kubectl.patch("gemma4", undo(kubectl))
    assert serving.settle().selected == tagged
    assert serving.resource["spec"]["image"] == TAG
    assert serving.condition("Ready")["status"] == "True"


def test_a_spec_that_is_not_valid_any_more_can_be_undone(kubectl, rolled):
    rolled.resource["spec"]["parallelism"] = {"tensor": "many"}
    assert {op["path"] for op in undo(kubectl)[1:]} == {"/spec/engine", "/spec/parallelism"}


def test_a_beginning_that_several_have_is_not_enough(kubectl, rolled):
    with pytest.raises(UndoError, match="2 revisions begin with"):
        choose(kubectl.get("gemma4"), children(kubectl), "")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"spec":1}'])
def test_children_that_say_nothing_are_passed_over(kubectl, text):
    job = {"kind": "Job", "metadata": {"name": "a", "labels": {"gemmaserve.dev/revision": "x"}}}
    job["metadata"]["annotations"] = {"gemmaserve.dev/revision-spec": text, "gemmaserve.dev/verification": text}
    assert read_sources([job]) == {}
    assert read_history({"metadata": {"name": "a"}}, [job]) == []


def test_records_are_read_as_they_are_written(kubectl, first, rolled):
    (record,) = rolled.of("ControllerRevision")
    assert json.loads(json.dumps(record))["data"]["spec"] == read_sources(children(kubectl))[first].spec
