"""Streams without end through the Service, while everything behind it is changed, moved and killed."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localcluster import Cluster
from localcluster.demo import road
from localcluster.demo.watch import Look, Watch
from localcluster.images.build import PushedImage

ROLLOUT_TIMEOUT = 900
STREAMS = 2
MOST_SECONDS = 1800
LEAST_ANSWERS = 100
Json = dict[str, Any]


class Load:
    """`toolstream load`: a bounded number of streams, always `STREAMS` of them open, each with three calls to judge."""

    def __init__(self, url: str, folder: Path) -> None:
        self.kept = folder / "kept"
        self._out = (folder / "load.json").open("w+", encoding="utf-8")
        command = [sys.executable, "-m", "toolstream", "load", url, "--json", "--keep", str(self.kept)]
        command += ["-c", str(STREAMS), "-n", "1000000", "--max-seconds", str(MOST_SECONDS)]
        self.process = subprocess.Popen(command, stdout=self._out, stderr=subprocess.DEVNULL)

    def stop(self) -> Json:
        """The results: outcomes of all answers by their class, and latencies."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=180)
        self._out.seek(0)
        (level,) = json.load(self._out)["levels"]
        result: Json = level
        return result


@pytest.fixture
def load(cluster: Cluster, watch: Watch, tmp_path: Path) -> Iterator[Load]:
    started = Load(road.reach(cluster, watch.name), tmp_path)
    yield started
    if started.process.poll() is None:
        started.process.kill()
        started.process.wait()


def kill_operator(cluster: Cluster) -> None:
    """No time to end anything: as `kill -9` on its process."""
    cluster.kubectl(
        *(
            "delete",
            "pod",
            "--namespace",
            road.OPERATOR_NAMESPACE,
            "--selector",
            "app.kubernetes.io/component=operator",
        ),
        *("--grace-period=0", "--force", "--wait=false"),
    )


def serving_pods(look: Look) -> dict[str, tuple[str, int]]:
    """Uid and restarts of each serving pod that is not on its way out."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(c["restartCount"] for c in pod["status"]["containerStatuses"]),
        )
        for pod in look.of_kind("Pod")
        if pod["metadata"]["labels"].get("app.kubernetes.io/component") == "server"
        and "deletionTimestamp" not in pod["metadata"]
    }


def moved_from(watch: Watch, old: str) -> Callable[[Look], bool]:
    """Whether another revision serves and the old one's pods are gone; no look may find the Service empty."""

    def moved(look: Look) -> bool:
        assert look.endpoints(watch.name), "the Service must never be without an endpoint"
        left = [item for item in look.of_kind("Deployment") if revision_of(item) == old]
        return look.ready and active(look) != old and not left

    return moved


def revision_of(item: Json) -> str:
    name: str = item["metadata"]["labels"]["gemmaserve.dev/revision"]
    return name


def active(look: Look) -> str:
    name: str = look.resource["status"]["activeRevision"]["name"]
    return name


def phases_of(old: str) -> dict[str, Callable[[Look], bool]]:
    """The moments of a rollout away from `old` at which the operator is killed.

    The image is verified already, so that there is no parser gate; the contract tests kill in that, too.
    """

    def of_new(look: Look, kind: str) -> list[Json]:
        return [item for item in look.of_kind(kind) if item["metadata"]["labels"].get("gemmaserve.dev/revision") != old]

    return {
        "the spec is new": lambda look: bool(look.resource),
        "the pods start": lambda look: bool(of_new(look, "Deployment")),
        "the live gate runs": lambda look: any(
            job["metadata"]["name"].endswith("-live") for job in of_new(look, "Job")
        ),
        "traffic has moved": lambda look: active(look) != old,
    }


def test_no_request_fails_whatever_is_changed_or_killed(
    cluster: Cluster, watch: Watch, serving_image: PushedImage, operator: PushedImage, load: Load
) -> None:
    first = active(watch.look())
    pods = serving_pods(watch.looks[-1])

    # The chart is upgraded: another operator pod, and the serving pods are the same.
    road.install_operator(cluster, operator, "podAnnotations.upgraded=yes")
    assert serving_pods(watch.look()) == pods

    # A rollout, in each phase of which the operator is killed.
    changed = road.read_example(serving_image)
    changed["spec"]["engine"]["maxModelLen"] = 2048
    road.apply(cluster, changed)
    for phase, reached in phases_of(first).items():
        watch.until(reached, phase, ROLLOUT_TIMEOUT)
        kill_operator(cluster)
    watch.until(moved_from(watch, first), "the new revision to serve", ROLLOUT_TIMEOUT)
    second = active(watch.looks[-1])

    # Back again, with an operator's upgrade in the middle.
    road.apply(cluster, road.read_example(serving_image))
    watch.until(phases_of(second)["the pods start"], "the old revision's pods to start", ROLLOUT_TIMEOUT)
    road.install_operator(cluster, operator, "podAnnotations.upgraded=again")
    watch.until(moved_from(watch, second), "the old revision to serve again", ROLLOUT_TIMEOUT)
    assert active(watch.looks[-1]) == first

    # One of two serving pods is deleted, as a drained node does it.
    cluster.kubectl("scale", "gemmaserve", watch.name, "--replicas=2")
    watch.until(lambda look: look.ready and len(look.endpoints(watch.name)) == 2, "two pods", ROLLOUT_TIMEOUT)
    gone, *_ = serving_pods(watch.looks[-1])
    cluster.kubectl("delete", "pod", gone, "--wait=false")
    watch.until(lambda look: gone not in json.dumps(look.objects), "it has drained and is gone", ROLLOUT_TIMEOUT)
    cluster.kubectl("scale", "gemmaserve", watch.name, "--replicas=1")
    watch.until(lambda look: look.ready and len(look.endpoints(watch.name)) == 1, "one pod again", ROLLOUT_TIMEOUT)

    assert load.process.poll() is None, "the load must have gone on to the end"
    result = load.stop()
    print(json.dumps(result), file=sys.stderr)
    assert set(result["outcomes"]) == {"ok"}, result["outcomes"]
    assert result["outcomes"]["ok"] > LEAST_ANSWERS
