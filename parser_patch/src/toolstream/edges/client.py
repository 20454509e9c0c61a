"""One request over HTTP, whatever the server does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
from yarl import URL

from toolstream.core.exchange import PATHS, Chunk, Endpoint, Exchange, Trouble
from toolstream.core.sse import LineTooLong, SseDecoder

if TYPE_CHECKING:
    from types import TracebackType

SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes of one answer; an endless stream ends here if its time has not run out."""

CHUNK_LIMIT = 100_000
"""Events of one answer: a stream of empty events costs memory, too."""

_CONNECT_SECONDS = 30.0


@dataclass(frozen=True)
class Server:
    """The server under test.

    Attributes:
        url: As the user gave it, with or without `/v1`; nothing else is ever contacted, redirects are not followed.
        api_key: Sent as a bearer token and as `x-api-key`; None for none.
    """

    url: str
    api_key: str | None = None

    def path(self, path: str) -> URL:
        """The URL of an endpoint.

        Raises:
            ValueError: The URL is not an http(s) URL.
        """
        base = URL(self.url.rstrip("/").removesuffix("/v1"))
        if base.scheme not in {"http", "https"} or not base.host:
            raise ValueError(f"{self.url!r} is not a server's URL; write it like http://localhost:8000")
        return base.with_path(base.path.rstrip("/") + path)

    @property
    def headers(self) -> Mapping[str, str]:
        """What every request carries."""
        key = {"authorization": f"Bearer {self.api_key}", "x-api-key": self.api_key} if self.api_key else {}
        return {"accept-encoding": "identity", "anthropic-version": "2023-06-01", **key}


def new_connector() -> aiohttp.TCPConnector:
    """Any number of connections, one for each request.

    A server may close an idle connection just when the next request is sent on it (vLLM does so after 5 s). That is no
    fault of its answers, and must not be told as one.
    """
    return aiohttp.TCPConnector(limit=0, force_close=True)


class Received:
    """What has come so far: kept outside the reading task, so that a time-out keeps it.

    Args:
        streaming: Whether a stream was asked for.
    """

    def __init__(self, *, streaming: bool) -> None:
        self.started = time.perf_counter()
        self.streaming = streaming
        self.status: int | None = None
        self.content_type = ""
        self.chunks: list[Chunk] = []
        self.body = bytearray()
        self.size = 0
        self.decoder = SseDecoder()

    def begin(self, response: aiohttp.ClientResponse) -> None:
        """Note the head of the answer."""
        self.status = response.status
        self.content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()

    def add(self, data: bytes) -> None:
        """Take in what came.

        Raises:
            LineTooLong: A line that no client would hold.
        """
        self.size += len(data)
        if not (self.streaming and self.content_type == "text/event-stream"):
            self.body += data
            return
        for event in self.decoder.feed(data):
            self.chunks.append(Chunk(event.data, self._seconds, event.name))

    @property
    def full(self) -> bool:
        """Whether more than one answer may bring has come."""
        return self.size > SIZE_LIMIT or len(self.chunks) > CHUNK_LIMIT

    def exchange(self, endpoint: Endpoint, trouble: Trouble | None, detail: str) -> Exchange:
        """What came, as a value."""
        chunks: list[Chunk] = [*self.chunks]
        if self.body:
            chunks = [Chunk(self.body.decode(errors="replace"), self._seconds)]
        elif trouble is None and self.size and not self.decoder.recognised:
            trouble, detail = "unreadable", f"{self.size} bytes that are no server-sent events"
        return Exchange(
            endpoint,
            self.streaming,
            self.status,
            self.content_type,
            chunks,
            self._seconds,
            self.decoder.unfinished,
            trouble,
            detail,
        )

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self.started


class Client:
    """Sends requests and brings back exchanges.

    Args:
        server: Where to.
        timeout: Seconds that one request may take in all.

    Used as an async context manager. One client may have any number of requests under way.
    """

    def __init__(self, server: Server, *, timeout: float) -> None:
        self._server = server
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:  # noqa: PYI034  (Self is not in Python 3.10)
        self._session = aiohttp.ClientSession(
            connector=new_connector(),
            headers=self._server.headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._opened.close()

    async def send(self, endpoint: Endpoint, body: Mapping[str, Any]) -> Exchange:
        """Send one request and wait for its end, its trouble or its time-out."""
        received = Received(streaming=bool(body.get("stream")))
        reading = asyncio.ensure_future(self._read(PATHS[endpoint], body, received))
        try:
            await asyncio.wait({reading}, timeout=self._timeout)
        finally:
            in_time = reading.done()
            reading.cancel()
        if not in_time:
            await asyncio.wait({reading})
            return received.exchange(endpoint, "timeout", f"not finished after {self._timeout:g} s")
        return received.exchange(endpoint, *_trouble(reading))

    async def get_json(self, path: str) -> Any:  # noqa: ANN401  (any JSON value)
        """The JSON of a small GET, such as `/v1/models`; None where the server has none to give."""
        return await self._small("GET", path, None)

    async def post_json(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401  (any JSON value)
        """The JSON of a small POST, such as `/detokenize`; None where the server has none to give."""
        return await self._small("POST", path, body)

    async def _small(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
        small = aiohttp.ClientTimeout(total=min(self._timeout, _CONNECT_SECONDS))
        try:
            async with self._opened.request(
                method, self._server.path(path), json=body, timeout=small, allow_redirects=False
            ) as response:
                if response.status != 200:
                    return None
                return await response.json(content_type=None)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError):  # noqa: UP041  (two types in 3.10)
            return None

    @property
    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is used outside its context")
        return self._session

    async def _read(self, path: str, body: Mapping[str, Any], received: Received) -> None:
        async with self._opened.post(self._server.path(path), json=body, allow_redirects=False) as response:
            received.begin(response)
            async for data in response.content.iter_any():
                received.add(data)
                if received.full:
                    raise _TooMuch(f"stopped after {received.size} bytes and {len(received.chunks)} events")


class _TooMuch(Exception):  # noqa: N818  (private, a state)
    pass


def _trouble(reading: asyncio.Future[None]) -> tuple[Trouble | None, str]:
    """What ended a finished reading: nothing, or a trouble and its words."""
    if reading.cancelled():
        return "disconnect", "cancelled"
    error = reading.exception()
    if error is None:
        return None, ""
    detail = f"{type(error).__name__}: {error}".removeprefix("_TooMuch: ")
    if isinstance(error, _TooMuch):
        return "timeout", detail
    if isinstance(error, (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError)):
        return "disconnect", detail
    if isinstance(error, (aiohttp.ClientError, LineTooLong, ValueError)):
        return "unreadable", detail
    if isinstance(error, asyncio.TimeoutError):
        return "timeout", detail
    raise error
