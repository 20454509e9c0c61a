import asyncio

import pytest

from gemmaserve_operator.cluster import sweeper as module
from gemmaserve_operator.cluster.client import ApiError
from gemmaserve_operator.cluster.kinds import GEMMASERVE, JOB, POD, WATCHED
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.cluster.sweeper import Sweeper

from .fake_client import child, gemmaserve


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(module, "FIRST_PERIOD", 0.01)
    monkeypatch.setattr(module, "_BACKOFF", module.Backoff(first=0.01, cap=0.01))


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def build(client, store):
    def make(*, namespaces=(), period=3600.0, on_change=lambda _: None):
        return Sweeper(client, store, namespaces=namespaces, period=period, on_change=on_change)

    return make


async def until(check):
    for _ in range(1000):
        if check():
            return
        await asyncio.sleep(0.005)
    pytest.fail("not within 5 s")


async def test_fills_the_store_with_every_kind(client, store, build):
    client.put(GEMMASERVE, gemmaserve())
    client.put(JOB, child())
    await build().fill()
    assert len(store.snapshot(("team", "gemma4"), free_gates=1).jobs) == 1
    assert [plural for _, plural, _ in client.calls] == [kind.plural for kind in WATCHED]


async def test_lists_only_the_given_namespaces(client, build):
    await build(namespaces=("a", "b")).fill()
    assert {namespace for _, _, namespace in client.calls} == {"a", "b"}


async def test_filling_waits_for_the_api_server(client, build, quick):
    client.failures["list"] = [ApiError(0, "not there yet"), ApiError(503, "not yet")]
    await build().fill()
    assert len(client.calls) == 2 + len(WATCHED)


async def test_filling_gives_up_what_will_not_pass(client, build):
    client.failures["list"] = [ApiError(403, "not allowed")]
    with pytest.raises(ApiError, match="not allowed"):
        await build().fill()


@pytest.fixture
async def running(build, quick):
    """Start sweepers that end with the test."""
    tasks = []

    def run(**options):
        sweeper = build(**options)
        tasks.append(asyncio.create_task(sweeper.run()))
        return sweeper

    yield run
    for task in tasks:
        task.cancel()


async def test_ghosts_go_and_their_owner_is_told(client, store, running):
    client.put(GEMMASERVE, gemmaserve())
    job = client.put(JOB, child())
    store.put(JOB, job)
    del client.objects[JOB, "team", "gemma4-x-gate"]
    told = set()
    running(on_change=told.add)
    await until(lambda: store.get(JOB, "team", "gemma4-x-gate") is None)
    await until(lambda: ("team", "gemma4") in told)


def lists_of(client, kind):
    return [call for call in client.calls if call[1] == kind.plural]


async def test_a_watch_that_began_anew_brings_one_list(client, running):
    sweeper = running()
    await until(lambda: lists_of(client, POD))
    before = len(lists_of(client, POD))
    for _ in range(5):
        sweeper.ask(POD)
        await asyncio.sleep(0)
    await until(lambda: len(lists_of(client, POD)) > before)
    await asyncio.sleep(0.05)
    assert len(lists_of(client, POD)) == before + 1


async def test_goes_on_after_failures(client, running):
    client.failures["list"] = [ApiError(503, "trouble")] * 20
    running(period=0.01)
    await until(lambda: not client.failures["list"])
    await until(lambda: len(lists_of(client, POD)) > 20)
