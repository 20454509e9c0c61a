"""The loop of snapshot, plan and writes, with the real planner and with plans made up for the case."""

import asyncio
from datetime import UTC, datetime

import pytest

from gemmaserve_operator.cluster.client import ApiError
from gemmaserve_operator.cluster.events import EventSender
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, EVENT, GEMMASERVE, JOB, SERVICE
from gemmaserve_operator.cluster.store import Store
from gemmaserve_operator.planning import Apply, Event, Plan
from gemmaserve_operator.runtime import reconciler as module
from gemmaserve_operator.runtime.reconciler import MAX_PASSES, Reconciler
from gemmaserve_operator.runtime.workqueue import WorkQueue

from ..cluster.fake_client import child, gemmaserve  # noqa: TID252

KEY = ("team", "gemma4")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Queue(WorkQueue):
    """Notes what is asked of it."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def add(self, key):
        self.asked.append("add")

    def add_after(self, key, seconds):
        self.asked.append(seconds)

    def retry(self, key):
        self.asked.append("retry")

    def succeeded(self, key):
        self.asked.append("succeeded")


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def queue():
    return Queue()


@pytest.fixture
def outcomes():
    return []


@pytest.fixture
def watcher(outcomes):
    class Watcher:
        """Notes what it is told."""

        def __init__(self):
            self.statuses = []
            self.forgotten = []

        def observe_reconcile(self, outcome, seconds):
            outcomes.append(outcome)

        def observe_status(self, key, before, after):
            self.statuses.append((key, before.get("phase"), after.get("phase")))

        def forget(self, key):
            self.forgotten.append(key)

    return Watcher()


@pytest.fixture
async def events(client, queue):
    sender = EventSender(client, queue.calm)
    task = asyncio.create_task(sender.run())
    yield sender
    task.cancel()


@pytest.fixture
def reconciler(client, store, queue, watcher, events):
    return Reconciler(
        client,
        store,
        queue,
        events,
        max_concurrent_gates=1,
        watcher=watcher,
        now=lambda: NOW,
    )


@pytest.fixture
def add(client, store):
    def put(obj=None):
        made = client.put(GEMMASERVE, obj or gemmaserve())
        store.put(GEMMASERVE, made)
        return made

    return put


@pytest.fixture
def plans(monkeypatch):
    """Plans to be made one after the other, the last for ever; the snapshots they are made from are kept."""

    def use(*planned):
        made, left = [], list(planned)

        def plan(snapshot, _):
            made.append(snapshot)
            return left.pop(0) if len(left) > 1 else left[0]

        monkeypatch.setattr(module, "plan", plan)
        return made

    return use


def job(name="gemma4-x-gate"):
    return Apply(child(name=name), f"create {name}", creates=True)


async def test_the_real_planner_starts_with_the_gate_and_says_so(reconciler, add, client, store, outcomes, events):
    add()
    await reconciler.reconcile(KEY)
    await events.flush()
    assert len(client.of(JOB)) == 1
    assert client.of(DEPLOYMENT) == client.of(SERVICE) == []
    assert client.of(GEMMASERVE)[0]["status"]["phase"] == "Verifying"
    assert [event["reason"] for event in client.of(EVENT)] == ["ParserRegressionsRunning"]
    assert outcomes == ["written"]


async def test_a_second_look_writes_nothing(reconciler, add, client, outcomes, events):
    add()
    await reconciler.reconcile(KEY)
    await events.flush()
    client.calls.clear()
    await reconciler.reconcile(KEY)
    await events.flush()
    assert client.calls == []
    assert outcomes == ["written", "unchanged"]


async def test_writes_come_in_order_then_status_then_events(reconciler, add, client, plans, events):
    add()
    event = Event("Normal", "Serving", "words")
    plans(Plan((job("a"), job("b")), {}), Plan((), {"phase": "Serving"}, (event,)))
    await reconciler.reconcile(KEY)
    await events.flush()
    assert [(verb, plural) for verb, plural, _ in client.writes()] == [
        ("apply", "jobs"),
        ("apply", "jobs"),
        ("apply status", "gemmaserves"),
        ("create", "events"),
    ]


async def test_each_plan_is_made_from_what_was_written(reconciler, add, plans):
    add()
    snapshots = plans(Plan((job(),), {}), Plan((), {}))
    await reconciler.reconcile(KEY)
    assert [len(snapshot.jobs) for snapshot in snapshots] == [0, 1]


async def test_a_plan_without_end_lets_others_in_between(reconciler, add, client, plans, queue):
    add()
    plans(*[Plan((job(f"job-{number}"),), {}) for number in range(50)])
    await reconciler.reconcile(KEY)
    assert len(client.of(JOB)) == MAX_PASSES
    assert queue.asked == ["succeeded", "add"]


async def test_time_alone_brings_it_back(reconciler, add, plans, queue):
    add()
    plans(Plan((), {}, requeue_after=30.0))
    await reconciler.reconcile(KEY)
    assert queue.asked == ["succeeded", 30.0]


async def test_a_refusal_stops_the_writes_and_is_planned_with(reconciler, add, client, plans, queue, outcomes):
    add()
    client.failures["apply"] = [ApiError(403, "quota exceeded")]
    snapshots = plans(Plan((job("a"), job("b")), {}), Plan((job("a"), job("b")), {"phase": "Degraded"}))
    await reconciler.reconcile(KEY)
    assert client.of(JOB) == []
    assert snapshots[1].refusals["Job/a"].message == "quota exceeded"
    assert client.of(GEMMASERVE)[0]["status"] == {"phase": "Degraded"}
    assert queue.asked == ["retry"]
    assert outcomes == ["refused"]


async def test_a_refusal_is_forgotten_once_the_write_is_made(reconciler, add, client, plans):
    add()
    client.failures["apply"] = [ApiError(403, "quota exceeded")]
    plans(Plan((job(),), {}))
    await reconciler.reconcile(KEY)
    snapshots = plans(Plan((job(),), {}), Plan((), {}))
    await reconciler.reconcile(KEY)
    assert [bool(snapshot.refusals) for snapshot in snapshots] == [True, False]


async def test_a_refusal_of_what_is_no_longer_wanted_is_forgotten(reconciler, add, client, plans):
    add()
    client.failures["apply"] = [ApiError(403, "quota exceeded")]
    plans(Plan((job(),), {}))
    await reconciler.reconcile(KEY)
    plans(Plan((), {}))
    await reconciler.reconcile(KEY)
    snapshots = plans(Plan((), {}))
    await reconciler.reconcile(KEY)
    assert not snapshots[-1].refusals


async def test_a_stale_store_is_no_failure(reconciler, add, client, plans, queue, outcomes):
    add()
    client.put(JOB, child())
    plans(Plan((job(),), {}))
    await reconciler.reconcile(KEY)
    assert queue.asked == ["retry"]
    assert outcomes == ["stale"]


async def test_trouble_is_told_in_a_line_and_tried_again(reconciler, add, client, plans, queue, outcomes, caplog):
    add()
    client.failures["apply"] = [ApiError(503, "trouble")]
    plans(Plan((job(),), {}))
    await reconciler.reconcile(KEY)
    assert client.of(GEMMASERVE)[0].get("status") is None
    assert outcomes == ["error"]
    assert queue.asked == ["retry"]
    (record,) = caplog.records
    assert "trouble" in record.getMessage()
    assert record.exc_info is None


async def test_a_plan_that_raises_is_left_to_the_queue(reconciler, add, monkeypatch, outcomes):
    add()
    monkeypatch.setattr(module, "plan", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await reconciler.reconcile(KEY)
    assert outcomes == ["error"]


async def test_no_events_without_their_status(reconciler, add, client, plans, events):
    add()
    client.failures["apply status"] = [ApiError(503, "trouble")]
    plans(Plan((), {"phase": "Serving"}, (Event("Normal", "Serving", "words"),)))
    await reconciler.reconcile(KEY)
    await events.flush()
    assert client.of(EVENT) == []


async def test_each_status_that_was_written_is_told_of(reconciler, add, client, plans, watcher):
    add()
    plans(Plan((), {"phase": "Verifying"}), Plan((), {"phase": "Serving"}))
    client.failures["apply status"] = [ApiError(503, "trouble")]
    await reconciler.reconcile(KEY)
    await reconciler.reconcile(KEY)
    await reconciler.reconcile(KEY)
    assert watcher.statuses == [(KEY, None, "Serving")]


async def test_what_is_gone_needs_nothing(reconciler, client, queue, watcher):
    await reconciler.reconcile(KEY)
    assert client.calls == []
    assert watcher.forgotten == [KEY]
    assert queue.asked == ["succeeded"]


async def test_what_is_being_deleted_gets_no_status(reconciler, add, client):
    leaving = gemmaserve()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    add(leaving)
    await reconciler.reconcile(KEY)
    assert client.calls == []


async def test_two_reconciles_do_not_both_take_the_last_gate(reconciler, add, client, store, monkeypatch):
    """The second plans while the first one's Job is still on its way to the API server."""
    add()
    add(gemmaserve("other"))
    free = []
    planned = module.plan

    def plan(snapshot, now):
        free.append(snapshot.free_gates)
        return planned(snapshot, now)

    monkeypatch.setattr(module, "plan", plan)
    apply = client.apply

    async def slow(kind, body, **options):
        if kind == JOB and not client.of(JOB):
            monkeypatch.setattr(client, "apply", apply)
            await reconciler.reconcile(("team", "other"))
        return await apply(kind, body, **options)

    monkeypatch.setattr(client, "apply", slow)
    await reconciler.reconcile(KEY)
    assert free[:2] == [1, 0]
    assert len(client.of(JOB)) == 1
    waiting = store.snapshot(("team", "other"), free_gates=0).resource["status"]["conditions"]
    assert "WaitingForGateSlot" in {condition["reason"] for condition in waiting}


async def test_gone_in_the_middle(reconciler, add, client, store, plans, outcomes):
    made = add()
    apply = client.apply

    async def last_write(kind, body, **options):
        store.forget(GEMMASERVE, "team", "gemma4", made["metadata"]["uid"])
        return await apply(kind, body, **options)

    client.apply = last_write
    plans(Plan((job(),), {"phase": "Verifying"}))
    await reconciler.reconcile(KEY)
    assert outcomes == ["stale"]
    assert client.writes() == [("apply", "jobs", "gemma4-x-gate")]
