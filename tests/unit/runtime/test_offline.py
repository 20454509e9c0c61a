"""`gemmaserve-operator plan`, as a user runs it."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import Revision, VerifiedRevision
from gemmaserve_operator.api.spec import GemmaServeSpec
from gemmaserve_operator.api.status import ParserRecord
from gemmaserve_operator.cluster.kinds import JOB, SERVICE
from gemmaserve_operator.desired.common import Owner
from gemmaserve_operator.desired.deployment import build_deployment
from gemmaserve_operator.desired.services import build_revision_service
from gemmaserve_operator.planning.verdict import record_json
from gemmaserve_operator.runtime.offline import InputError, show_plans

from ..cluster.fake_client import child, gemmaserve  # noqa: TID252

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def write(tmp_path):
    def put(name, *documents):
        path = tmp_path / name
        path.write_text(yaml.safe_dump_all(documents))
        return path

    return put


@pytest.fixture
def manifest(write):
    """A GemmaServe as users write it: no uid, no namespace."""
    return write("gemmaserve.yaml", gemmaserve() | {"metadata": {"name": "gemma4"}})


def test_an_empty_cluster_gets_the_gate_first(manifest):
    text = show_plans(manifest, None, output="text", now=NOW)
    assert text.startswith("GemmaServe default/gemma4: Verifying\n")
    assert "1. create Job gemma4-" in text
    assert "2." not in text
    assert "Ready=False ParserRegressionsRunning" in text


def test_yaml_holds_the_whole_bodies(manifest):
    (document,) = yaml.safe_load_all(show_plans(manifest, None, output="yaml", now=NOW))
    assert document["resource"] == "default/gemma4"
    assert document["writes"][0]["apply"]["kind"] == "Job"
    assert document["status"]["phase"] == "Verifying"


def held(obj, namespace="default", uid="uid-1", version="5"):
    return obj | {"metadata": obj["metadata"] | {"namespace": namespace, "uid": uid, "resourceVersion": version}}


def test_the_state_of_a_cluster_is_read_from_a_list(manifest, write):
    """What kubectl prints: a List, whose GemmaServe has the uid by which children are known as its own."""
    revision = yaml.safe_load(show_plans(manifest, None, output="yaml", now=NOW))["writes"][0]["apply"]
    job = held(revision, uid="job")
    job["metadata"]["ownerReferences"][0]["uid"] = "uid-1"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "of no concern"}}
    state = write("state.yaml", {"kind": "List", "items": [held(gemmaserve()), job, secret]})
    text = show_plans(manifest, state, output="text", now=NOW)
    assert "nothing to write" in text


def test_a_candidate_whose_pods_are_ready_gets_the_live_gate(manifest, write):
    resource = held(gemmaserve())
    revision = Revision.of(GemmaServeSpec.model_validate(resource["spec"]))
    record = record_json(ParserRecord(parser="gemma4_atomic", passed=61, failed=0, total=61))
    verified = VerifiedRevision(revision, "sha256:" + "a" * 64, record)
    owner = Owner("gemma4", "default", "uid-1")
    deployment = build_deployment(owner, verified, replicas=1, progress_deadline_seconds=3600)
    deployment["status"] = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
    service = build_revision_service(owner, verified)
    name = service["metadata"]["name"]
    labels = service["metadata"]["labels"] | {names.LABEL_SERVICE_NAME: name}
    pieces = {"kind": "EndpointSlice", "metadata": {"name": f"{name}-x", "labels": labels}}
    pieces |= {"endpoints": [{"conditions": {"ready": True}}]}
    state = write("state.yaml", resource, held(deployment, uid="d"), held(service, uid="s"), held(pieces, uid="e"))
    text = show_plans(manifest, state, output="text", now=NOW)
    assert f"1. create Job {name}-live" in text
    assert "LiveVerified=Unknown LiveCheckRunning" in text


def test_a_changed_spec_is_planned_for_what_is_there(manifest, write):
    state = write("state.yaml", held(gemmaserve(replicas=3)))
    (document,) = yaml.safe_load_all(show_plans(manifest, state, output="yaml", now=NOW))
    (owner,) = document["writes"][0]["apply"]["metadata"]["ownerReferences"]
    assert owner["uid"] == "uid-1"
    assert document["status"]["observedGeneration"] == 2


def test_strangers_objects_are_seen(manifest, write):
    stranger = held(child(SERVICE, "gemma4", owner_uid="theirs"), uid="service")
    state = write("state.yaml", held(gemmaserve()), stranger)
    assert "NameConflict: Service gemma4 exists" in show_plans(manifest, state, output="text", now=NOW)


def test_gates_that_run_count(manifest, write):
    gates = []
    for number in range(10):
        gate = held(child(JOB, f"gate-{number}", owner="other"), uid=f"u{number}")
        gate["metadata"]["labels"] = gate["metadata"]["labels"] | {names.LABEL_COMPONENT: names.COMPONENT_GATE}
        gates.append(gate)
    text = show_plans(manifest, write("state.yaml", *gates), output="text", now=NOW)
    assert "WaitingForGateSlot" in text
    assert "looked at again in 5 s" in text


def test_several_resources_get_a_plan_each(write):
    file = write("two.yaml", gemmaserve("a"), gemmaserve("b"))
    assert show_plans(file, None, output="text", now=NOW).count("Verifying") == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no GemmaServe"),
        ("kind: Service\nmetadata: {name: a}", "holds no GemmaServe"),
        ("just words", "not a Kubernetes object"),
        ("kind: GemmaServe\nmetadata: {}", "no metadata.name"),
        ("a: [", "cannot read"),
    ],
)
def test_files_that_are_none(tmp_path, text, words):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        show_plans(path, None, output="text", now=NOW)


def run(*arguments, stdin=""):
    command = [sys.executable, "-m", "gemmaserve_operator", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)


def test_from_stdin_on_the_command_line(manifest):
    done = run("plan", "-f", "-", stdin=Path(manifest).read_text())
    assert done.returncode == 0, done.stderr
    assert "create Job" in done.stdout


def test_mistakes_are_one_line_and_exit_2(tmp_path):
    done = run("plan", "-f", str(tmp_path / "none.yaml"))
    assert done.returncode == 2
    assert done.stderr.startswith("gemmaserve-operator: cannot read")
    assert len(done.stderr.splitlines()) == 1
