"""The commands, on a cluster that answers: what is printed, what is changed, and the exit codes."""

import tarfile

import pytest
from typer.testing import CliRunner

from gemmaserve_operator.plugin import cli

WIDE = {"COLUMNS": "200"}


@pytest.fixture
def run(kubectl):
    def invoke(*arguments):
        return CliRunner().invoke(cli.app, arguments, env=WIDE)

    return invoke


def test_status_tells_revisions_gates_pods_and_what_it_waits_for(run, serving):
    result = run("status", "gemma4")
    assert result.exit_code == 0
    assert "gemma4 in team: Serving" in result.stdout
    assert "http://gemma4.team.svc/v1" in result.stdout
    assert "Waits for: nothing" in result.stdout
    assert "61/61, in 9 s, vLLM 0.32.0" in result.stdout
    assert serving.selected in result.stdout
    for pod in serving.names("Pod"):
        assert pod in result.stdout


def test_what_is_no_terminal_gets_plain_lines_that_are_not_cut(run, serving):
    assert "\x1b" not in run("status", "gemma4").stdout
    assert "r.example/vllm@sha256:" + "a" * 64 in run("status", "gemma4").stdout


def test_status_of_a_rollout_tells_what_it_waits_for(run, serving):
    serving.gpus = 1
    serving.edit(engine={"maxModelLen": 1})
    serving.settle()
    assert "Waits for: InsufficientGPU: Too few free nvidia.com/gpu" in run("status", "gemma4").stdout
    assert "Unschedulable" in run("status", "gemma4").stdout


def test_status_of_a_failed_gate_names_the_test(run, serving, fail_gate):
    fail_gate(serving)
    shown = run("status", "gemma4").stdout
    assert "Trouble: ParserRegressionsFailed" in shown
    assert "✘ failed" in shown
    assert "60/61" in shown
    assert "mega_delta_with_all_tools_in_one_chunk" in shown


def test_status_before_the_operator_has_seen_it(run, serving):
    serving.edit(replicas=2)
    assert "Waits for: NotSeenYet" in run("status", "gemma4").stdout


def test_status_without_a_name_is_a_line_each(run):
    head, line = run("status", "--all-namespaces").stdout.splitlines()
    assert head.split() == ["NAMESPACE", "NAME", "PHASE", "REPLICAS", "WAITS", "FOR"]
    assert line.split() == ["team", "gemma4", "Serving", "1/1", "nothing"]


def test_history_tells_how_revisions_ended_and_which_can_come_back(run, first, rolled):
    head, active, replaced = run("history", "gemma4").stdout.splitlines()
    assert head.split()[:4] == ["REVISION", "OUTCOME", "REASON", "VERIFIED"]
    assert active.split()[:4] == [rolled.selected, "Active", "Serving", "61/61"]
    assert replaced.split()[:4] == [first, "Replaced", "UpToDate", "61/61"]
    assert "yes" in replaced


def test_undo_goes_back_to_the_replaced_revision(run, first, rolled):
    rolled.resource["spec"] |= {"replicas": 2}
    rolled.settle()
    result = run("undo", "gemma4")
    assert result.exit_code == 0
    assert f"goes back to revision {first}: spec.engine" in result.stderr
    assert "status gemma4 --watch" in result.stderr
    assert rolled.settle().selected == first
    assert rolled.resource["spec"]["replicas"] == 2


def test_undo_of_a_rollout_under_way_is_what_serves(run, serving, first, fail_gate):
    fail_gate(serving)
    assert run("undo", "gemma4").exit_code == 0
    serving.settle()
    assert serving.selected == first
    assert serving.condition("Ready")["status"] == "True"


def test_undo_as_a_dry_run_changes_nothing(run, first, rolled):
    before = rolled.resource["metadata"]["generation"]
    assert f"would go back to revision {first}" in run("undo", "gemma4", "--dry-run").stderr
    assert rolled.resource["metadata"]["generation"] == before


def test_undo_to_a_revision_by_its_beginning(run, first, rolled):
    assert run("undo", "gemma4", "--to", first[:4]).exit_code == 0
    assert rolled.settle().selected == first


def test_undo_to_what_there_is_not(run, first, rolled):
    result = run("undo", "gemma4", "--to", "zzzz")
    assert result.exit_code == 1
    assert first in result.stderr


def test_undo_without_a_past(run):
    result = run("undo", "gemma4")
    assert result.exit_code == 1
    assert "no earlier revision" in result.stderr


def test_undo_to_what_is_already_asked_for(run, rolled):
    result = run("undo", "gemma4", "--to", rolled.selected)
    assert (result.exit_code, "nothing to do" in result.stderr) == (0, True)


def test_retry_asks_for_another_attempt_each_time(run, serving, retry_annotation):
    values = set()
    for _ in range(2):
        assert run("retry", "gemma4").exit_code == 0
        values.add(serving.resource["metadata"]["annotations"][retry_annotation])
    assert len(values) == 2


def test_pause_and_resume(run, serving):
    assert run("pause", "gemma4").exit_code == 0
    assert serving.resource["spec"]["rollout"] == {"paused": True}
    assert run("resume", "gemma4").exit_code == 0
    assert serving.resource["spec"]["rollout"] == {"paused": False}


@pytest.mark.parametrize("command", ["status", "history", "undo", "retry", "pause", "resume", "diagnose"])
def test_a_cluster_that_says_no_is_one_message_and_exit_code_1(run, kubectl, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kubectl.refusal = "(Forbidden): you may not"
    result = run(command, "gemma4")
    assert result.exit_code == 1
    assert "kubectl gemmaserve: (Forbidden): you may not" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_wrong_usage_is_exit_code_2(run):
    assert run("undo").exit_code == 2
    assert run("nonsense").exit_code == 2


@pytest.mark.parametrize("command", ["status", "history", "undo", "retry", "pause", "resume", "diagnose"])
def test_help_ends_with_examples(run, command):
    assert f"kubectl gemmaserve {command} gemma4" in run(command, "--help").stdout


def test_diagnose_writes_an_archive_for_its_owner_and_prints_where(run, kubectl, tmp_path):
    path = tmp_path / "found.tar.gz"
    result = run("diagnose", "gemma4", "--output", str(path))
    assert result.exit_code == 0
    assert result.stdout == f"{path}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as archive:
        assert "found/SUMMARY.txt" in archive.getnames()
    assert run("diagnose", "gemma4", "--output", str(path)).exit_code == 1, "it is never overwritten"


@pytest.mark.parametrize(
    ("words", "expected"),
    [([""], {"status", "history", "undo", "retry", "pause", "resume", "diagnose"}), (["re"], {"retry", "resume"})],
)
def test_completion_of_commands(kubectl, capsys, words, expected):
    cli.complete(words)
    *lines, directive = capsys.readouterr().out.splitlines()
    assert {line.partition("\t")[0] for line in lines} == expected
    assert directive == ":4"


@pytest.mark.parametrize(
    ("words", "expected"), [(["undo", "gem"], ["gemma4"]), (["undo", "x"], []), (["a", "b", ""], [])]
)
def test_completion_of_names(kubectl, capsys, words, expected):
    cli.complete(words)
    assert capsys.readouterr().out.splitlines() == [*expected, ":4"]


def test_completion_without_a_cluster_is_silent(kubectl, capsys):
    kubectl.refusal = "no cluster"
    cli.complete(["undo", ""])
    assert capsys.readouterr().out == ":4\n"
