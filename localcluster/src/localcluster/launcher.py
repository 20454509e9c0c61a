"""Starts a cluster's programs, keeps account of them, and waits until they do their work."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localcluster.controlplane import Component
from localcluster.errors import ClusterError, ProgramEndedError
from localcluster.packages import SYSTEM_PATH
from localcluster.paths import Report
from localcluster.processes import Process, only_child, start, tail

_PAUSE = 0.1
_SECONDS_BETWEEN_LINES = 15.0


def records_dir(folder: Path) -> Path:
    """One file a program that was started: its process."""
    return folder / "processes"


def recorded(folder: Path) -> dict[str, Process]:
    """The programs that were started, by name; whether they still run is for `Process.alive` to say."""
    processes = {record.stem: Process.load(record) for record in sorted(records_dir(folder).glob("*.json"))}
    return {name: process for name, process in processes.items() if process}


@dataclass(slots=True)
class Launcher:
    """Starts programs of one cluster.

    Attributes:
        folder: Of the cluster.
        report: Takes lines of progress.
        enter: A command that runs what follows it in the node's namespaces, as its only child; empty without a node.
    """

    folder: Path
    report: Report
    enter: Sequence[str] = ()
    _watched: dict[str, Process] = field(default_factory=dict)

    def log(self, name: str) -> Path:
        """Where a program writes what it has to say."""
        return self.folder / "logs" / f"{name}.log"

    def ensure(self, components: Iterable[Component]) -> list[str]:
        """Start the components that do not run; their names."""
        started = []
        for component in components:
            record = records_dir(self.folder) / f"{component.name}.json"
            process = Process.load(record)
            if process is None or not process.alive():
                if process:
                    process.stop(grace=0)  # until it is gone: its ports are needed
                process = self._start(component)
                process.save(record)
                started.append(component.name)
            self._watched[component.name] = process
        return started

    def _start(self, component: Component) -> Process:
        log = self.log(component.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        records_dir(self.folder).mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"}
        pid = start([*self.enter, *component.command], log, environment)
        process = only_child(pid) if self.enter else Process.of(pid)
        if process is None:
            raise ProgramEndedError(self._failure(component.name, "ended as soon as it was started"))
        return process

    def _failure(self, name: str, what: str) -> str:
        return f"{name} {what}. The end of {self.log(name)}:\n{tail(self.log(name))}"

    def wait(self, what: str, condition: Callable[[], bool], suspect: str, timeout: float = 120.0) -> None:
        """Wait until `condition` holds; `suspect` is the program whose log tells why it does not.

        Raises:
            ProgramEndedError: a program that was started has ended.
            ClusterError: `timeout` seconds have passed.
        """
        begin = line = time.monotonic()
        while not condition():
            for name, process in self._watched.items():
                if not process.alive():
                    raise ProgramEndedError(self._failure(name, f"ended while waiting for {what}"))
            now = time.monotonic()
            if now - begin > timeout:
                why = f"is the likely reason that there is no {what} after {timeout:.0f} s"
                raise ClusterError(self._failure(suspect, why))
            if now - line > _SECONDS_BETWEEN_LINES:
                line = now
                self.report(f"  waiting for {what}, {now - begin:.0f} s")
            time.sleep(_PAUSE)
