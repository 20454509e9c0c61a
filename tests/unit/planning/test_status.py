"""What a person reads: phases, conditions, columns, history and events along the road."""

import pytest

from gemmaserve_operator.api.status import GemmaServeStatus


def steps(cluster, *, passes=20):
    """Each status along the road, one pass of the controllers and the operator at a time."""
    for _ in range(passes):
        yield cluster.reconcile()
        cluster.controllers()


def told(cluster, **how):
    return [event for result in steps(cluster, **how) for event in result.events]


def test_phases_of_a_first_rollout(cluster):
    phases = list(dict.fromkeys(result.status["phase"] for result in steps(cluster)))
    assert phases == ["Verifying", "Starting", "Serving"]


def test_phases_of_a_second_rollout(cluster):
    cluster.settle()
    cluster.edit(engine={"maxModelLen": 1})
    phases = list(dict.fromkeys(result.status["phase"] for result in steps(cluster)))
    assert phases == ["RollingOut", "Serving"]


def test_every_status_is_of_the_declared_shape(cluster):
    for result in steps(cluster):
        GemmaServeStatus.model_validate(result.status)
        assert {c["type"] for c in result.status["conditions"]} == {
            "Available",
            "Ready",
            "Progressing",
            "ParserVerified",
            "LiveVerified",
            "Degraded",
        }
        assert all(c["message"] and c["reason"] for c in result.status["conditions"])


def test_the_status_of_what_serves(cluster):
    cluster.settle()
    status = cluster.status
    assert status["url"] == "http://gemma4.team.svc/v1"
    assert status["summary"] == {"replicas": "1/1", "verified": "61/61"}
    assert status["activeRevision"]["verification"]["parser"]["vllmVersion"] == "0.32.0"
    assert status["activeRevision"]["verification"]["live"]["passed"] == 14
    assert "candidateRevision" not in status
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "Available": "True",
        "Ready": "True",
        "Progressing": "False",
        "ParserVerified": "True",
        "LiveVerified": "True",
        "Degraded": "False",
    }


def test_before_anything_serves_there_is_no_url(cluster):
    result = cluster.reconcile()
    assert "url" not in result.status
    assert "activeRevision" not in result.status
    assert result.status["candidateRevision"]["name"]
    assert result.status["summary"]["replicas"] == "0/1"


def test_available_stays_true_through_a_rollout(cluster):
    cluster.settle()
    cluster.edit(engine={"maxModelLen": 1})
    for result in steps(cluster):
        available = next(c for c in result.status["conditions"] if c["type"] == "Available")
        assert available["status"] == "True"
        assert available["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_messages_carry_no_time_that_moves(cluster):
    """A status that differs only by the clock would be written for ever."""
    cluster.pods_ready = False
    cluster.settle()
    before = cluster.plan().status
    cluster.tick(100)
    assert cluster.plan().status == before


def test_a_failed_status_does_not_move_either(cluster, reports):
    cluster.reports["r.example/vllm@sha256:" + "a" * 64] = reports["failed"]()
    cluster.settle()
    cluster.tick(100)
    assert cluster.plan().status == cluster.status


def test_ready_is_false_until_the_endpoints_are_there(cluster):
    cluster.slices_follow = False
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "False"
    assert cluster.reason("Available") == "NotServing"
    cluster.slices_follow = True
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"


class TestEvents:
    def test_each_step_is_told_once_and_in_order(self, cluster):
        reasons = [event.reason for event in told(cluster)]
        assert reasons == [
            "ParserRegressionsRunning",
            "ParserRegressionsPassed",
            "StartingPods",
            "LiveCheckRunning",
            "LiveCheckPassed",
            "SwitchingTraffic",
            "UpToDate",
        ]

    def test_a_failure_is_a_warning_with_the_next_step(self, cluster, reports):
        cluster.reports["r.example/vllm@sha256:" + "a" * 64] = reports["failed"]()
        failed = told(cluster)[-1]
        assert (failed.type, failed.reason) == ("Warning", "ParserRegressionsFailed")
        assert "gemmaserve.dev/retry" in failed.message

    def test_at_rest_nothing_is_told(self, cluster):
        cluster.settle()
        assert told(cluster) == []

    def test_a_second_rollout_is_told_again(self, cluster):
        cluster.settle()
        cluster.edit(engine={"maxModelLen": 1})
        assert "ParserRegressionsRunning" in [event.reason for event in told(cluster)]


class TestHistory:
    @pytest.fixture
    def rolled(self, cluster):
        cluster.settle()
        cluster.tick(60)
        cluster.edit(engine={"maxModelLen": 1})
        cluster.settle()
        return cluster

    def test_what_was_replaced(self, rolled):
        new, old = rolled.status["history"]
        assert (new["outcome"], new["revision"]) == ("Active", rolled.selected)
        assert (old["outcome"], old["finishedAt"]) == ("Replaced", "2026-01-01T00:01:00Z")

    def test_what_comes_back_moves_to_the_front(self, rolled):
        old = rolled.status["history"][1]["revision"]
        rolled.tick(60)
        rolled.edit(engine={})
        rolled.settle()
        assert rolled.status["history"][0]["revision"] == old
        assert [entry["outcome"] for entry in rolled.status["history"]] == ["Active", "Replaced"]

    def test_a_failure_stays_after_going_back(self, rolled, reports):
        bad = "sha256:" + "c" * 64
        rolled.reports[f"r.example/vllm@{bad}"] = reports["failed"]()
        image = rolled.resource["spec"]["image"]
        rolled.edit(image=image | {"digest": bad})
        rolled.settle()
        failed = rolled.status["history"][0]
        assert (failed["outcome"], failed["reason"]) == ("Failed", "ParserRegressionsFailed")
        rolled.tick(60)
        rolled.edit(image=image)
        rolled.settle()
        assert failed in rolled.status["history"]

    def test_none_are_kept_when_none_are_wanted(self, rolled):
        rolled.edit(revisionHistoryLimit=0)
        rolled.settle()
        assert [entry["outcome"] for entry in rolled.status["history"]] == ["Active"]
