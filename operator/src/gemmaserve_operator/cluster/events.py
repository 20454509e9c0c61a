"""Telling people what happened: Kubernetes Events."""

import asyncio
import logging
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.client import ApiError, Client
from gemmaserve_operator.cluster.kinds import EVENT, Json
from gemmaserve_operator.planning.types import Event

logger = logging.getLogger(__name__)

PATIENCE: Final = 30.0
"""Seconds for which an event waits behind real work at most."""
LIMIT: Final = 10_000
"""Events that may wait: what thousands of resources have to say when all change at once."""
_MAX_NOTE: Final = 1024
"""Bytes of a note (events.k8s.io/v1)."""
_ACTION: Final = "Reconcile"


class EventSender:
    """Sends Events in their order, one at a time, behind the operator's real work, which never waits for them.

    What is lost is logged and not made good: the status says the same.
    """

    def __init__(self, client: Client, calm: Callable[[], Awaitable[None]]) -> None:
        """Send with a client, each event once it is calm, or has not been for `PATIENCE`."""
        self._client = client
        self._calm = calm
        self._waiting: asyncio.Queue[tuple[float, Json]] = asyncio.Queue(LIMIT)

    def send(self, resource: Json, event: Event) -> None:
        """Have one Event about a GemmaServe sent soon; it bears the present time."""
        try:
            self._waiting.put_nowait((time.monotonic(), build_event(resource, event, datetime.now(UTC))))
        except asyncio.QueueFull:
            _log_loss(event.reason, resource["metadata"]["name"], f"{LIMIT} others wait")

    async def run(self) -> None:
        """Send for ever."""
        while True:
            since, body = await self._waiting.get()
            try:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._calm(), since + PATIENCE - time.monotonic())
                await self._client.create(EVENT, body)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    _log_loss(body["reason"], body["regarding"]["name"], error)
            finally:
                self._waiting.task_done()

    async def flush(self) -> None:
        """Wait until all have been sent."""
        await self._waiting.join()


def _log_loss(reason: str, name: str, why: object) -> None:
    logger.warning("event %s about %s is lost: %s", reason, name, why)


def build_event(resource: Json, event: Event, now: datetime) -> Json:
    """The Event object; its name is its own, so that a repeated request makes no second one."""
    metadata = resource["metadata"]
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"name": f"{metadata['name']}.{uuid.uuid4().hex[:16]}", "namespace": metadata["namespace"]},
        "type": event.type,
        "reason": event.reason,
        "action": _ACTION,
        "note": _shorten(event.message),
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": names.FIELD_MANAGER,
        "reportingInstance": socket.gethostname(),
        "regarding": {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
    }


def _shorten(note: str) -> str:
    data = note.encode()
    if len(data) <= _MAX_NOTE:
        return note
    return data[: _MAX_NOTE - 3].decode(errors="ignore") + "..."
