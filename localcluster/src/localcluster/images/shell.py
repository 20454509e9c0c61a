"""Long commands run quietly: a line when they start, a sign of life while they run, their output only if they fail."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from localcluster.errors import ClusterError
from localcluster.paths import cache_dir
from localcluster.tools import say

HEARTBEAT_SECONDS = 15
LAST_LINES = 200


class CommandError(ClusterError):
    """A command failed; the message holds the end of what it printed and the file with all of it."""


def image_cache() -> Path:
    """Where logs and build contexts are kept; made if it is not there."""
    directory = cache_dir() / "images"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def run_logged(
    command: Sequence[str | Path], *, what: str, log: Path, env: Mapping[str, str] | None = None, timeout: float = 1800
) -> None:
    """Run `command`, its output going to `log`; `what` names it on screen.

    Args:
        command: the program and its arguments.
        what: for people, as in "base image: installing vLLM".
        log: the file for standard output and error.
        env: variables added to this process's own.
        timeout: seconds after which the command is ended.

    Raises:
        CommandError: it failed or took too long.
    """
    say(f"  {what} ...")
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
        try:
            _wait(process, what=what, log=log, deadline=started + timeout)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=30)
    if process.returncode:
        raise CommandError(f"{what} failed (exit {process.returncode}); {log} ends:\n{_tail(log)}")
    say(f"  {what}: {time.monotonic() - started:.0f} s")


def _wait(process: subprocess.Popen[bytes], *, what: str, log: Path, deadline: float) -> None:
    started = time.monotonic()
    while time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=HEARTBEAT_SECONDS)
            return
        say(f"    {time.monotonic() - started:.0f} s: {_last_line(log)}")
    raise CommandError(f"{what} took longer than it may; {log} ends:\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:])


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in _tail(log).replace("\r", "\n").splitlines() if line.strip()]
    return lines[-1][:100] if lines else "running"
