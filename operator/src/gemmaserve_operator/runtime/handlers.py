"""Watching: the only file that imports kopf, of which it uses the watchers, the probe and the life cycle.

Kopf's change handlers, timers and daemons write annotations and finalizers to every resource; plain event handlers
write nothing. Here they do no more than put objects into the store and keys into the queue.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import kopf

from gemmaserve_operator.cluster.backoff import Backoff
from gemmaserve_operator.cluster.client import PAGE, load_configuration
from gemmaserve_operator.cluster.kinds import WATCHED, Json, Kind

logger = logging.getLogger(__name__)

INACTIVITY_SECONDS: Final = 70.0
"""A watch without even a bookmark for so long is dead: the API server sends one a minute."""
SERVER_TIMEOUT_SECONDS: Final = 600
"""The API server ends a watch after so long; it goes on from where it was."""
EXIT_SECONDS: Final = 20.0
"""A process that does not end by then is killed: less than a pod's default grace period."""
IDLE_SECONDS: Final = 0.1
"""Kopf keeps the last event of each object, and a task for it, for so long: by default long enough for a start to hold
all objects of a large cluster once more."""
_NETWORK_BACKOFF: Final = Backoff(first=0.5, cap=30.0)


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the operator does when kopf calls."""

    start: Callable[[], Awaitable[None]]
    """Before any watch begins. An exception ends the operator."""
    see: Callable[[Kind, str | None, Json], None]
    """For every event: kind, type (`ADDED`, `MODIFIED`, `DELETED`; None while a watch begins anew), object."""
    probe: Callable[[], dict[str, Any]]
    """For every probe: what to show; an exception makes the probe fail."""
    stop: Callable[[], Awaitable[None]]
    """After all watches have ended."""


class _NoDiffs(kopf.AnnotationsDiffBaseStorage):
    """Kopf copies each object deeply at each event to compare it with its last state, which no handler asks for."""

    def build(self, *, body: kopf.Body, extra_fields: object = None) -> kopf.BodyEssence:  # noqa: ARG002
        """Nothing, whatever the object."""
        return kopf.BodyEssence()


class _NoProgress(kopf.AnnotationsProgressStorage):
    """The same once more, to leave out notes of handlers' progress, of which there are none."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """As it is."""
        return essence


async def watch(hooks: Hooks, *, namespaces: Sequence[str], liveness_endpoint: str | None) -> None:
    """Run kopf until a signal, or until something ends that must not end.

    Args:
        hooks: What to do.
        namespaces: Namespaces to watch; none means all.
        liveness_endpoint: URL to serve the probe at, such as `http://0.0.0.0:8081/healthz`.
    """
    await kopf.operator(
        registry=build_registry(hooks),
        settings=build_settings(),
        standalone=True,
        # Never looked at without peering; named, because kopf's own way looks for the user's name, and a container's
        # user may have none.
        identity="gemmaserve-operator",  # type: ignore[arg-type]  # a NewType of str that kopf does not export
        clusterwide=not namespaces,
        namespaces=namespaces,
        liveness_endpoint=liveness_endpoint,
    )


def build_settings() -> kopf.OperatorSettings:
    """Kopf's settings: nothing is written, nothing but our kinds is watched, network trouble is never the end."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.inactivity_timeout = INACTIVITY_SECONDS
    settings.watching.chunk_size = PAGE
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.watching.server_timeout = SERVER_TIMEOUT_SECONDS
    settings.networking.error_backoffs = _NETWORK_BACKOFF
    settings.process.ultimate_exiting_timeout = EXIT_SECONDS
    settings.persistence.diffbase_storage = _NoDiffs()
    settings.persistence.progress_storage = _NoProgress()
    for kind in WATCHED:
        if kind.selector:
            settings.watching.label_selectors[_selector(kind)] = kind.selector
    return settings


def build_registry(hooks: Hooks) -> kopf.OperatorRegistry:
    """The handlers, in a registry of their own, so that importing this module registers nothing."""
    registry = kopf.OperatorRegistry()

    async def start(**_: Any) -> None:  # noqa: ANN401 - kopf's keyword arguments
        await hooks.start()

    async def stop(**_: Any) -> None:  # noqa: ANN401
        await hooks.stop()

    async def log_in(**_: Any) -> kopf.ConnectionInfo:  # noqa: ANN401
        return await _read_credentials()

    async def probe(**_: Any) -> dict[str, Any]:  # noqa: ANN401
        return hooks.probe()

    kopf.on.startup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)(start)
    kopf.on.cleanup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)(stop)
    kopf.on.login(registry=registry, errors=kopf.ErrorsMode.PERMANENT)(log_in)
    kopf.on.probe(registry=registry, id="store", errors=kopf.ErrorsMode.PERMANENT)(probe)
    for kind in WATCHED:
        kopf.on.event(*_selector(kind), registry=registry, id=f"see-{kind.plural}")(_build_handler(hooks, kind))
    return registry


def _build_handler(hooks: Hooks, kind: Kind) -> Callable[..., Awaitable[None]]:
    async def handle(event: Any, **_: Any) -> None:  # noqa: ANN401 - kopf's raw event
        hooks.see(kind, event["type"], event["object"])

    return handle


def _selector(kind: Kind) -> tuple[str, str, str]:
    """Kopf's way of naming a kind exactly."""
    return kind.group, kind.version, kind.plural


async def _read_credentials() -> kopf.ConnectionInfo:
    """Read anew at every login: a service account's token is renewed in its file."""
    configuration = await load_configuration()
    header = await configuration.get_api_key_with_prefix("BearerToken") or ""
    scheme, _, token = header.rpartition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        scheme=scheme or None,
        token=token.strip() or None,
        proxy_url=configuration.proxy,
    )
