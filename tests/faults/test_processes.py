"""The operator through rollouts while processes die, stop, or have a wrong clock: its own, another's, Kubernetes'."""

import signal
import time
from pathlib import Path

import pytest
from tests.contract.kube import eventually
from tests.contract.operator_process import OperatorProcess

from gemmaserve_operator.cluster.kinds import JOB
from localcluster import Cluster
from localcluster.launcher import recorded
from localcluster.state import folder_of

from . import faults

HERE = Path(__file__).parent


def _end_again_and_again(scenario, end, times):
    """End each process a second after its start; seconds from the last until everything is as it is to be."""
    scenario.begin()
    for ended in range(1, times + 1):
        time.sleep(1)
        end(scenario.supervisor.process)
        eventually(lambda ended=ended: scenario.supervisor.starts > ended, "it is started again")
    seconds = scenario.until_recovered(time.monotonic(), 60)
    scenario.until_at_rest()
    return seconds


def test_killed_again_and_again(scenario, tell):
    """After every single write: tests/contract/test_crash_after_every_write.py."""
    seconds = _end_again_and_again(scenario, OperatorProcess.kill, 6)
    tell(scenario, "SIGKILL a second after each start, six times", "goes on from what there is", seconds)


def test_stopped_again_and_again(scenario, tell):
    codes = []
    seconds = _end_again_and_again(scenario, lambda process: codes.append(process.stop()), 4)
    assert set(codes) <= {0, -signal.SIGTERM}, "the latter before it has begun to work"
    tell(scenario, "SIGTERM a second after each start, four times", "ends what it is at, exits 0, goes on", seconds)


@pytest.mark.parametrize("program", ["kube-apiserver", "etcd"])
def test_of_kubernetes_itself(cluster, scenario, tell, program):
    """Killed in the middle of a rollout and started again; the API server's watch cache is empty then."""
    scenario.begin()
    time.sleep(1)
    recorded(folder_of(cluster.name))[program].stop(grace=0)
    time.sleep(3)
    Cluster.start(cluster.name, audit=True).kubectl("get", "--raw", "/readyz")
    since = time.monotonic()
    seconds = scenario.until_recovered(since, 90)
    scenario.until_at_rest()
    tell(scenario, f"{program} is killed and started again 3 s later", "tries again, later each time", seconds)


def _flags(lease):
    return "--leader-elect", "--lease-namespace=gemmaserve-system", f"--lease-name={lease}"


def _leads(operator):
    return "working" in operator.log.read_text()


def test_two_at_once_and_the_leader_is_killed(build, start, tell):
    scenario = build(lambda *flags: start(*flags, *_flags("killed-leader")))
    first = scenario.supervisor.process
    second = start(f"--namespaces={scenario.namespace}", *_flags("killed-leader"))
    with second:
        eventually(lambda: "waiting for lease" in second.log.read_text(), "the second stands by", 120)
        scenario.begin()
        since = time.monotonic()
        first.kill()
        seconds = scenario.until_recovered(since, 90)
        scenario.until_at_rest()
        assert second.exit_code is None
        assert (
            second.log.read_text().count("holding lease")
            + scenario.supervisor.process.log.read_text().count("holding lease")
            == 1
        )
    tell(
        scenario,
        "two operators, and the leader is killed",
        "another holds the lease once it has run out (15 s)",
        seconds,
    )


def test_a_leader_that_was_stopped_and_wakes_up(build, start, tell):
    """A process that hung for longer than its lease lasts must not write any more: another leads by now."""
    scenario = build(lambda *flags: start(*flags, *_flags("stopped-leader")))
    first = scenario.supervisor.process
    with start(f"--namespaces={scenario.namespace}", *_flags("stopped-leader")) as second:
        eventually(lambda: "waiting for lease" in second.log.read_text(), "the second stands by", 120)
        scenario.begin()
        eventually(lambda: scenario.fresh.of(JOB), "the rollout is under way")
        since = time.monotonic()
        first.signal(signal.SIGSTOP)
        try:
            eventually(lambda: _leads(second), "the second leads", 60, show=second.log.read_text)
        finally:
            first.signal(signal.SIGCONT)
        assert first.wait(10) == 1
        assert "is lost; ending at once" in first.log.read_text()
        seconds = scenario.until_recovered(since, 90)
        scenario.until_at_rest()
        assert second.exit_code is None
    tell(
        scenario,
        "two operators, and the leader hangs for longer than its lease, then wakes",
        "ends at once; the other leads",
        seconds,
    )


def test_a_leader_that_cannot_renew(build, start, tell):
    """The way to the API server is gone for longer than the lease's deadline: nobody may lead unseen."""
    scenario = build(lambda *flags: start(*flags, *_flags("cut-off")))
    first = scenario.supervisor.process
    scenario.begin()
    with scenario.proxy.fault(faults.Down()):
        assert first.wait(30) == 1
        assert "is lost; ending at once" in first.log.read_text()
    since = time.monotonic()
    seconds = scenario.until_recovered(since, 90)
    scenario.until_at_rest()
    tell(
        scenario,
        "the leader cannot renew its lease for 10 s",
        "ends at once; started again, it waits for the lease",
        seconds,
    )


def test_a_clock_that_jumps(build, start, tell):
    """Ahead and back by less than a rollout's deadline: what is waited for may take longer; nothing else changes."""
    scenario = build(lambda *flags: start(*flags, script=[HERE / "skewed_operator.py"]))
    scenario.begin()
    seconds = scenario.until_recovered(scenario.started, 60)
    scenario.until_at_rest()
    assert not scenario.supervisor.restarts
    tell(scenario, "the clock jumps 20 minutes ahead and back at each look", "goes on", seconds, lasting=True)
