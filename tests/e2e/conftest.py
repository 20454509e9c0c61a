"""One cluster with a node for all tests here, with the operator in it and the demo's images in its registry."""

import os
import sys
from collections.abc import Callable, Iterator

import pytest

from localcluster import Cluster
from localcluster.demo import road
from localcluster.demo.watch import Watch
from localcluster.images.build import PushedImage, push_image
from localcluster.paths import cache_dir

GPUS = 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.node)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.fail("the end-to-end tests start a node, which needs root: run `sudo make e2e`")
    storage = cache_dir() / "registry"
    with Cluster.start("e2e", node=True, gpus=GPUS, registry_storage=storage) as started:
        yield started


@pytest.fixture(scope="session")
def serving_image(cluster: Cluster) -> PushedImage:
    assert cluster.registry is not None
    return push_image("demo", cluster.registry)


@pytest.fixture(scope="session")
def operator(cluster: Cluster) -> PushedImage:
    assert cluster.registry is not None
    image = push_image("operator", cluster.registry)
    road.install_operator(cluster, image)
    return image


@pytest.fixture(scope="session")
def watch_of(cluster: Cluster, operator: PushedImage) -> Callable[[str], Watch]:
    """Watches a GemmaServe by its name, with the operator installed."""

    def say(seconds: float, key: str, text: str) -> None:
        print(f"{seconds:6.0f} s  {key}: {text}", file=sys.stderr)

    return lambda name: Watch(cluster.kubectl, name, say=say)


@pytest.fixture(scope="session")
def watch(cluster: Cluster, watch_of: Callable[[str], Watch], serving_image: PushedImage) -> Watch:
    """Of the demo's GemmaServe, applied and Ready; the first looks show how it got there."""
    resource = road.read_example(serving_image)
    watch = watch_of(resource["metadata"]["name"])
    assert watch.look().resource == {}
    road.apply(cluster, resource)
    road.wait_ready(watch)
    return watch
