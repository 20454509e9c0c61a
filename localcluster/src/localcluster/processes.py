"""Processes that outlive the command that started them, known again by their id and start time."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from localcluster.errors import ClusterError

_PAUSE = 0.05
_PF_EXITING = 0x4
"""Of the kernel's include/linux/sched.h."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that ran at some time.

    Attributes:
        pid: Its id as this process sees it.
        started: Clock ticks from boot to its start, by which a later process of the same id is told apart.
    """

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        """The process that has that id now; None if there is none, or only what its parent has not yet reaped."""
        started = start_time(pid)
        return None if started is None else cls(pid, started)

    @classmethod
    def load(cls, record: Path) -> "Process | None":
        """What `save` wrote; None if there is no such file, or half of one."""
        try:
            return cls(**json.loads(record.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def save(self, record: Path) -> None:
        """Write it down, whole or not at all."""
        new = record.with_suffix(".new")
        new.write_text(json.dumps(asdict(self)))
        new.replace(record)

    def alive(self) -> bool:
        """Whether that very process still runs, and is not about to end."""
        stat = _stat(self.pid)
        return bool(stat) and int(stat[19]) == self.started and not int(stat[6]) & _PF_EXITING

    def gone(self) -> bool:
        """Whether nothing is left of it: a process that is ending may still hold ports, and namespaces for long."""
        return start_time(self.pid) != self.started

    def stop(self, grace: float = 5.0, timeout: float = 30.0) -> None:
        """End it and wait until it is gone: SIGTERM, and SIGKILL after `grace` seconds (0: at once).

        Raises:
            ClusterError: it was still there `timeout` seconds after SIGKILL.
        """
        for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, timeout)):
            if seconds and not self.gone():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
                self._wait(seconds)
        if not self.gone():
            raise ClusterError(f"process {self.pid} is still there {timeout:.0f} s after SIGKILL; see `ps {self.pid}`")

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.gone() and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)


def start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of a process; None if there is none, or only what is not yet reaped."""
    stat = _stat(pid)
    return int(stat[19]) if stat else None


def _stat(pid: int) -> list[str]:
    """What proc_pid_stat(5) tells of a process from its third field, the state, on; empty if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    # The name, in parentheses, may itself hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return [] if fields[0] in {"Z", "X"} else fields


def start(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
    """Start a command in a session of its own, its output added to `log`; the id of the process.

    posix_spawn, not subprocess: nobody here waits for the process, and a Popen object would complain of that.
    """
    output = (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    return os.posix_spawnp(
        command[0],
        list(command),
        dict(environment),
        file_actions=[nothing, output, (os.POSIX_SPAWN_DUP2, 1, 2)],
        setsid=True,
    )


def only_child(pid: int, timeout: float = 5.0) -> Process | None:
    """The child of a process that has just been started and forks once; None if it ended without a child."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and start_time(pid) is not None:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if children:
                return Process.of(int(children[0]))
        time.sleep(_PAUSE / 5)
    return None


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log; empty if there is none."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
