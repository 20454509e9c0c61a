"""A stand-in for the kubelet's part with the operator's own pod: it starts the process again when it has ended."""

import threading
from collections.abc import Callable

from tests.contract.operator_process import OperatorProcess

FIRST_BACKOFF = 0.5
MAX_BACKOFF = 4.0
"""A kubelet waits 10 s the first time, twice as long each time, and at most five minutes."""


class Supervisor:
    """Runs the operator until stopped, in a thread of its own.

    Attributes:
        restarts: How often it has started it again.
        exit_codes: With what it had ended.
        process: The one that runs, or has run last.
        starts: How often it was started.
    """

    def __init__(self, start: Callable[[], OperatorProcess]):
        self._start = start
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self.exit_codes: list[int] = []
        self.process = start()
        self.starts = 1

    @property
    def restarts(self) -> int:
        return len(self.exit_codes)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(30)
        self.process.stop()

    def _run(self):
        backoff = FIRST_BACKOFF
        while not self._stop.wait(0.05):
            code = self.process.exit_code
            if code is None:
                continue
            self.exit_codes.append(code)
            if self._stop.wait(backoff):
                return
            backoff = min(MAX_BACKOFF, 2 * backoff)
            self.process = self._start()
            self.starts += 1
