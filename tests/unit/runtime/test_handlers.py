"""What kopf is told: watch these kinds with these selectors, write nothing."""

import asyncio
import itertools

import httpx
import kopf
import pytest
from kopf._core.engines.probing import health_reporter

from gemmaserve_operator.cluster.kinds import GEMMASERVE, POD, SERVICE, WATCHED
from gemmaserve_operator.runtime.handlers import Hooks, _read_credentials, build_registry, build_settings


@pytest.fixture
def seen():
    return []


@pytest.fixture
def registry(seen):
    async def nothing():
        pass

    return build_registry(
        Hooks(start=nothing, see=lambda *event: seen.append(event), probe=lambda: {"ok": True}, stop=nothing)
    )


def resource_of(kind):
    return kopf.Resource(group=kind.group, version=kind.version, plural=kind.plural, namespaced=True)


def test_kopf_writes_nothing_and_discovers_nothing():
    settings = build_settings()
    assert not settings.posting.enabled
    assert settings.scanning.disabled
    assert settings.watching.inactivity_timeout == 70
    assert settings.watching.server_timeout == 600
    # The API server parses it as a whole number.
    assert isinstance(settings.watching.server_timeout, int)


def test_network_trouble_is_never_the_end():
    delays = list(itertools.islice(build_settings().networking.error_backoffs, 1000))
    assert len(delays) == 1000
    assert max(delays) <= 30


def test_children_are_selected_by_the_api_server():
    selectors = build_settings().watching.label_selectors
    assert list(selectors.collect(resource_of(POD))) == ["gemmaserve.dev/name"]
    assert list(selectors.collect(resource_of(GEMMASERVE))) == []


def test_another_groups_services_are_not_ours(registry):
    """Such as Knative's, which are called `services` in a version `v1`, too."""
    other = kopf.Resource(group="serving.knative.dev", version="v1", plural="services", namespaced=True)
    assert registry._watching.has_handlers(resource_of(SERVICE))
    assert not registry._watching.has_handlers(other)
    assert not list(build_settings().watching.label_selectors.collect(other))


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.kind)
def test_only_watching_handlers_for_each_kind(registry, kind):
    resource = resource_of(kind)
    assert registry._watching.has_handlers(resource)
    assert not registry._changing.has_handlers(resource)
    assert not registry._spawning.has_handlers(resource)
    assert not registry._indexing.has_handlers(resource)


def test_events_are_handed_on_raw(registry, seen):
    (handler,) = [h for h in registry._watching.get_all_handlers() if h.id == "see-pods"]
    asyncio.run(handler.fn(event={"type": "ADDED", "object": {"a": 1}}, body="ignored"))
    assert seen == [(POD, "ADDED", {"a": 1})]


async def test_credentials_are_those_of_the_client(monkeypatch, tmp_path):
    config = tmp_path / "config"
    config.write_text(
        """{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}]}"""
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(config))
    info = await _read_credentials()
    assert (info.server, info.scheme, info.token) == ("https://127.0.0.1:1", "Bearer", "t0ken")


async def test_a_probe_that_raises_is_a_failed_probe(unused_tcp_port):
    """What the kubelet sees of a stale store: not 200."""
    trouble = [RuntimeError("nothing heard of Pod for 100 s")]

    def probe():
        if trouble:
            raise trouble[0]
        return {"Pod": 1.0}

    async def nothing():
        pass

    reporter = asyncio.create_task(
        health_reporter(
            f"http://127.0.0.1:{unused_tcp_port}/healthz",
            registry=build_registry(Hooks(start=nothing, see=print, probe=probe, stop=nothing)),
            settings=build_settings(),
            memo=kopf.Memo(),
            indices={},
            ready_flag=(ready := asyncio.Event()),
        )
    )
    try:
        await asyncio.wait_for(ready.wait(), 5)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{unused_tcp_port}") as http:
            assert (await http.get("/healthz")).status_code == 500
            trouble.clear()
            answer = await http.get("/healthz")
            assert (answer.status_code, answer.json()) == (200, {"store": {"Pod": 1.0}})
    finally:
        reporter.cancel()
