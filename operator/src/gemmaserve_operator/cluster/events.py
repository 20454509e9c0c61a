"""Telling people what happened: Kubernetes Events."""

import logging
import socket
import uuid
from datetime import UTC, datetime
from typing import Final

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.client import ApiError, Client
from gemmaserve_operator.cluster.kinds import EVENT, Json
from gemmaserve_operator.planning.types import Event

logger = logging.getLogger(__name__)

_MAX_NOTE: Final = 1024
"""Bytes of a note (events.k8s.io/v1)."""
_ACTION: Final = "Reconcile"


async def send_event(client: Client, resource: Json, event: Event) -> None:
    """Send one Event about a GemmaServe. A loss is logged and not made good: the status says the same."""
    try:
        await client.create(EVENT, build_event(resource, event, datetime.now(UTC)))
    except ApiError as error:
        if error.reason != "AlreadyExists":
            logger.warning("event %s about %s is lost: %s", event.reason, resource["metadata"]["name"], error)


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
