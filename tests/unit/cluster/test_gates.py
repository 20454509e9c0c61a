import json

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.gates import GateIndex

from .fake_client import child

DIGEST = "sha256:" + "a" * 64
PASSED = {"job": "j", "parser": "gemma4_atomic", "passed": 61, "failed": 0, "total": 61}


def gate(uid="u1", *, record=None, condition=None, digest=DIGEST, **changes):
    job = child(uid=uid, **changes)
    job["metadata"]["labels"] = job["metadata"]["labels"] | {names.LABEL_COMPONENT: names.COMPONENT_GATE}
    if record is not None:
        text = json.dumps(record)
        job["metadata"]["annotations"] = {names.ANNOTATION_VERIFICATION: text, names.ANNOTATION_IMAGE_DIGEST: digest}
    if condition is not None:
        job["status"] = {"conditions": [{"type": condition, "status": "True"}]}
    return job


@pytest.fixture
def index():
    return GateIndex()


def test_gates_that_have_not_ended_run(index):
    index.put(gate("u1"))
    index.put(gate("u2"))
    index.put(gate("u2", condition="Complete"))
    index.put(gate("u3", condition="Failed"))
    index.put(gate("u4", deletionTimestamp="2026-01-01T00:00:00Z"))
    index.put(child(uid="u5"))
    assert index.running == 1
    index.discard(gate("u1"))
    index.discard(gate("u1"))
    assert index.running == 0


def test_live_gates_take_a_slot_and_verify_no_image(index):
    job = gate("u1", record=PASSED)
    job["metadata"]["labels"][names.LABEL_COMPONENT] = names.COMPONENT_LIVE
    index.put(job)
    assert index.running == 1
    assert index.verifications("team") == {}


def test_a_passed_record_counts_in_its_namespace(index):
    index.put(gate(record=PASSED, condition="Complete"))
    assert index.verifications("team")[DIGEST]["passed"] == 61
    assert index.verifications("elsewhere") == {}
    index.discard(gate())
    assert index.verifications("team") == {}


@pytest.mark.parametrize(
    "job",
    [
        gate(record=PASSED | {"passed": 60, "failed": 1}),
        gate(record={"no": "record"}),
        gate(record=PASSED, ownerReferences=[]),
        gate(record=PASSED, ownerReferences=[{"apiVersion": "apps/v1", "kind": "GemmaServe", "controller": True}]),
        gate(record=PASSED, deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["failed", "unreadable", "unowned", "owned by something else", "leaving"],
)
def test_no_other_record_counts(index, job):
    index.put(job)
    assert index.verifications("team") == {}


def test_one_of_two_records_is_left_when_the_other_goes(index):
    index.put(gate("u1", record=PASSED))
    index.put(gate("u2", record=PASSED | {"job": "second"}))
    index.discard(gate("u1"))
    assert index.verifications("team")[DIGEST]["job"] == "second"
