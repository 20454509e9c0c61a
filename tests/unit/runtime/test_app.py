import asyncio

import pytest

from gemmaserve_operator.cluster.client import ApiError
from gemmaserve_operator.cluster.kinds import GEMMASERVE, JOB, WATCHED
from gemmaserve_operator.runtime.app import App, StaleError, StartError
from gemmaserve_operator.runtime.metrics import Metrics
from gemmaserve_operator.runtime.settings import Settings

from ..cluster.fake_client import child, gemmaserve  # noqa: TID252

KEY = ("team", "gemma4")


@pytest.fixture
async def app(client):
    made = App(client, Settings(workers=2), Metrics())
    yield made
    await made.stop()


def at(version, obj, uid="u1"):
    return obj | {"metadata": obj["metadata"] | {"resourceVersion": str(version), "uid": uid}}


async def until(check):
    for _ in range(1000):
        if check():
            return
        await asyncio.sleep(0.005)
    pytest.fail("not within 5 s")


async def test_starts_by_reading_everything_and_works_on_what_is_there(app, client):
    client.put(GEMMASERVE, gemmaserve())
    await app.start()
    await until(lambda: client.of(JOB))
    assert [plural for verb, plural, _ in client.calls if verb == "list"][: len(WATCHED)] == [
        kind.plural for kind in WATCHED
    ]


@pytest.mark.parametrize(
    ("code", "words"), [(404, "install the chart, or apply its CRD"), (403, "rbac.create"), (401, "401")]
)
async def test_a_start_that_cannot_work_says_what_to_do(app, client, code, words):
    client.failures["list"] = [ApiError(code, "no")]
    with pytest.raises(StartError, match=words):
        await app.start()


async def test_news_wake_the_owner_and_echoes_do_not(app):
    app.see(GEMMASERVE, "ADDED", at(10, gemmaserve()))
    assert app.queue.depth == 1
    app.queue._order.clear()
    app.queue._waiting.clear()
    app.see(GEMMASERVE, "MODIFIED", at(10, gemmaserve()))
    assert app.queue.depth == 0
    app.see(JOB, "ADDED", at(11, child()))
    assert app.queue.depth == 1


async def test_a_child_that_changes_hands_wakes_both(app):
    app.see(JOB, "ADDED", at(11, child()))
    app.see(JOB, "MODIFIED", at(12, child(owner="other")))
    assert set(app.queue._waiting) == {KEY, ("team", "other")}


async def test_a_deletion_wakes_the_owner(app):
    app.see(JOB, "ADDED", at(11, child()))
    app.queue._order.clear()
    app.queue._waiting.clear()
    app.see(JOB, "DELETED", at(12, child()))
    assert set(app.queue._waiting) == {KEY}


async def test_a_watch_that_begins_anew_asks_for_a_list(app):
    app.see(JOB, None, at(11, child()))
    assert app._sweeper._asked[JOB].is_set()
    assert not app._sweeper._asked[GEMMASERVE].is_set()


async def test_the_probe_fails_on_a_stale_store(client):
    now = [0.0]
    app = App(client, Settings(resync_seconds=10), Metrics())
    app.store._clock = lambda: now[0]
    with pytest.raises(StaleError, match="GemmaServe"):
        app.probe()
    for kind in WATCHED:
        app.store.heard(kind)
    now[0] = 80.0
    assert app.probe() == {kind.kind: 80.0 for kind in WATCHED}
    app.store.heard(JOB)
    now[0] = 86.0
    with pytest.raises(StaleError, match="nothing heard of GemmaServe for 86 s"):
        app.probe()


async def test_the_probe_fails_when_a_worker_has_ended(app):
    await app.start()
    assert app.probe()
    app._tasks[0].cancel()
    await asyncio.sleep(0.01)
    with pytest.raises(StaleError, match="worker 0"):
        app.probe()
