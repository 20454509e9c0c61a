"""One operator at a time; a second stands by, is well, and takes over."""

import time

import httpx
import pytest

from gemmaserve_operator.cluster.kinds import LEASE

from .conftest import SYSTEM
from .kube import eventually

LEASE_SECONDS = 15


@pytest.fixture
def start(start_operator, unused_tcp_port_factory, kubelet):
    """Start an operator that wants the lease of this test; its probe's address comes with it."""
    running = []

    def one(lease):
        port = unused_tcp_port_factory()
        flags = ("--leader-elect", f"--lease-namespace={SYSTEM}", f"--lease-name={lease}")
        operator = start_operator(*flags, "--bind-address=127.0.0.1", f"--probe-port={port}")
        running.append(operator)
        return operator, f"http://127.0.0.1:{port}"

    yield one
    for operator in running:
        operator.stop()


def _answers(url):
    try:
        return httpx.get(url, timeout=5)
    except httpx.HTTPError:
        return None


def _is_well(base):
    return all((answer := _answers(f"{base}{path}")) and answer.status_code == 200 for path in ("/healthz", "/readyz"))


def _stands_by(base):
    return (answer := _answers(f"{base}/healthz")) is not None and answer.json() == {"standby": True}


def _leads(operator):
    return "working" in operator.log.read_text()


def test_takes_over_at_once_from_one_that_was_stopped(kube, start, resource):
    first, first_probe = start("stopped")
    eventually(lambda: _leads(first), "the first leads", show=first.log.read_text)
    eventually(lambda: _is_well(first_probe), "and is well")
    second, second_probe = start("stopped")
    eventually(lambda: _stands_by(second_probe) and _is_well(second_probe), "the second is well, standing by")
    assert not _leads(second)

    assert first.stop() == 0, first.log.read_text()
    eventually(lambda: _leads(second), "the second leads", 10, show=second.log.read_text)
    eventually(lambda: _is_well(second_probe), "and is well")
    resource.create().until_ready()


def test_takes_over_from_one_that_was_killed_once_its_lease_has_run_out(start):
    first, _ = start("killed")
    eventually(lambda: _leads(first), "the first leads", show=first.log.read_text)
    second, probe = start("killed")
    eventually(lambda: _stands_by(probe), "the second stands by")
    first.kill()
    killed = time.monotonic()
    eventually(lambda: _leads(second), "the second leads", 60, show=second.log.read_text)
    assert time.monotonic() - killed > LEASE_SECONDS / 2


def test_one_that_has_lost_its_lease_ends_at_once(kube, start):
    operator, _ = start("lost")
    eventually(lambda: _leads(operator), "it leads", show=operator.log.read_text)
    kube.patch(LEASE, SYSTEM, "lost", {"spec": {"holderIdentity": "another"}})
    assert operator.wait(10) == 1
    assert "is lost; ending at once" in operator.log.read_text()
