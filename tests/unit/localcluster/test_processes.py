"""Processes are known again by id and start time, and ended for sure."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.controlplane import Component
from localcluster.errors import ClusterError
from localcluster.launcher import Launcher, recorded
from localcluster.processes import Process, only_child, start, tail


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Process]:
    process = Process.of(start(["sleep", "60"], tmp_path / "log", os.environ))
    assert process
    yield process
    process.stop(grace=0)


def quiet(line: str) -> None:
    """Progress that nobody reads."""


class TestProcess:
    def test_it_outlives_its_starters_session(self, running: Process) -> None:
        assert os.getsid(running.pid) == running.pid

    def test_another_process_of_the_same_id_is_not_it(self, running: Process) -> None:
        assert running.alive()
        assert not Process(running.pid, running.started - 1).alive()

    def test_stop_does_not_touch_another_process_of_the_same_id(self, running: Process) -> None:
        Process(running.pid, running.started - 1).stop(grace=0)
        assert running.alive()

    def test_what_has_ended_but_is_not_reaped_does_not_run(self, running: Process) -> None:
        os.kill(running.pid, signal.SIGKILL)
        os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)  # ended; still in the table
        assert not running.alive()
        assert Process.of(running.pid) is None

    def test_stop_ends_what_ignores_sigterm(self, tmp_path: Path) -> None:
        command = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"]
        stubborn = Process.of(start(command, tmp_path / "log", os.environ))
        assert stubborn
        deadline = time.monotonic() + 10
        while not tail(tmp_path / "log") and time.monotonic() < deadline:
            time.sleep(0.02)
        stubborn.stop(grace=0.2)
        assert not stubborn.alive()

    def test_a_record_is_read_back(self, running: Process, tmp_path: Path) -> None:
        running.save(tmp_path / "record.json")
        assert Process.load(tmp_path / "record.json") == running

    @pytest.mark.parametrize("content", ["", '{"pid": 1', "[]", '{"pid": 1}', '{"id": 1, "started": 2}'])
    def test_a_record_that_is_broken_counts_as_none(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "record.json").write_text(content)
        assert Process.load(tmp_path / "record.json") is None
        assert Process.load(tmp_path / "none.json") is None

    def test_names_with_spaces_and_parentheses_are_read(self, tmp_path: Path) -> None:
        program = tmp_path / "a) R 1 (b"
        program.write_bytes(Path("/bin/sleep").read_bytes())
        program.chmod(0o755)
        process = Process.of(start([str(program), "60"], tmp_path / "log", os.environ))
        assert process
        assert process.alive()
        process.stop(grace=0)

    def test_the_only_child(self, tmp_path: Path) -> None:
        parent = start(["sh", "-c", "sleep 60; true"], tmp_path / "log", os.environ)
        child = only_child(parent)
        assert child
        assert f"PPid:\t{parent}\n" in Path(f"/proc/{child.pid}/status").read_text()
        child.stop(grace=0)
        ended = Process.of(parent)
        if ended:
            ended.stop(grace=0)

    def test_no_child_of_what_ends_at_once(self, tmp_path: Path) -> None:
        assert only_child(start(["true"], tmp_path / "log", os.environ)) is None


class TestLauncher:
    @pytest.fixture
    def launcher(self, tmp_path: Path) -> Iterator[Launcher]:
        yield Launcher(tmp_path, quiet)
        for process in recorded(tmp_path).values():
            process.stop(grace=0)

    def test_only_what_does_not_run_is_started(self, launcher: Launcher) -> None:
        one, two = (Component(name, ("sleep", "60")) for name in ("one", "two"))
        assert launcher.ensure([one]) == ["one"]
        assert launcher.ensure([one, two]) == ["two"]
        recorded(launcher.folder)["one"].stop(grace=0)
        assert launcher.ensure([one, two]) == ["one"]

    def test_the_end_of_a_program_ends_the_wait_with_its_log(self, launcher: Launcher) -> None:
        launcher.ensure([Component("failing", ("sh", "-c", "sleep 0.3; echo cannot bind >&2; exit 1"))])
        with pytest.raises(ClusterError, match=r"(?s)failing ended while waiting for a miracle.*failing\.log.*bind"):
            launcher.wait("a miracle", lambda: False, "failing", timeout=30)

    def test_a_wait_is_bounded(self, launcher: Launcher) -> None:
        launcher.ensure([Component("idle", ("sh", "-c", "echo still thinking; sleep 60"))])
        with pytest.raises(ClusterError, match=r"(?s)no miracle after 1 s.*still thinking"):
            launcher.wait("miracle", lambda: False, "idle", timeout=1)
