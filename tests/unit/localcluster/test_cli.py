"""The command line, where it needs no cluster."""

import os
from pathlib import Path

import pytest

from localcluster import cli, packages
from localcluster.cluster import Cluster
from localcluster.errors import ClusterError
from localcluster.launcher import records_dir
from localcluster.processes import Process
from localcluster.state import State

pytestmark = pytest.mark.usefixtures("cache")
Capture = pytest.CaptureFixture[str]


def test_down_of_nothing_is_no_error(capsys: Capture) -> None:
    assert cli.main(["down", "--name", "none"]) == 0
    assert "there is no cluster 'none'" in capsys.readouterr().err


def test_env_prints_shell_commands_only(with_node: State, capsys: Capture) -> None:
    with_node.save()
    assert cli.main(["env", "--name", "demo"]) == 0
    output = capsys.readouterr().out.splitlines()
    assert output[0] == f"export KUBECONFIG={with_node.folder / 'kubeconfig'}"
    assert output[1] == 'export PATH=/programs:"$PATH"'


def test_env_of_nothing_names_the_next_step(capsys: Capture) -> None:
    assert cli.main(["env"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "localcluster up" in captured.err


def test_status_tells_what_runs_from_what_does_not(with_node: State, capsys: Capture) -> None:
    with_node.save()
    me = Process.of(os.getpid())
    assert me
    records_dir(with_node.folder).mkdir()
    me.save(records_dir(with_node.folder) / "etcd.json")
    assert cli.main(["status"]) == 0
    Process(me.pid, me.started - 1).save(records_dir(with_node.folder) / "kubelet.json")
    assert cli.main(["status"]) == 1
    rows = {row.split()[1]: row.split()[3] for row in capsys.readouterr().out.splitlines()}
    assert (rows["etcd"], rows["kubelet"]) == ("yes", "no")


def test_status_shows_what_cannot_be_read(with_node: State, capsys: Capture) -> None:
    (with_node.folder / "state.json").write_text("{")
    assert cli.main(["status"]) == 1
    assert "broken: localcluster down --name demo" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "--no-node", "--gpus", "1"], "need a node"),
        (["up", "--no-node", "--name", "No"], "is no name"),
        (["build", "tiller"], "there are: "),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture) -> None:
    assert cli.main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("localcluster: ")
    assert message in error


def test_help_has_examples(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert 'eval "$(localcluster env)"' in capsys.readouterr().out


class TestNeedsOfANode:
    def test_not_root(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(ClusterError, match=r"needs root: .*sudo.*--no-node"):
            packages.ensure_packages(print)

    def test_missing_packages_are_named_with_the_command(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "apt-get").write_text("#!/bin/sh\necho no network >&2\nexit 100\n")
        (tmp_path / "apt-get").chmod(0o755)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(packages, "_PACKAGE_OF", {"no-such-runtime": "containerd", "sh": "dash"})
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        with pytest.raises(ClusterError, match=r"(?s)no network.*apt-get install .*containerd"):
            packages.ensure_packages(lambda line: None)


class TestExisting:
    def test_none_without_kubeconfig(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KUBECONFIG", raising=False)
        assert Cluster.existing() is None

    def test_a_kubeconfig_that_is_not_there_is_said(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
        with pytest.raises(ClusterError, match="which is no file"):
            Cluster.existing()
