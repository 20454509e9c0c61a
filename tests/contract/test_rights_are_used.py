"""The chart grants what the operator asks for and nothing more, by the API server's audit log of whole rollouts."""

import itertools
import subprocess

import pytest
from kubernetes.aio.config import kube_config

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.apply import StaleStoreError, Writer
from gemmaserve_operator.cluster.client import connect
from gemmaserve_operator.cluster.kinds import CONTROLLER_REVISION, DEPLOYMENT, GEMMASERVE, JOB, SERVICE, Kind
from gemmaserve_operator.cluster.store import Store
from localcluster import program

from .conftest import SYSTEM
from .kube import DIGEST, REPOSITORY, eventually

pytestmark = pytest.mark.timeout(1200)

NAMESPACE = Kind("v1", "Namespace", "namespaces")
LEASE = "rights"
NOT_ASKED_FOR = {("gemmaserve.dev", "gemmaserves/finalizers", "update")}
"""Judged by an admission plugin (OwnerReferencesPermissionEnforcement) of some clusters: no request asks for it."""


@pytest.fixture
def granted(rendered):
    """Group, resource and verb of each right that the chart's roles give the operator."""
    bound = {
        (document["roleRef"]["kind"], document["roleRef"]["name"])
        for document in rendered
        if document["kind"] in ("RoleBinding", "ClusterRoleBinding")
    }
    return {
        right
        for document in rendered
        if (document["kind"], document["metadata"]["name"]) in bound
        for rule in document["rules"]
        for right in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
    }


def used(requests):
    """Group, resource and verb of each request. Server-side apply that creates needs the right to create, too."""
    found = set()
    for entry in requests:
        reference = entry.get("objectRef") or {}
        if "resource" not in reference:
            continue
        resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
        right = reference.get("apiGroup", ""), resource
        found.add((*right, entry["verb"]))
        if entry["verb"] == "patch" and entry["responseStatus"]["code"] == 201:
            found.add((*right, "create"))
    return found


def lose_label(kube, kind, namespace, name):
    """Somebody takes our label away: the watch then says that it is gone, and its name is taken."""
    label = names.LABEL_NAME
    kube.patch(kind, namespace, name, {"metadata": {"labels": {label: None}}})
    eventually(
        lambda: kube.get(kind, namespace, name)["metadata"]["labels"].get(label), f"{name} has its label back", 60
    )


async def meet_another_of_the_name(kube, operator_kubeconfig, monkeypatch, resource):
    """A GemmaServe is deleted and made anew, and a store that has not heard of it has the old one's status written."""
    monkeypatch.setenv("KUBECONFIG", str(operator_kubeconfig))
    # The library reads the variable once, when it is imported.
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(operator_kubeconfig))
    old = resource.object
    kube.delete(GEMMASERVE, resource.namespace, resource.name, propagationPolicy="Background")
    resource.create().until_ready(120)
    async with connect() as client:
        with pytest.raises(StaleStoreError):
            await Writer(client, Store()).write_status(old, old["status"] | {"phase": "Failed"})
    assert resource.status["phase"] == "Serving"


def walk(kube, kubelet, resource):
    """Everything that happens to a GemmaServe in its life."""
    namespace = resource.namespace
    kubelet.reports[f"{REPOSITORY}@{DIGEST}"] = None
    resource.create(revisionHistoryLimit=1)
    (gate,) = eventually(lambda: resource.of(JOB), "the gate runs")
    lose_label(kube, JOB, namespace, gate["metadata"]["name"])
    del kubelet.reports[f"{REPOSITORY}@{DIGEST}"]
    resource.until_ready()
    first = names.revision_name("gemma4", resource.status["activeRevision"]["name"])
    lose_label(kube, DEPLOYMENT, namespace, first)
    lose_label(kube, SERVICE, namespace, "gemma4")
    stranger = {"metadata": {"name": first, "namespace": namespace}, "data": {}, "revision": 1}
    kube.create(CONTROLLER_REVISION, stranger)
    resource.edit(engine={"maxModelLen": 1})
    eventually(lambda: resource.condition("Degraded").get("reason") == "WriteRefused", "a name is taken", 90)
    kube.delete(CONTROLLER_REVISION, namespace, first)
    for number in range(2, 5):
        # Of each revision another image, so that each has a gate of its own, and old Jobs go.
        resource.edit(
            image={"repository": REPOSITORY, "digest": f"sha256:{number:064x}"}, engine={"maxModelLen": number}
        )
        resource.until_ready(120)
        eventually(lambda: len(resource.of(DEPLOYMENT)) == 1, "the old revision is gone", 90)
    eventually(lambda: len(resource.of(CONTROLLER_REVISION)) == 1, "old records are gone")
    kube.delete(GEMMASERVE, namespace, "gemma4", propagationPolicy="Background")
    eventually(lambda: not resource.of(DEPLOYMENT), "it is gone", 60)


async def test_every_right_is_used_and_none_is_missing(
    cluster, kube, kubelet, start_operator, operator_kubeconfig, resource, requests_of, granted, monkeypatch
):
    restricted = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    kube.patch(NAMESPACE, None, resource.namespace, {"metadata": {"labels": restricted}})
    scope = f"--namespaces={resource.namespace}"
    # By itself, since a busy machine may make it lose the lease in the middle of the walk.
    with start_operator(scope, "--leader-elect", f"--lease-namespace={SYSTEM}", f"--lease-name={LEASE}") as leader:
        eventually(lambda: "working" in leader.log.read_text(), "it leads", 300, show=leader.log.read_text)
    with start_operator(scope) as operator:
        eventually(lambda: "working" in operator.log.read_text(), "it works", 300, show=operator.log.read_text)
        walk(kube, kubelet, resource)
        other = type(resource)(kube, resource.namespace, "other").create().until_ready(120)
        await meet_another_of_the_name(kube, operator_kubeconfig, monkeypatch, other)
        assert operator.exit_code is None
        log = operator.log.read_text()
    # Watches are in the audit log once they have ended.
    requests = requests_of()
    refused = [entry["requestURI"] for entry in requests if entry["responseStatus"]["code"] in (401, 403)]
    assert refused == []
    assert "Traceback" not in log
    rights = used(requests)
    assert rights - granted == set(), "asked for and not granted: by whom, then?"
    assert granted - rights - NOT_ASKED_FOR == set(), "granted and never asked for"


def test_a_token_of_the_operator_cannot_list_secrets(operator_kubeconfig):
    for where in (["--all-namespaces"], ["--namespace", SYSTEM]):
        done = subprocess.run(
            [program("kubectl"), "--kubeconfig", operator_kubeconfig, "get", "secrets", *where],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 1
        assert "Forbidden" in done.stderr
        assert 'cannot list resource "secrets"' in done.stderr
