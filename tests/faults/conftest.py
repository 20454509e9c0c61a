"""An operator behind a fault proxy, started again when it ends, on the API server of the contract tests' making."""

import itertools
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from tests.contract.conftest import (  # noqa: F401 - fixtures are found by their names
    cluster,
    installed,
    kube,
    kubelet,
    new_namespace,
    operator_kubeconfig,
    rendered,
)
from tests.contract.operator_process import OperatorProcess

from .guard import Guard
from .proxy import FaultProxy
from .scenario import FAILING, TRIES, Scenario, image
from .supervisor import Supervisor

RESYNC_SECONDS = 10


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.apiserver)
            item.add_marker(pytest.mark.timeout(180))


@pytest.fixture(scope="session")
def proxy(cluster):  # noqa: F811
    with FaultProxy(cluster.kubeconfig) as running:
        yield running


@pytest.fixture(scope="session")
def proxied_kubeconfig(operator_kubeconfig, proxy, tmp_path_factory):  # noqa: F811
    """The operator's own account, by way of the proxy."""
    config = yaml.safe_load(operator_kubeconfig.read_text())
    config["clusters"][0]["cluster"] = {"server": proxy.url}
    path = tmp_path_factory.mktemp("proxied") / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)
    return path


@pytest.fixture
def start(proxied_kubeconfig, tmp_path):
    """Start one operator process; all of a test write to one log each, shown when the test fails."""
    count = itertools.count(1)
    logs = []

    def one(*flags, script=None):
        log = tmp_path / f"{next(count)}.log"
        logs.append(log)
        return OperatorProcess(proxied_kubeconfig, log, f"--resync-seconds={RESYNC_SECONDS}", *flags, script=script)

    yield one
    for log in logs:
        print(f"--- {log.name}\n{log.read_text()}")


@pytest.fixture
def build(kube, kubelet, proxy, new_namespace):  # noqa: F811
    """The scenario with operators of the test's choice, and a guard; its resources are gone afterwards."""
    with ExitStack() as stack:

        def one(start_one):
            namespace = new_namespace("faults")
            supervisor = stack.enter_context(Supervisor(lambda: start_one(f"--namespaces={namespace}")))
            guard = stack.enter_context(Guard(kube, namespace, {image(FAILING)}))
            scenario = Scenario(kube, kubelet, proxy, supervisor, guard, namespace)
            scenario.prepare()
            return scenario

        yield one


@pytest.fixture
def scenario(build, start):
    """One operator, supervised, with two resources that serve."""
    return build(start)


@pytest.fixture
def tell(record_property, request):
    """Note for docs/reliability.md what a fault was, what happened, and how long it took until all was well again."""

    def note(scenario, fault, happens, seconds, *, lasting=False):
        tried = scenario.proxy.writes(scenario.started)
        noted = {
            "order": request.session.items.index(request.node),
            "fault": fault,
            "happens": happens,
            "seconds": round(seconds, 1),
            "lasting": lasting,
            "restarts": scenario.supervisor.restarts,
            "writes": len(tried),
            "tries": TRIES,
        }
        for key, value in noted.items():
            record_property(key, value)
        assert len(tried) <= TRIES, [f"{e.seen.method} {e.seen.path} {e.status}" for e in tried]

    return note
