"""One scenario under every fault: three resources on three roads at once.

`good` goes on to a second image whose gate passes, `bad` to one whose gate fails, `fresh` is new.
"""

import time
from dataclasses import dataclass

from tests.contract.fake_kubelet import FakeKubelet, failed_report
from tests.contract.kube import REPOSITORY, Kube, Resource

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, JOB
from gemmaserve_operator.planning.objects import label

from .guard import Guard
from .proxy import FaultProxy
from .supervisor import Supervisor

FIRST, SECOND, FAILING, THIRD = ("sha256:" + letter * 64 for letter in "abfc")
TRIES = 150
"""Writes that may be tried in a whole scenario, which takes about 50: what fails is tried again seldom."""
REST_SECONDS = 2.0
"""For so long nothing is written once the end is reached."""


def image(digest: str) -> str:
    return f"{REPOSITORY}@{digest}"


@dataclass
class Scenario:
    """What a test holds while it lets things go wrong."""

    kube: Kube
    kubelet: FakeKubelet
    proxy: FaultProxy
    supervisor: Supervisor
    guard: Guard
    namespace: str
    started: float = 0.0

    def __post_init__(self):
        self.good, self.bad, self.fresh = (Resource(self.kube, self.namespace, n) for n in ("good", "bad", "fresh"))
        self.kubelet.reports[image(FAILING)] = failed_report("parallel_calls")

    def prepare(self):
        """Two resources that serve."""
        for resource in (self.good, self.bad):
            resource.create(image=_spec(FIRST))
        for resource in (self.good, self.bad):
            resource.until_ready()

    def begin(self):
        """All three set out."""
        self.started = time.monotonic()
        self.good.edit(image=_spec(SECOND))
        self.bad.edit(image=_spec(FAILING))
        self.fresh.create(image=_spec(THIRD))

    @property
    def missing(self) -> list[str]:
        """What is not yet as it is to be in the end."""
        wanted = {
            "good is Ready": lambda: self.good.ready,
            "fresh is Ready": lambda: self.fresh.ready,
            "good has one Deployment, of the second image": lambda: _images(self.good) == [image(SECOND)],
            "bad has one Deployment, of the first image": lambda: _images(self.bad) == [image(FIRST)],
            "good has a pod behind it": lambda: len(self.good.endpoints()) == 1,
            "bad has a pod behind it": lambda: len(self.bad.endpoints()) == 1,
            "fresh has a pod behind it": lambda: len(self.fresh.endpoints()) == 1,
            "bad says why": lambda: self.bad.condition("Degraded").get("reason") == "ParserRegressionsFailed",
            "bad names the test": lambda: "parallel_calls" in self.bad.condition("Degraded").get("message", ""),
            "bad is Available": lambda: self.bad.condition("Available").get("status") == "True",
            "good is not Degraded": lambda: self.good.condition("Degraded").get("status") == "False",
            "fresh is not Degraded": lambda: self.fresh.condition("Degraded").get("status") == "False",
            "no Job is one too many": lambda: len(_gates(self.good)) <= 2 and len(_gates(self.fresh)) == 1,
        }
        return [what for what, holds in wanted.items() if not holds()]

    def until_recovered(self, since: float, timeout: float) -> float:
        """Seconds from `since` until everything is as it is to be."""
        deadline = time.monotonic() + timeout
        while (missing := self.missing) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not missing, f"not within {timeout:.0f} s: {missing}\n{self._show()}"
        return time.monotonic() - since

    def until_at_rest(self):
        """Nothing is written any more, in the shortest time that shows it."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            start = time.monotonic()
            time.sleep(REST_SECONDS)
            if not self.proxy.writes(start):
                break
        else:
            last = [f"{e.seen.method} {e.seen.path} {e.status}" for e in self.proxy.writes()[-10:]]
            raise AssertionError(f"still writing after 30 s: {last}")
        assert not self.missing
        assert not self.guard.complaints, self.guard.complaints
        assert self.guard.looks > 5

    def _show(self) -> str:
        return "\n".join(f"{r.name}: {r.status}" for r in (self.good, self.bad, self.fresh))


def _spec(digest):
    return {"repository": REPOSITORY, "digest": digest}


def _images(resource):
    return [d["spec"]["template"]["spec"]["containers"][0]["image"] for d in resource.of(DEPLOYMENT)]


def _gates(resource):
    return [job for job in resource.of(JOB) if label(job, names.LABEL_COMPONENT) == names.COMPONENT_GATE]
