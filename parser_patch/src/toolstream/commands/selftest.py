"""`toolstream selftest`: how much can this client do on this machine?"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from toolstream.commands.load import LoadPlan, run_load
from toolstream.core.levels import OK, Level
from toolstream.core.scenarios import ONE_CALL
from toolstream.edges.client import Client, Server
from toolstream.edges.pool import Stop

_START_SECONDS = 20.0
_BURST_CHUNKS = 50
_BURST_CONCURRENCY = 100
_HOLD_CHUNKS = 20
_HOLD_CHUNKS_PER_SECOND = 2000


class Selftest(NamedTuple):
    """What the client managed against a server that is never the bottleneck.

    Attributes:
        streams: Streams that were open at one time, each waiting for all the others.
        whole: How many of them came to their end as `ok`.
        seconds: How long they took.
        cpu_seconds: Of this process, for them.
        requests_per_second: Ceiling with answers of 50 chunks sent at once.
        chunks_per_second: The same in chunks.
        requests_per_cpu_second: The same by the CPU time that this process got: the ceiling when nothing else runs.
    """

    streams: int
    whole: int
    seconds: float
    cpu_seconds: float
    requests_per_second: float
    chunks_per_second: float
    requests_per_cpu_second: float

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return self._asdict()


class NoServer(Exception):  # noqa: N818  (a state of the machine)
    """The selftest's server did not start; the message holds its own words."""


async def run_selftest(streams: int, requests: int, *, stop: Stop, seen: Callable[[Level], None]) -> Selftest:
    """Hold streams open all at one time, then find the ceiling of short answers.

    Args:
        streams: Streams at one time.
        requests: Requests of the second part.
        stop: Ends it early.
        seen: Told of the progress.

    Raises:
        NoServer: The loopback server did not start.
    """
    async with _loopback() as port:
        hold = f"/hold/{streams}/{_HOLD_CHUNKS}/{streams * _HOLD_CHUNKS / _HOLD_CHUNKS_PER_SECOND:g}"
        held, held_cpu = await _level(f"http://127.0.0.1:{port}{hold}", streams, streams, stop, seen)
        url = f"http://127.0.0.1:{port}/burst/{_BURST_CHUNKS}"
        burst, burst_cpu = await _level(url, _BURST_CONCURRENCY, requests, stop, seen)
    return Selftest(
        streams,
        held.outcomes[OK],
        held.seconds,
        held_cpu,
        burst.per_second,
        burst.per_second * (_BURST_CHUNKS + 3),
        burst.done / burst_cpu,
    )


async def _level(
    url: str, concurrency: int, requests: int, stop: Stop, seen: Callable[[Level], None]
) -> tuple[Level, float]:
    """A level's figures, and the CPU seconds that this process spent on it."""
    cpu = time.process_time()
    plan = LoadPlan([concurrency], requests, expected=ONE_CALL.expected)
    async with Client(Server(url), timeout=4 * _START_SECONDS) as client:
        result = await run_load(client, "loopback", plan, stop=stop, seen=seen)
    level = result.levels[0] if result.levels else Level(concurrency, requests)
    return level, time.process_time() - cpu


@contextlib.asynccontextmanager
async def _loopback() -> AsyncIterator[int]:
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "toolstream.edges.loopback", stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        yield await _port(server)
    finally:
        if server.stdin is not None:
            server.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            server.terminate()
        await server.wait()


async def _port(server: asyncio.subprocess.Process) -> int:
    if server.stdout is None or server.stderr is None:
        raise NoServer("the loopback server has no pipes")
    said = asyncio.ensure_future(server.stdout.readline())
    await asyncio.wait({said}, timeout=_START_SECONDS)
    if said.done() and said.result().strip().isdigit():
        return int(said.result())
    said.cancel()
    with contextlib.suppress(ProcessLookupError):
        server.kill()
    raise NoServer(f"the loopback server did not start: {(await server.stderr.read()).decode(errors='replace')[-500:]}")
