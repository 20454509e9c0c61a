"""The operator as a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).parent
_FLAGS = ("--log-format=text", "--metrics-port=0", "--probe-port=0")


class OperatorProcess:
    """Runs until stopped; its log is a file.

    Args:
        kubeconfig: Of the cluster, and as whom.
        log: File to write to.
        flags: Flags of `gemmaserve-operator run`; the last of one name counts.
        crash_after: Die on the spot after so many writes.
        script: A Python file with arguments that runs the operator in a way of its own.
    """

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        *flags: str,
        crash_after: int | None = None,
        script: Sequence[str | Path] | None = None,
    ):
        if crash_after is not None:
            script = [_HERE / "crashing_operator.py", str(crash_after)]
        program = [sys.executable, *(script or ["-m", "gemmaserve_operator", "run"])]
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*program, *_FLAGS, *flags],
                env=os.environ | {"KUBECONFIG": str(kubeconfig)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def exit_code(self):
        """None while it runs."""
        return self._process.poll()

    def signal(self, number: signal.Signals):
        self._process.send_signal(number)

    def wait(self, timeout: float) -> int:
        return self._process.wait(timeout)

    def kill(self):
        self._process.kill()
        self._process.wait(10)

    def stop(self) -> int:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        return self._process.returncode
