"""One API server for all tests here, with the chart's roles, a stand-in for kubelets, and an operator under them."""

import itertools
import json
import subprocess
import uuid
from pathlib import Path

import pytest
import yaml

from localcluster import Cluster, program

from .fake_kubelet import FakeKubelet
from .kube import Kube, Resource, eventually
from .operator_process import OperatorProcess

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "gemmaserve-operator"
SYSTEM = "gemmaserve-system"
RESYNC_SECONDS = 10
"""Short, so that tests see what lists do."""
_VALUES = ("--kube-version", "1.37.0", "--set", "image.repository=unused")
_NEEDED = {"CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.apiserver)


@pytest.fixture(scope="session")
def cluster():
    with Cluster.start(f"contract-{uuid.uuid4().hex[:8]}", audit=True) as started:
        yield started


@pytest.fixture(scope="session")
def kube(cluster):
    return Kube(cluster.kubeconfig)


@pytest.fixture(scope="session")
def rendered():
    """The chart's objects, as helm renders them."""
    text = subprocess.run(
        [program("helm"), "template", "gemmaserve", CHART, "--namespace", SYSTEM, *_VALUES],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.fixture(scope="session")
def installed(cluster, rendered):
    """The chart's CRD, service account and roles; the name of the service account."""
    objects = [document for document in rendered if document["kind"] in _NEEDED]
    cluster.kubectl("create", "namespace", SYSTEM)
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    cluster.kubectl("wait", "--for=condition=Established", "crd/gemmaserves.gemmaserve.dev", "--timeout=30s")
    return next(document["metadata"]["name"] for document in objects if document["kind"] == "ServiceAccount")


@pytest.fixture(scope="session")
def operator_kubeconfig(cluster, installed, tmp_path_factory):
    """A kubeconfig of the service account that the chart makes, with no more rights than the chart's roles give."""
    token = cluster.kubectl("create", "token", installed, "--namespace", SYSTEM, "--duration=2h").strip()
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = tmp_path_factory.mktemp("operator") / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)
    return path


@pytest.fixture(scope="session")
def operator_user(installed):
    return f"system:serviceaccount:{SYSTEM}:{installed}"


@pytest.fixture(scope="session")
def kubelet(kube, installed):
    with FakeKubelet(kube) as running:
        yield running


@pytest.fixture(scope="session")
def start_operator(operator_kubeconfig, tmp_path_factory):
    """Start an operator; its log is shown when a test fails."""
    logs = tmp_path_factory.mktemp("logs")
    count = itertools.count(1)

    def start(*flags, crash_after=None):
        log = logs / f"{next(count)}.log"
        return OperatorProcess(
            operator_kubeconfig, log, f"--resync-seconds={RESYNC_SECONDS}", *flags, crash_after=crash_after
        )

    return start


@pytest.fixture(scope="module")
def operator(start_operator, cluster, kubelet):
    """An operator that looks after all namespaces for as long as the module's tests run.

    What they made goes with it: the next module's operator would look after that, too.
    """
    with start_operator() as running:
        eventually(lambda: "working" in running.log.read_text(), "the operator works", 120, show=running.log.read_text)
        yield running
        assert running.exit_code is None, running.log.read_text()
    cluster.kubectl("delete", "gemmaserves", "--all", "--all-namespaces", "--wait=false")


@pytest.fixture
def show_log(operator, request):
    """Print what the operator has logged meanwhile when the test fails."""
    before = operator.log.stat().st_size
    yield
    print(operator.log.read_text()[before:])


@pytest.fixture(scope="session")
def new_namespace(cluster):
    count = itertools.count(1)

    def make(prefix="team"):
        name = f"{prefix}-{next(count)}"
        cluster.kubectl("create", "namespace", name)
        return name

    return make


@pytest.fixture
def resource(kube, new_namespace):
    """A GemmaServe, not created yet, in a namespace of its own."""
    return Resource(kube, new_namespace())


@pytest.fixture
def requests_of(cluster, operator_user):
    """The operator's requests from a moment on, from the API server's audit log: verb, resource, name."""
    start = cluster.audit_log.stat().st_size

    def read():
        with cluster.audit_log.open() as log:
            log.seek(start)
            entries = [json.loads(line) for line in log]
        return [
            entry
            for entry in entries
            if entry["user"]["username"] == operator_user and entry["stage"] == "ResponseComplete"
        ]

    return read
