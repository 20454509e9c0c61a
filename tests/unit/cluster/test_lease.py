import asyncio

import pytest

from gemmaserve_operator.cluster.client import ApiError
from gemmaserve_operator.cluster.kinds import LEASE
from gemmaserve_operator.cluster.lease import Lease, LeaseLostError, Timing

QUICK = Timing(duration=1.0, renew_deadline=0.3, retry=0.02)


@pytest.fixture
def clock():
    now = [0.0]

    def read():
        return now[0]

    read.advance = lambda seconds: now.__setitem__(0, now[0] + seconds)
    return read


@pytest.fixture
def lease(client):
    return Lease(client, "system", "operator", timing=QUICK)


def held(client):
    (found,) = client.of(LEASE)
    return found["spec"]


def take(client, holder, **spec):
    metadata = {"namespace": "system", "name": "operator"}
    client.put(LEASE, {"metadata": metadata, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 1} | spec})


async def finish(coroutine):
    async with asyncio.timeout(5):
        return await coroutine


async def test_the_first_creates_it(client, lease):
    await finish(lease.acquire())
    assert held(client)["holderIdentity"] == lease.identity
    assert held(client)["leaseTransitions"] == 0


async def test_a_released_one_is_taken_at_once(client, lease):
    take(client, "", leaseTransitions=4)
    await finish(lease.acquire())
    assert held(client)["leaseTransitions"] == 5


async def test_anothers_is_left_alone_while_it_is_renewed(client, clock):
    lease = Lease(client, "system", "operator", timing=QUICK, clock=clock)
    for _ in range(10):
        take(client, "other")
        clock.advance(0.9)
        assert not await lease._take()
    clock.advance(1.1)
    assert await lease._take()
    assert held(client)["holderIdentity"] == lease.identity


async def test_times_in_the_lease_are_not_believed(client, clock):
    """Another machine's clock may be hours behind."""
    take(client, "other", renewTime="2001-01-01T00:00:00.000000Z")
    assert not await Lease(client, "system", "operator", timing=QUICK, clock=clock)._take()


async def test_two_that_want_it_do_not_both_get_it(client):
    first, second = (Lease(client, "system", "operator", timing=QUICK) for _ in range(2))
    done, waiting = await asyncio.wait(
        [asyncio.create_task(first.acquire()), asyncio.create_task(second.acquire())], timeout=0.3
    )
    assert (len(done), len(waiting)) == (1, 1)
    waiting.pop().cancel()


async def test_keeping_it_renews(client, lease):
    await finish(lease.acquire())
    keeper = asyncio.create_task(lease.keep())
    start = held(client)
    await asyncio.sleep(0.2)
    keeper.cancel()
    assert held(client)["acquireTime"] == start["acquireTime"]
    assert held(client)["renewTime"] > start["renewTime"]


async def test_short_trouble_does_not_lose_it(client, lease):
    await finish(lease.acquire())
    client.failures["update"] = [ApiError(503, "trouble"), ApiError(409, "changed")]
    keeper = asyncio.create_task(lease.keep())
    await asyncio.sleep(0.2)
    assert not keeper.done()
    keeper.cancel()


async def test_long_trouble_does(client, lease):
    await finish(lease.acquire())
    client.failures["get"] = [ApiError(0, "silence")] * 1000
    with pytest.raises(LeaseLostError):
        await finish(lease.keep())


async def test_silence_does(client, lease, monkeypatch):
    await finish(lease.acquire())

    async def never(*_):
        await asyncio.sleep(60)

    monkeypatch.setattr(client, "get", never)
    with pytest.raises(LeaseLostError):
        await finish(lease.keep())


async def test_another_holder_does(client, lease):
    await finish(lease.acquire())
    take(client, "other")
    with pytest.raises(LeaseLostError):
        await finish(lease.keep())


async def test_released_for_a_successor(client, lease):
    await lease.release()
    assert client.calls == []
    await finish(lease.acquire())
    await lease.release()
    assert held(client)["holderIdentity"] == ""


async def test_leases_that_may_not_be_written(client, lease):
    client.failures["create"] = [ApiError(403, "not allowed")]
    with pytest.raises(ApiError, match="not allowed"):
        await finish(lease.acquire())


def test_the_holder_gives_up_before_others_take_over():
    timing = Timing()
    assert timing.retry < timing.renew_deadline < timing.duration
