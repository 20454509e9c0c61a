"""Waits until a server that is about to stop has no request in flight: the preStop hook of a serving pod.

Standard library only, and no shell: it runs beside the server, in the same container.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EXAMPLES = """examples:
  gemmaserve-parser drain
      wait until the server on port 8000 has answered everything, at most five minutes
  gemmaserve-parser drain --settle 5 --timeout 120
      the same as a preStop hook: five seconds for the cluster to learn that the pod goes, then at most two minutes
"""
POLL_SECONDS = 0.5
QUIET_POLLS = 3
"""So many idle answers in a row: a request counts from when the engine has it to when the engine is done with it, which
is a moment after it came and a moment before its last bytes are sent."""
_ANSWER_SECONDS = 5.0
_IN_FLIGHT = re.compile(r"^vllm:num_requests_(?:running|waiting)(?:\{[^}]*\})? (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Clock:
    """What time it is, and how to wait; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class ServerGone(Exception):  # noqa: N818  (a state of the server)
    """Nothing listens where the server was."""


def in_flight(metrics: str) -> int | None:
    """Requests that run or wait, over all engines of a vLLM server.

    Args:
        metrics: What `/metrics` says.

    Returns:
        None when it does not say (`--disable-log-stats`).
    """
    counts = _IN_FLIGHT.findall(metrics)
    return int(sum(float(count) for count in counts)) if counts else None


def read_in_flight(url: str) -> int | None:
    """Ask a server how many requests it has.

    Args:
        url: As in `http://127.0.0.1:8000`.

    Returns:
        None when it does not say, or not within five seconds.

    Raises:
        ServerGone: Nothing listens there.
    """
    try:
        # No proxy of the environment: the server is in the same container.
        with build_opener(ProxyHandler({})).open(f"{url}/metrics", timeout=_ANSWER_SECONDS) as answer:
            return in_flight(answer.read().decode(errors="replace"))
    except URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            raise ServerGone from None
        return None
    except OSError:
        return None


def drain(read: Callable[[], int | None], *, settle: float, timeout: float, clock: Clock) -> int | None:
    """Wait until nothing is in flight, or time is up.

    Args:
        read: The present number of requests in flight; None when it is not known. May raise `ServerGone`.
        settle: Seconds to wait at first, while new requests may still come.
        timeout: Seconds to wait after that.
        clock: What time it is.

    Returns:
        Requests left when time was up: 0 when none are, None when it is not known.
    """
    clock.sleep(settle)
    end = clock.now() + timeout
    quiet = 0
    while True:
        try:
            left = read()
        except ServerGone:
            return 0
        quiet = quiet + 1 if left == 0 else 0
        if quiet == QUIET_POLLS:
            return 0
        if clock.now() >= end:
            return left
        clock.sleep(POLL_SECONDS)


def main(argv: Sequence[str]) -> int:
    """Run `gemmaserve-parser drain`.

    Returns:
        0: nothing is in flight; 1: time was up before that, which Kubernetes tells in an event.
    """
    options = _parser().parse_args(argv)
    url = f"http://127.0.0.1:{options.port}"
    left = drain(lambda: read_in_flight(url), settle=options.settle, timeout=options.timeout, clock=Clock())
    if left == 0:
        return 0
    what = "the server does not say how many requests it has" if left is None else f"{left} requests in flight"
    sys.stderr.write(f"gemmaserve-parser drain: {what} after {options.timeout:g} s; they are cut off now\n")
    return 1


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 1_000_000:  # also refuses nan
        raise argparse.ArgumentTypeError(f"{text}: seconds, 0 or more")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gemmaserve-parser drain",
        description="Wait until the vLLM server in this container has no request in flight, by its own /metrics.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=8000, help="the server's port (default: 8000)")
    parser.add_argument(
        "--settle",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="first wait so long, while new requests may still come (default: 0)",
    )
    parser.add_argument(
        "--timeout", type=_seconds, default=300.0, metavar="SECONDS", help="then wait at most so long (default: 300)"
    )
    return parser
