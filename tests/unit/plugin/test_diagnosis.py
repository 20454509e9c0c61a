"""What the archive holds, and that it holds no secret even where a log repeats one."""

import json
from datetime import UTC, datetime

import pytest

from gemmaserve_operator.plugin.diagnosis import Collector

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "correct-horse-battery"
POD = {
    "kind": "Pod",
    "metadata": {"name": "gemma4-x-1", "namespace": "team", "managedFields": [{}]},
    "spec": {"containers": [{"name": "server", "env": [{"name": "KEY", "value": SECRET}]}]},
    "status": {
        "containerStatuses": [
            {
                "name": "server",
                "restartCount": 2,
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": f"no such key {SECRET}"}},
            }
        ]
    },
}


def event(about, reason):
    return {"involvedObject": {"kind": "Pod", "name": about}, "reason": reason, "message": f"{reason} of {SECRET}"}


@pytest.fixture
def collected(kubectl):
    kubectl.cluster.resource["spec"]["engine"] = {"env": [{"name": "KEY", "value": SECRET}]}
    kubectl.answers = {
        "get deployments": json.dumps({"items": [POD]}),
        "get events": json.dumps({"items": [event("gemma4-x-1", "BackOff"), event("gemma40", "Foreign")]}),
        "--previous": f"it died of {SECRET}",
        "logs gemma4-x-1": f"started with {SECRET} and hf_abcdefghijklmnopqrstu",
        "version": "serverVersion: v1.37.2",
    }
    told = []
    diagnosis = Collector(kubectl, "gemma4", NOW, told.append).collect()
    assert "logs of gemma4-x-1" in told
    return diagnosis


def test_everything_is_there(collected):
    assert set(collected.files) == {
        "SUMMARY.txt",
        "children.yaml",
        "events.txt",
        "events.yaml",
        "logs/gemma4-x-1.server.log",
        "logs/gemma4-x-1.server.previous.log",
        "resource.yaml",
        "termination-messages.txt",
        "versions.yaml",
    }
    assert "exit code 1, Error" in collected.files["termination-messages.txt"]
    assert "BackOff" in collected.files["events.txt"]
    assert "Foreign" not in collected.files["events.txt"]


def test_no_secret_is(collected):
    for path, text in collected.files.items():
        assert SECRET not in text, path
        assert "hf_abcdef" not in text, path
        assert "managedFields" not in text, path


def test_what_may_not_be_read_is_named(collected):
    assert set(collected.missing) == {"nodes", "operator", "surroundings"}
    assert "nodes: Forbidden: get nodes" in collected.files["SUMMARY.txt"]


def test_the_summary_says_what_is_in_it(collected):
    assert "logs/gemma4-x-1.server.log (" in collected.files["SUMMARY.txt"]
    assert "Secrets, and values of environment variables: never" in collected.files["SUMMARY.txt"]
