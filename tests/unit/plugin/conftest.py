"""kubectl's stand-in: the same calls, answered from the model cluster that the planner's tests run against."""

import copy

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.plugin import cli
from gemmaserve_operator.plugin.kubectl import KubectlError

from ..planning.conftest import Cluster, failed_report  # noqa: TID252 - one model for the planner and for what shows it

KINDS = {"deployments.apps": "Deployment", "jobs.batch": "Job", "pods": "Pod", "services": "Service"}
KINDS |= {"controllerrevisions.apps": "ControllerRevision"}


class FakeKubectl:
    """Attributes: `answers`, what `run` prints, by the words it is called with; `refusal`, raised by every call."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.answers = {}
        self.refusal = None

    def get(self, name):
        self._refuse()
        if name != "gemma4":
            raise KubectlError(f'(NotFound): gemmaserves "{name}" not found')
        resource = copy.deepcopy(self.cluster.resource)
        resource["metadata"]["resourceVersion"] = "7"
        return resource

    def list_all(self, *, all_namespaces):
        return [self.get("gemma4")]

    def children(self, name, kinds):
        self._refuse()
        return [obj | {"kind": KINDS[kind]} for kind in kinds.split(",") for obj in self.cluster.of(KINDS[kind])]

    def merge(self, name, patch):
        self._refuse()
        annotations = patch.get("metadata", {}).get("annotations", {})
        self.cluster.resource["metadata"]["annotations"].update(annotations)
        if "spec" in patch:
            self.cluster.edit(**patch["spec"])

    def patch(self, name, operations):
        test, *changes = operations
        assert test == {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
        for change in changes:
            field = change["path"].removeprefix("/spec/")
            if change["op"] == "remove":
                del self.cluster.resource["spec"][field]
            else:
                self.cluster.resource["spec"][field] = change["value"]
        self.cluster.resource["metadata"]["generation"] += 1

    def run(self, *arguments, namespace=None):
        for words, answer in self.answers.items():
            if words in " ".join(arguments):
                return answer
        raise KubectlError(f"Forbidden: {arguments[0]} {arguments[1]}")

    def _refuse(self):
        if self.refusal is not None:
            raise KubectlError(self.refusal)


@pytest.fixture
def serving():
    """A cluster in which a first revision serves."""
    return Cluster().settle()


@pytest.fixture
def rolled(serving):
    """A second revision has replaced the first, which is gone."""
    serving.edit(engine={"maxModelLen": 1})
    serving.settle()
    serving.tick(60)
    return serving.settle()


@pytest.fixture
def first(serving):
    """The first revision."""
    return serving.selected


@pytest.fixture
def fail_gate():
    def fail(cluster):
        cluster.reports[f"r.example/vllm@sha256:{'c' * 64}"] = failed_report()
        cluster.edit(image={"repository": "r.example/vllm", "digest": "sha256:" + "c" * 64})
        return cluster.settle()

    return fail


@pytest.fixture
def kubectl(serving, monkeypatch):
    fake = FakeKubectl(serving)
    monkeypatch.setattr(cli, "Kubectl", lambda *_: fake)
    return fake


@pytest.fixture
def retry_annotation():
    return names.ANNOTATION_RETRY
