import asyncio

import pytest

from gemmaserve_operator.cluster.backoff import Backoff
from gemmaserve_operator.runtime.workqueue import WorkQueue

A, B = ("team", "a"), ("team", "b")


class Worker:
    """Records keys as they are worked on; `hold` keeps it busy until released."""

    def __init__(self):
        self.seen = []
        self.at_once = {}
        self.most_at_once = 0
        self.fails = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, key):
        self.seen.append(key)
        self.at_once[key] = self.at_once.get(key, 0) + 1
        self.most_at_once = max(self.most_at_once, *self.at_once.values())
        await self.gate.wait()
        self.at_once[key] -= 1
        if self.fails:
            self.fails -= 1
            raise RuntimeError("planned")


@pytest.fixture
async def queue():
    return WorkQueue(Backoff(first=0.02, cap=0.04))


@pytest.fixture
async def worker():
    return Worker()


@pytest.fixture
async def start(queue, worker):
    tasks = []

    def run(workers=1):
        tasks.extend(asyncio.create_task(queue.work(worker)) for _ in range(workers))

    yield run
    for task in tasks:
        task.cancel()


async def test_waiting_keys_are_merged_and_keep_their_order(queue, worker, start):
    for key in (A, B, A, A):
        queue.add(key)
    assert queue.depth == 2
    start()
    await asyncio.sleep(0.01)
    assert worker.seen == [A, B]
    assert queue.depth == 0


async def test_one_worker_a_key_and_once_more_for_what_came_meanwhile(queue, worker, start):
    worker.gate.clear()
    start(workers=4)
    queue.add(A)
    await asyncio.sleep(0.01)
    queue.add(A)
    queue.add(A)
    queue.add(B)
    await asyncio.sleep(0.01)
    assert worker.seen == [A, B]
    worker.gate.set()
    await asyncio.sleep(0.01)
    assert worker.seen == [A, B, A]
    assert worker.most_at_once == 1


async def test_comes_back_after_a_while(queue, worker, start):
    start()
    queue.add_after(A, 0.05)
    await asyncio.sleep(0.02)
    assert worker.seen == []
    await asyncio.sleep(0.06)
    assert worker.seen == [A]


async def test_the_last_wait_counts_and_an_addition_ends_it(queue, worker, start):
    start()
    queue.add_after(A, 0.01)
    queue.add_after(A, 0.06)
    await asyncio.sleep(0.03)
    assert worker.seen == []
    queue.add(A)
    await asyncio.sleep(0.08)
    assert worker.seen == [A]


async def test_failures_are_tried_again_with_longer_waits(queue, worker, start, caplog):
    worker.fails = 3
    start()
    queue.add(A)
    await asyncio.sleep(0.25)
    assert worker.seen == [A] * 4
    assert caplog.text.count("team/a failed") == 3
    assert queue._failures[A] == 3
    queue.succeeded(A)
    assert A not in queue._failures


async def test_a_worker_outlives_what_it_works_on(queue, worker, start):
    worker.fails = 1
    start()
    queue.add(A)
    queue.add(B)
    await asyncio.sleep(0.01)
    assert worker.seen == [A, B]


async def test_it_is_calm_when_no_key_waits(queue, start):
    await asyncio.wait_for(queue.calm(), 1)
    queue.add(A)
    queue.add(B)
    calm = asyncio.create_task(queue.calm())
    await asyncio.sleep(0.01)
    assert not calm.done()
    start()
    await asyncio.wait_for(calm, 1)


async def test_the_age_is_that_of_the_oldest(queue):
    assert queue.age == 0
    queue.add(A)
    await asyncio.sleep(0.02)
    queue.add(B)
    assert 0.02 <= queue.age < 1


async def test_draining_finishes_what_is_under_way_and_starts_nothing(queue, worker, start):
    worker.gate.clear()
    start()
    queue.add(A)
    await asyncio.sleep(0.01)
    draining = asyncio.create_task(queue.drain())
    queue.add(B)
    await asyncio.sleep(0.01)
    assert not draining.done()
    await asyncio.wait_for(queue.calm(), 1)
    worker.gate.set()
    await asyncio.wait_for(draining, 1)
    await asyncio.sleep(0.01)
    assert worker.seen == [A]
    await asyncio.wait_for(queue.drain(), 1)
