"""The API client: one connection pool, a time limit on every call, jittered repetition of what may pass."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes.aio import client as kubernetes
from kubernetes.aio import config as kubernetes_config

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.backoff import Backoff
from gemmaserve_operator.cluster.kinds import Json, Kind

logger = logging.getLogger(__name__)

REQUEST_TIMEOUT: Final = 20.0
"""Seconds for one try of any request, its answer's body included."""
CONNECT_TIMEOUT: Final = 5.0
ATTEMPTS: Final = 5
PAGE: Final = 200
"""Objects in one page of a list."""
_BACKOFF: Final = Backoff(first=0.2, cap=5.0)
_PASSING: Final = frozenset({429, 500, 502, 503, 504})
_UNREADABLE: Final = "failed to create typed "
"""What the API server answers, with 500, to a server-side apply of what breaks the kind's schema ("patch object"), and
to one onto an object that does ("live object"): it will again."""
SESSION: Final = {"trust_env": False}
"""aiohttp's own way of trusting the environment reads ~/.netrc in a thread before every single request."""
_MANAGER: Final = {"fieldManager": names.FIELD_MANAGER}
_NETWORK_ERRORS: Final = (aiohttp.ClientError, TimeoutError)

Observer = Callable[[str, int, float], None]
"""Is told verb, HTTP code (0: no answer) and seconds of every try."""


class ApiError(Exception):
    """The API server's refusal, or its silence."""

    def __init__(self, code: int, message: str, *, reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{code} {reason}: {message}" if code else message)
        self.code = code
        """HTTP status; 0 when there was no answer."""
        self.message = message
        self.reason = reason
        """Machine-readable reason (`AlreadyExists`, `Invalid`, ...); empty when there is none."""
        self.retry_after = retry_after
        """Seconds the server asks to be left alone; None when it does not."""

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code == 0 or (self.code in _PASSING and _UNREADABLE not in self.message)


@dataclass(frozen=True, slots=True)
class _Request:
    verb: str
    """The API's verb, for metrics."""
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None
    content: str = "application/json"


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole list, as of one resourceVersion."""

    items: list[Json]
    resource_version: int


async def load_configuration() -> kubernetes.Configuration:
    """Where the API server is and how to log in: KUBECONFIG, else the pod's service account, else ~/.kube/config.

    Raises:
        ApiError: There is none of them.
    """
    configuration = kubernetes.Configuration()
    configuration.client_session_kwargs = SESSION
    await _load(configuration)
    configuration.proxy = configuration.proxy or _proxy_for(configuration.host)
    return configuration


async def _load(configuration: kubernetes.Configuration) -> None:
    if not os.environ.get("KUBECONFIG"):
        try:
            kubernetes_config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except kubernetes_config.ConfigException:
            logger.debug("not in a cluster; looking for ~/.kube/config")
        else:
            return
    try:
        await kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
            client_configuration=configuration, persist_config=False
        )
    except (kubernetes_config.ConfigException, FileNotFoundError) as error:
        raise ApiError(0, f"no cluster to talk to ({error}): set KUBECONFIG, or run inside a cluster") from error


def _proxy_for(server: str) -> str | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for the API server."""
    address = urlsplit(server)
    bypassed = proxy_bypass(address.netloc)
    return None if bypassed else getproxies().get(address.scheme)


class Client:
    """Requests in the operator's own terms. Objects are plain dicts; errors are `ApiError`."""

    def __init__(
        self,
        api: kubernetes.ApiClient,
        *,
        observe: Observer | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Use `connect()` for a real one."""
        self._api = api
        self._observe = observe
        self._sleep = sleep

    async def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """One object."""
        return await self._send(_Request("get", "GET", kind.path(namespace, name)))

    async def list_all(self, kind: Kind, namespace: str | None) -> Listing:
        """All objects of a kind that its selector names, page by page; no namespace means all of them."""
        start = {"limit": str(PAGE)} | ({"labelSelector": kind.selector} if kind.selector else {})
        query, items = start, list[Json]()
        while True:
            try:
                page = await self._send(_Request("list", "GET", kind.path(namespace), query))
            except ApiError as error:
                if error.code != 410 or query == start:
                    raise
                # The pages took longer than the API server remembers that moment.
                query, items = start, list[Json]()
                continue
            # Half of an object, and nobody's business: not to be held for a whole list.
            for item in (found := page.get("items") or []):
                item["metadata"].pop("managedFields", None)
            items += found
            metadata = page["metadata"]
            if not metadata.get("continue"):
                return Listing(items, int(metadata["resourceVersion"]))
            query = start | {"continue": metadata["continue"]}

    async def apply(self, kind: Kind, body: Json, *, subresource: str | None = None) -> Json:
        """Server-side apply under the operator's field manager, taking over fields that others hold."""
        path = kind.path(body["metadata"]["namespace"], body["metadata"]["name"], subresource)
        query = _MANAGER | {"force": "true", "fieldValidation": "Strict"}
        return await self._send(_Request("apply", "PATCH", path, query, body, "application/apply-patch+yaml"))

    async def merge_patch(self, kind: Kind, namespace: str, name: str, patch: Json) -> Json:
        """JSON merge patch."""
        path = kind.path(namespace, name)
        return await self._send(_Request("patch", "PATCH", path, _MANAGER, patch, "application/merge-patch+json"))

    async def create(self, kind: Kind, body: Json) -> Json:
        """A new object."""
        return await self._send(_Request("create", "POST", kind.path(body["metadata"]["namespace"]), _MANAGER, body))

    async def replace(self, kind: Kind, body: Json) -> Json:
        """The object as given, if its resourceVersion is still the same."""
        metadata = body["metadata"]
        path = kind.path(metadata["namespace"], metadata["name"])
        return await self._send(_Request("update", "PUT", path, body=body))

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str) -> Json:
        """Delete the object with this uid and no other; what it owns goes in the background."""
        body = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        return await self._send(_Request("delete", "DELETE", kind.path(namespace, name), body=body))

    async def _send(self, request: _Request) -> Json:
        """Send until there is an answer that repeating does not change.

        Everything the operator sends may be sent twice: applies and status are idempotent, creations and deletions
        are told apart by name, uid or resourceVersion.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._try(request)
            except ApiError as error:
                if not error.passing or attempt == ATTEMPTS:
                    raise
                wait = max(_BACKOFF.delay(attempt), min(error.retry_after or 0.0, _BACKOFF.cap))
                logger.info("%s %s: %s; again in %.1f s", request.method, request.path, error, wait)
                await self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _try(self, request: _Request) -> Json:
        url = f"{self._api.configuration.host}{request.path}"
        if request.query:
            url += f"?{urlencode(request.query)}"
        headers = {"Accept": "application/json", "Content-Type": request.content} | self._api.default_headers
        await self._api.update_params_for_auth(headers, [], ["BearerToken"], url, request.method, request.body)
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT, sock_connect=CONNECT_TIMEOUT)
        loop = asyncio.get_running_loop()
        start, code = loop.time(), 0
        try:
            response = await self._api.call_api(request.method, url, headers, request.body, _request_timeout=timeout)
            data: bytes = await response.read()  # type: ignore[no-untyped-call]
            code = response.status
        except _NETWORK_ERRORS as error:
            raise ApiError(0, f"the API server cannot be reached: {type(error).__name__} {error}".rstrip()) from error
        finally:
            if self._observe is not None:
                self._observe(request.verb, code, loop.time() - start)
        if code >= 400:
            raise _read_error(code, data, response.headers.get("Retry-After"))
        return _read_answer(data)


def _read_answer(data: bytes) -> Json:
    """The object in an answer of success; what is none did not come from the API server, or not whole."""
    try:
        answer = json.loads(data)
    except ValueError as error:
        raise ApiError(0, f"the API server's answer is no JSON: {data[:200].decode(errors='replace')!r}") from error
    if not isinstance(answer, dict):
        raise ApiError(0, f"the API server's answer is no object: {data[:200].decode(errors='replace')!r}")
    return answer


def _read_error(code: int, data: bytes, retry_after: str | None) -> ApiError:
    """The Status object of the API server, or whatever a proxy before it has said."""
    try:
        status: Any = json.loads(data)
        message, reason = str(status["message"]), str(status.get("reason") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        message, reason = data.decode(errors="replace")[:200], ""
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    return ApiError(code, message, reason=reason, retry_after=seconds)


@asynccontextmanager
async def connect(observe: Observer | None = None) -> AsyncIterator[Client]:
    """A client of the cluster that `load_configuration` finds, closed at the end."""
    async with kubernetes.ApiClient(await load_configuration()) as api:
        api.user_agent = f"{names.FIELD_MANAGER}/{version('gemmaserve-operator')}"
        yield Client(api, observe=observe)
