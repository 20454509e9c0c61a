"""`kubectl gemmaserve` as a user runs it: by kubectl, against a real API server."""

import itertools
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import CONTROLLER_REVISION, DEPLOYMENT, POD
from localcluster import program

from .fake_kubelet import failed_report
from .kube import REPOSITORY, eventually

SECRET = "correct-horse-battery-staple"
BAD = {"repository": REPOSITORY, "digest": "sha256:" + "9" * 64}


@pytest.fixture
def run(cluster, installed, resource, tmp_path):
    """Run `kubectl gemmaserve ...` in the resource's namespace; the finished process."""
    path = os.pathsep.join((str(program("kubectl").parent), str(Path(sys.executable).parent), os.environ["PATH"]))
    env = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "PATH": path, "COLUMNS": "200"}

    def invoke(*arguments, check=True, where=("--namespace", resource.namespace)):
        command = ["kubectl", "gemmaserve", *arguments, *where]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done

    invoke.env = env
    return invoke


def test_kubectl_knows_it(run):
    listed = subprocess.run(["kubectl", "plugin", "list"], env=run.env, capture_output=True, text=True, check=False)
    assert "kubectl-gemmaserve" in listed.stdout


def test_status(operator, run, resource, show_log):
    resource.create().until_ready()
    shown = run("status", "gemma4").stdout
    assert f"gemma4 in {resource.namespace}: Serving" in shown
    assert "Waits for: nothing" in shown
    assert "61/61" in shown
    assert all(pod["metadata"]["name"] in shown for pod in resource.of(POD))
    assert run("status").stdout.splitlines()[1].split() == ["gemma4", "Serving", "1/1", "nothing"]
    assert resource.namespace in run("status", "--all-namespaces", where=()).stdout


def test_watching_into_a_pipe_writes_a_line_for_each_change(operator, run, resource, tmp_path, show_log):
    path = tmp_path / "watched"
    resource.create()
    command = ["kubectl", "gemmaserve", "status", "--watch", "--namespace", resource.namespace]
    with path.open("w") as output, subprocess.Popen(command, env=run.env, stdout=output) as watching:
        try:
            eventually(lambda: "gemma4 Serving: nothing" in path.read_text(), "it serves", 90, show=path.read_text)
            resource.edit(rollout={"paused": True}, engine={"maxModelLen": 1})
            eventually(lambda: ": Paused: " in path.read_text(), "it is paused", show=path.read_text)
        finally:
            watching.terminate()
    told = [line.split(maxsplit=1)[1] for line in path.read_text().splitlines()]
    assert all(one != other for one, other in itertools.pairwise(told))


def test_history_and_undo(operator, run, kube, resource, show_log):
    resource.create(engine={"maxModelLen": 1}).until_ready()
    first = resource.status["activeRevision"]["name"]
    resource.edit(engine={"maxModelLen": 2, "args": ["--enforce-eager"]}, replicas=2)
    resource.until_ready(90)
    second = resource.status["activeRevision"]["name"]
    record = names.revision_name("gemma4", first)
    eventually(lambda: kube.get(CONTROLLER_REVISION, resource.namespace, record), "the old revision is recorded", 60)
    eventually(lambda: len(resource.of(DEPLOYMENT)) == 1, "and gone", 60)

    rows = {row.split()[0]: row.split() for row in run("history", "gemma4").stdout.splitlines()[1:]}
    assert rows[second][1] == "Active"
    assert rows[first][1:4] == ["Replaced", "UpToDate", "61/61"]
    assert rows[first][6] == "yes"

    assert f"would go back to revision {first}: spec.engine" in run("undo", "gemma4", "--dry-run").stderr
    assert resource.object["spec"]["engine"]["maxModelLen"] == 2
    run("undo", "gemma4")
    resource.until_ready(90)
    assert resource.status["activeRevision"]["name"] == first
    assert resource.object["spec"]["engine"]["maxModelLen"] == 1
    assert not resource.object["spec"]["engine"].get("args")
    assert resource.object["spec"]["replicas"] == 2

    # A revision that comes back and leaves again is recorded anew; the data of the record cannot change, and need not.
    before = kube.get(CONTROLLER_REVISION, resource.namespace, record)["revision"]
    run("undo", "gemma4", "--to", second[:5])
    resource.until_ready(90)
    assert resource.status["activeRevision"]["name"] == second
    eventually(
        lambda: kube.get(CONTROLLER_REVISION, resource.namespace, record)["revision"] > before,
        "it is recorded anew",
        60,
    )


def test_undo_ends_a_rollout_that_has_failed_and_retry_tries_it_again(operator, kubelet, run, resource, show_log):
    kubelet.reports[f"{REPOSITORY}@{BAD['digest']}"] = failed_report("mega_delta_with_all_tools_in_one_chunk")
    resource.create().until_ready()
    active, endpoints = resource.status["activeRevision"]["name"], resource.endpoints()
    resource.edit(image=BAD)

    def failed(revision=None):
        candidate = resource.status.get("candidateRevision") or {}
        return resource.condition("ParserVerified").get("status") == "False" and candidate.get("name") != revision

    eventually(failed, "the gate has failed")
    shown = run("status", "gemma4").stdout
    assert "Trouble: ParserRegressionsFailed" in shown
    assert "mega_delta_with_all_tools_in_one_chunk" in shown

    candidate = resource.status["candidateRevision"]["name"]
    run("retry", "gemma4")
    eventually(lambda: failed(candidate), "another attempt has failed, too")

    run("undo", "gemma4")
    resource.until_ready()
    assert resource.status["activeRevision"]["name"] == active
    assert resource.endpoints() == endpoints


def test_pause_and_resume(operator, run, resource, show_log):
    resource.create().until_ready()
    run("pause", "gemma4")
    resource.edit(engine={"maxModelLen": 1})
    eventually(lambda: resource.condition("Progressing").get("reason") == "Paused", "it is paused")
    assert "Waits for: Paused" in run("status", "gemma4").stdout
    run("resume", "gemma4")
    resource.until_ready(90)


def test_diagnose_holds_what_helps_and_no_secret(operator, run, cluster, resource, tmp_path, show_log):
    cluster.kubectl(
        "create", "secret", "generic", "hf-token", f"--from-literal=token={SECRET}", "-n", resource.namespace
    )
    resource.create(
        model={"uri": "hf://google/gemma-4-31b-it", "tokenSecretRef": {"name": "hf-token"}},
        engine={"env": [{"name": "MY_KEY", "value": SECRET}], "args": [f"--api-key={SECRET}"]},
    ).until_ready()
    # As kubectl does it: the annotation holds the whole resource once more.
    cluster.kubectl("label", "gs", "gemma4", "team=a", "-n", resource.namespace)
    done = run("diagnose", "gemma4", "--output", "found.tar.gz")
    assert done.stdout == "found.tar.gz\n"
    with tarfile.open(tmp_path / "found.tar.gz") as archive:
        files = {member.name: archive.extractfile(member).read().decode() for member in archive.getmembers()}
    expected = {"SUMMARY.txt", "resource.yaml", "children.yaml", "events.txt", "termination-messages.txt", "nodes.yaml"}
    assert {f"found/{name}" for name in expected} <= set(files)
    assert "ParserRegressionsPassed" in files["found/events.txt"]
    assert (
        "kind: ControllerRevision" in files["found/children.yaml"] or "kind: Deployment" in files["found/children.yaml"]
    )
    assert "hf-token" in files["found/resource.yaml"], "the name of a Secret is none"
    for name, text in files.items():
        assert SECRET not in text, name
    assert files["found/SUMMARY.txt"].strip() in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("status", "nothing"), 1, "kubectl get gs --all-namespaces lists all"),
        (("undo", "nothing"), 1, '"nothing" not found'),
        (("undo",), 2, "NAME"),
        (("status", "x", "--context", "nowhere"), 1, "nowhere"),
        (("status", "x", "--kubeconfig", "/nowhere"), 1, "/nowhere"),
    ],
)
def test_failures_say_what_to_do(run, arguments, code, words):
    done = run(*arguments, check=False)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_kubectl_completes_commands(run):
    command = ["kubectl", "__complete", "gemmaserve", "un"]
    done = subprocess.run(command, env=run.env, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0].startswith("undo")
