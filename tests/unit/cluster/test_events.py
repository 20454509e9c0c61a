import asyncio
from datetime import UTC, datetime

import pytest

from gemmaserve_operator.cluster import events as module
from gemmaserve_operator.cluster.client import ApiError
from gemmaserve_operator.cluster.events import EventSender, build_event
from gemmaserve_operator.cluster.kinds import EVENT
from gemmaserve_operator.planning import Event

from .fake_client import gemmaserve

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


async def at_once():
    """It is calm."""


@pytest.fixture
def resource():
    made = gemmaserve()
    made["metadata"]["uid"] = "owner"
    return made


def test_an_event_is_what_the_api_asks_for(resource):
    event = build_event(resource, Event("Warning", "CrashLoop", "words"), NOW)
    assert event["apiVersion"] == "events.k8s.io/v1"
    assert event["eventTime"] == "2026-01-02T03:04:05.678901Z"
    assert event["regarding"]["uid"] == "owner"
    assert event["metadata"]["namespace"] == "team"
    assert event["metadata"]["name"].startswith("gemma4.")
    assert (event["type"], event["reason"], event["note"]) == ("Warning", "CrashLoop", "words")
    assert 0 < len(event["action"]) <= 128
    assert 0 < len(event["reportingInstance"]) <= 128


def test_two_events_do_not_share_a_name(resource):
    event = Event("Normal", "Serving", "words")
    assert (
        build_event(resource, event, NOW)["metadata"]["name"] != build_event(resource, event, NOW)["metadata"]["name"]
    )


@pytest.mark.parametrize("note", ["x" * 5000, "ü" * 1000])
def test_notes_fit_and_stay_readable(resource, note):
    short = build_event(resource, Event("Normal", "Serving", note), NOW)["note"]
    assert len(short.encode()) <= 1024
    assert note.startswith(short.removesuffix("..."))


@pytest.fixture
async def sender(client):
    sender = EventSender(client, at_once)
    task = asyncio.create_task(sender.run())
    yield sender
    assert not task.done()
    task.cancel()


async def test_events_are_sent_in_their_order_and_losses_do_no_harm(sender, client, resource, caplog):
    client.failures["create"] = [ApiError(403, "not allowed"), ApiError(409, "there", reason="AlreadyExists")]
    for reason in ("Lost", "There", "First", "Second"):
        sender.send(resource, Event("Normal", reason, "words"))
    assert client.of(EVENT) == []
    await sender.flush()
    assert [event["reason"] for event in client.of(EVENT)] == ["First", "Second"]
    assert caplog.text.count("is lost") == 1
    assert "event Lost about gemma4" in caplog.text


async def test_a_flood_is_cut_off(client, resource, caplog, monkeypatch):
    monkeypatch.setattr(module, "LIMIT", 2)
    sender = EventSender(client, at_once)
    for _ in range(3):
        sender.send(resource, Event("Normal", "Serving", "words"))
    assert caplog.text.count("2 others wait") == 1


async def test_events_give_way_to_real_work_for_a_while(client, resource, monkeypatch):
    calm = asyncio.Event()

    async def wait():
        await calm.wait()

    sender = EventSender(client, wait)
    task = asyncio.create_task(sender.run())
    sender.send(resource, Event("Normal", "First", "words"))
    await asyncio.sleep(0.02)
    assert client.of(EVENT) == []
    calm.set()
    await sender.flush()
    calm.clear()
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    sender.send(resource, Event("Normal", "Second", "words"))
    await sender.flush()
    assert [event["reason"] for event in client.of(EVENT)] == ["First", "Second"]
    task.cancel()
