"""A proxy in front of the real API server that does to requests and watches what a fault says.

Plain HTTP on the loopback in front, TLS with the cluster's certificates behind; who asks is who asked.
"""

import asyncio
import base64
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from .faults import EndWatchError, Fault, HangUpError, Seen

_HOP = {"host", "connection", "accept-encoding", "content-length", "transfer-encoding"}


@dataclass(frozen=True)
class Entry:
    """One request that has come to the proxy."""

    at: float
    """By the monotonic clock."""
    seen: Seen
    status: int
    """What was answered; 0 when nothing was."""
    carried_out: bool
    """Whether the API server has answered it with success, whatever the client was told."""


@dataclass(eq=False)
class _Watch:
    timeout: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))


class FaultProxy:
    """Runs in a thread of its own until stopped. `log` holds every request; `url` is where it listens."""

    def __init__(self, kubeconfig: Path):
        cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
        self._server = cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)
        self._fault = Fault()
        self._watches: set[_Watch] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._port = 0
        self.log: list[Entry] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self):
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *_):
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @contextmanager
    def fault(self, fault: Fault):
        """Let a fault happen for as long as the body runs."""
        self._call(self._change(fault))
        try:
            yield
        finally:
            self._call(self._change(Fault()))

    def writes(self, since: float = 0.0) -> list[Entry]:
        """What was tried to write; the lease and its renewals are no writes of the operator's work."""
        return [e for e in self.log if e.at >= since and e.seen.writes and "/leases" not in e.seen.path]

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _start(self):
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector,
            skip_auto_headers=["Accept-Encoding", "User-Agent"],
            timeout=aiohttp.ClientTimeout(total=None),
        )
        application = web.Application(client_max_size=2**26)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            application, handle_signals=False, handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await self._listen()

    async def _listen(self):
        self._site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await self._site.start()
        self._port = self._site._server.sockets[0].getsockname()[1]

    async def _stop(self):
        await self._runner.cleanup()
        await self._session.close()

    async def _change(self, fault: Fault):
        before, self._fault = self._fault, fault
        if before.listens and not fault.listens:
            await self._site.stop()
            for connection in self._runner.server.connections:
                connection.force_close()
        elif fault.listens and not before.listens:
            await self._listen()
        for watch in self._watches:
            if not watch.timeout.expired():
                self._limit(watch)

    def _limit(self, watch: _Watch):
        seconds = self._fault.watch_seconds
        watch.timeout.reschedule(None if seconds is None else self._loop.time() + seconds)

    async def _handle(self, request: web.Request):
        body = await request.read()
        seen = Seen(request.method, request.path, dict(request.query))
        at, fault = time.monotonic(), self._fault
        status, carried_out = 0, False
        try:
            answer = await fault.before(seen)
            if answer is None:
                async with self._ask(request, body) as upstream:
                    carried_out = upstream.status < 400
                    if seen.watches and carried_out:
                        status = upstream.status
                        return await self._stream(request, seen, upstream)
                    answer = await self._pass_on(fault, seen, upstream)
            status = answer.status
        except (HangUpError, aiohttp.ClientError):
            # The API server itself may be away too.
            request.transport.abort()
            return web.Response(status=502)
        else:
            return answer
        finally:
            self.log.append(Entry(at, seen, status, carried_out))

    def _ask(self, request: web.Request, body: bytes):
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP}
        url = f"{self._server}{request.raw_path}"
        return self._session.request(request.method, url, headers=headers, data=body or None)

    async def _pass_on(self, fault: Fault, seen: Seen, upstream: aiohttp.ClientResponse) -> web.Response:
        body = await upstream.read()
        body = await fault.after(seen, upstream.status, body)
        return web.Response(status=upstream.status, body=body, headers=_kept(upstream.headers))

    async def _stream(self, request: web.Request, seen: Seen, upstream: aiohttp.ClientResponse):
        response = web.StreamResponse(status=upstream.status, headers=_kept(upstream.headers))
        await response.prepare(request)
        watch = _Watch()
        self._watches.add(watch)
        try:
            async with watch.timeout:
                self._limit(watch)
                async for line in _lines(upstream.content):
                    for told in self._fault.event(seen, line):
                        await response.write(told)
        except TimeoutError:
            await response.write(self._fault.last_words)
        except EndWatchError as end:
            await response.write(end.last_words)
        except (aiohttp.ClientError, ConnectionError):
            request.transport.abort()
        finally:
            self._watches.discard(watch)
        return response


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key.lower() in ("content-type", "retry-after")}


async def _lines(content: aiohttp.StreamReader):
    """Whole lines, however long."""
    held = b""
    async for chunk in content.iter_any():
        *lines, held = (held + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
