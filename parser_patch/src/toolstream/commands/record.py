"""`toolstream proxy-record`: stand between a client and a server, and write what the server says as cases."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from toolstream.core.cases import CaseSource
from toolstream.core.exchange import CHAT, PATHS, Endpoint, Exchange, Trouble
from toolstream.core.outcomes import classify
from toolstream.core.readers import read
from toolstream.core.redact import redact_case
from toolstream.core.sse import LineTooLong
from toolstream.core.strictjson import NotJson, loads
from toolstream.edges.client import Client, Received, Server, new_connector
from toolstream.edges.keeping import append_case, observe_case

_BODY_LIMIT = 64 * 1024 * 1024
_HOP_HEADERS = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
    "upgrade", "host", "content-length", "accept-encoding", "content-encoding",
}  # fmt: skip
_CREDENTIALS = ("authorization", "x-api-key", "api-key")
_ENDPOINTS: Mapping[str, Endpoint] = {path: endpoint for endpoint, path in PATHS.items()}


@dataclass(frozen=True)
class RecordPlan:
    """What is recorded.

    Attributes:
        out: The file of cases; cases are added to it.
        token_ids: Ask vLLM for token ids with chat completions, so that cases hold the model's own words. The client
            sees them as a field more.
        limit: Cases; after so many it only hands on.
    """

    out: Path
    token_ids: bool
    limit: int


class Recorder:
    """The proxy. It hands everything on, and writes a case for each answer to a request that declares tools.

    Args:
        server: The server behind it; nothing else is contacted.
        client: An open client of that server.
        plan: What to record, and where.
        wrote: Told of each answer recorded: its id, and what became of it.
    """

    def __init__(
        self,
        server: Server,
        client: Client,
        plan: RecordPlan,
        wrote: Callable[[str, str], None],
    ) -> None:
        self._server = server
        self._client = client
        self._plan = plan
        self._wrote = wrote
        self._count = 0
        self._run = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._session: aiohttp.ClientSession | None = None

    @contextlib.asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncIterator[int]:
        """Listen as long as the context lasts; gives the port, which is a free one for port 0."""
        app = web.Application(client_max_size=_BODY_LIMIT)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        async with aiohttp.ClientSession(
            connector=new_connector(), timeout=aiohttp.ClientTimeout(total=None, sock_connect=30)
        ) as self._session:
            site = web.TCPSite(runner, host, port)
            try:
                await site.start()
                yield int(runner.addresses[0][1])
            finally:
                await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        body = _json_object(data)
        endpoint = _ENDPOINTS.get(request.path) if request.method == "POST" else None
        recorded = endpoint is not None and bool(body.get("tools"))
        if recorded and self._plan.token_ids and endpoint == CHAT:
            body["return_token_ids"] = True
            data = json.dumps(body).encode()
        received = Received(streaming=bool(body.get("stream")))
        response, trouble = await self._hand_on(request, data, received)
        if recorded and endpoint is not None and self._count < self._plan.limit:
            await self._record(received.exchange(endpoint, *trouble), body, request.headers)
        return response

    async def _hand_on(
        self, request: web.Request, data: bytes, received: Received
    ) -> tuple[web.StreamResponse, tuple[Trouble | None, str]]:
        """Pass one request and its answer through; what broke on the way, if anything did."""
        response: web.StreamResponse | None = None
        url = self._server.path(request.path).with_query(request.query_string)
        try:
            async with self._opened.request(
                request.method, url, headers=_end_to_end(request.headers), data=data, allow_redirects=False
            ) as upstream:
                received.begin(upstream)
                response = web.StreamResponse(status=upstream.status, headers=_end_to_end(upstream.headers))
                await response.prepare(request)
                async for piece in upstream.content.iter_any():
                    _note(received, piece)
                    await response.write(piece)
                await response.write_eof()
                return response, (None, "")
        except (aiohttp.ClientError, OSError) as error:
            words = f"{type(error).__name__}: {error}"
            if response is None:
                return web.json_response({"error": {"message": f"{self._server.url}: {words}"}}, status=502), (
                    "disconnect",
                    words,
                )
            # The client has half an answer: only a broken connection tells it so.
            if request.transport is not None:
                request.transport.close()
            return response, ("disconnect", words)

    async def _record(self, exchange: Exchange, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self._count += 1
        answer = read(exchange)
        classified = classify(answer, None)
        name, title = f"{self._run}-{self._count:04}", f"recorded: {classified.outcome}"
        case = await observe_case(self._client, CaseSource(answer, body, name, title))
        if case is None:
            self._wrote(name, f"{title}; no case: its calls came broken, and the server gives no token ids")
            return
        append_case(self._plan.out, redact_case(case, _credentials(headers)))
        self._wrote(name, title)

    @property
    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the recorder is used outside its context")
        return self._session


def _note(received: Received, piece: bytes) -> None:
    """Keep a piece for the record, as far as its bounds go: what is handed on has none."""
    if not received.full:
        with contextlib.suppress(LineTooLong):
            received.add(piece)


def _end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_HEADERS}


def _credentials(headers: Mapping[str, str]) -> list[str]:
    carried = [headers.get(name, "") for name in _CREDENTIALS]
    return [value.removeprefix("Bearer ").strip() for value in carried if value]


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        value = loads(data.decode(errors="replace"))
    except NotJson:
        return {}
    return value if isinstance(value, dict) else {}
