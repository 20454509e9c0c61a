"""What the world does to a rollout, each as a condition with the next step, in the API server's own words."""

import json
import signal
from contextlib import contextmanager

import pytest
import yaml

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import revision_hash
from gemmaserve_operator.api.spec import GemmaServeSpec
from gemmaserve_operator.cluster.kinds import DEPLOYMENT, JOB, POD, SERVICE, Kind
from gemmaserve_operator.planning.refusals import explain_refusal
from localcluster import ClusterError

from .kube import DIGEST, REPOSITORY, eventually

QUOTA = Kind("v1", "ResourceQuota", "resourcequotas")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
NAMESPACE = Kind("v1", "Namespace", "namespaces")
POLICY = Kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
BINDING = Kind(
    "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"
)
WEBHOOK = Kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
REVISION = revision_hash(
    GemmaServeSpec.model_validate(
        {"model": {"uri": "hf://google/gemma-4-31b-it"}, "image": {"repository": REPOSITORY, "digest": DIGEST}}
    )
)
"""Of what `resource.create()` makes."""
FORBIDDEN = "the platform team says no"


@pytest.fixture(autouse=True)
def no_tracebacks(operator, show_log):
    """Nothing that the world does is news to the operator."""
    before = operator.log.stat().st_size
    yield
    assert "Traceback" not in operator.log.read_text()[before:]


def told(resource, reason, *words, timeout=30):
    """Wait until the condition tells it, and give its message."""

    def tells():
        degraded = resource.condition("Degraded")
        return degraded.get("status") == "True" and degraded["reason"] == reason and degraded["message"]

    message = eventually(tells, f"{reason} is told", timeout, show=lambda: resource.status)
    assert resource.condition("Ready")["reason"] == reason
    for word in words:
        assert word in message
    return message


def limit(kube, namespace, **hard):
    hard = {key.replace("__", "/").replace("_", "."): value for key, value in hard.items()}
    kube.create(QUOTA, {"metadata": {"name": "team", "namespace": namespace}, "spec": {"hard": hard}})
    eventually(
        lambda: (kube.get(QUOTA, namespace, "team").get("status") or {}).get("hard") == hard, "the quota is in force"
    )


def test_a_quota_on_objects(operator, kube, resource):
    limit(kube, resource.namespace, count__jobs_batch="0")
    resource.create()
    told(resource, "QuotaExceeded", "Job gemma4-", "exceeded quota: team", "kubectl describe quota")
    kube.delete(QUOTA, resource.namespace, "team")
    resource.until_ready(120)


def test_a_quota_on_gpus_while_another_revision_serves(operator, kube, resource):
    resource.create().until_ready()
    endpoints = resource.endpoints()
    hard = {"requests.nvidia.com/gpu": "1"}
    kube.create(QUOTA, {"metadata": {"name": "team", "namespace": resource.namespace}, "spec": {"hard": hard}})
    resource.edit(engine={"maxModelLen": 1024})
    told(resource, "QuotaExceeded", "pods of revision", "exceeded quota: team")
    assert resource.endpoints() == endpoints
    kube.delete(QUOTA, resource.namespace, "team")
    resource.until_ready(120)


def test_a_quota_on_the_gates_pod(operator, kube, resource):
    limit(kube, resource.namespace, pods="0")
    resource.create()
    told(resource, "PodsRefused", "has made no pod of Job", "kubectl describe job", timeout=60)
    kube.delete(QUOTA, resource.namespace, "team")
    resource.until_ready(120)


@contextmanager
def policy(kube, namespace, group, version, plural):
    """A ValidatingAdmissionPolicy that denies the creation of a kind in one namespace."""
    rule = {"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": ["CREATE"]}
    server = f"object.metadata.?labels['{names.LABEL_COMPONENT}'].orValue('') != '{names.COMPONENT_SERVER}'"
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": server, "message": FORBIDDEN}],
        "failurePolicy": "Fail",
    }
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {"policyName": namespace, "validationActions": ["Deny"], "matchResources": where}
    kube.create(POLICY, {"metadata": {"name": namespace}, "spec": spec})
    kube.create(BINDING, {"metadata": {"name": namespace}, "spec": binding})
    try:
        yield
    finally:
        kube.delete(BINDING, None, namespace)
        kube.delete(POLICY, None, namespace)


def in_force(cluster, namespace, body, words=FORBIDDEN):
    def denied():
        try:
            cluster.kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=json.dumps(body))
        except ClusterError as error:
            return words in str(error)
        return False

    eventually(denied, "the policy is in force", 60)


def probe(kind, spec):
    metadata = {"name": "probe", "labels": {names.LABEL_COMPONENT: names.COMPONENT_SERVER}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def test_a_policy_that_denies_an_object(operator, cluster, kube, resource):
    with policy(kube, resource.namespace, "apps", "v1", "deployments"):
        in_force(
            cluster,
            resource.namespace,
            probe(DEPLOYMENT, {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}),
        )
        resource.create()
        told(resource, "AdmissionDenied", f"Deployment gemma4-{REVISION}", FORBIDDEN)
        assert resource.condition("ParserVerified")["status"] == "True"
    resource.until_ready(120)


def test_a_policy_that_denies_pods(operator, cluster, kube, resource):
    with policy(kube, resource.namespace, "", "v1", "pods"):
        in_force(cluster, resource.namespace, probe(Kind("v1", "Pod", "pods"), TEMPLATE["spec"]))
        resource.create()
        told(resource, "AdmissionDenied", "pods of revision", FORBIDDEN)
    resource.until_ready(180)


def test_a_webhook_that_does_not_answer(operator, cluster, kube, resource):
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"], "operations": ["CREATE"]}
    hook = {
        "name": "down.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": resource.namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    kube.create(WEBHOOK, {"metadata": {"name": resource.namespace}, "webhooks": [hook]})
    try:
        template = {"spec": TEMPLATE["spec"] | {"restartPolicy": "Never"}}
        in_force(cluster, resource.namespace, probe(JOB, {"template": template}), "failed calling webhook")
        resource.create()
        told(resource, "AdmissionDenied", "Job gemma4-", "failed calling webhook", "down.example.com", timeout=60)
    finally:
        kube.delete(WEBHOOK, None, resource.namespace)
    resource.until_ready(120)


@pytest.mark.parametrize(
    ("kind", "name", "spec"),
    [
        (JOB, names.gate_job_name("gemma4", REVISION), {"suspend": True, "template": TEMPLATE}),
        (
            DEPLOYMENT,
            names.revision_name("gemma4", REVISION),
            {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
        ),
        (SERVICE, names.revision_name("gemma4", REVISION), {"selector": {"a": "b"}, "ports": [{"port": 1234}]}),
        (SERVICE, "gemma4", {"selector": {"a": "b"}, "ports": [{"port": 1234}]}),
    ],
    ids=["gate", "Deployment", "Service of the revision", "Service"],
)
@pytest.mark.parametrize("labelled", [False, True], ids=["without our labels", "with our labels"])
def test_somebody_elses_object_of_the_name(operator, kube, resource, kind, name, spec, labelled):
    """Never adopted, never overwritten, whether it bears our labels or not."""
    spec = json.loads(json.dumps(spec))
    if kind == JOB:
        spec["template"]["spec"]["restartPolicy"] = "Never"
    labels = names.labels("gemma4", names.COMPONENT_SERVER, REVISION) if labelled else {}
    metadata = {"name": name, "namespace": resource.namespace, "labels": labels}
    theirs = kube.create(kind, {"metadata": metadata, "spec": spec})
    resource.create()
    told(resource, "NameConflict", f"{kind.kind} {name}", "give this GemmaServe another name")
    found = kube.get(kind, resource.namespace, name)
    assert found["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert found["spec"] == theirs["spec"]
    assert not found["metadata"].get("ownerReferences")
    assert names.FIELD_MANAGER not in {entry["manager"] for entry in found["metadata"]["managedFields"]}
    kube.delete(kind, resource.namespace, name, propagationPolicy="Background")
    resource.until_ready(120)


def test_a_field_that_cannot_be_changed_back(operator, kube, resource):
    resource.create().until_ready()
    name = names.revision_name("gemma4", REVISION)
    operator.signal(signal.SIGSTOP)
    try:
        made = kube.get(DEPLOYMENT, resource.namespace, name)
        kube.delete(DEPLOYMENT, resource.namespace, name, propagationPolicy="Background")
        eventually(lambda: kube.get(DEPLOYMENT, resource.namespace, name) is None, "it is gone")
        metadata = {
            key: made["metadata"][key] for key in ("name", "namespace", "labels", "annotations", "ownerReferences")
        }
        made["spec"]["selector"]["matchLabels"]["somebody"] = "else"
        made["spec"]["template"]["metadata"]["labels"]["somebody"] = "else"
        kube.create(DEPLOYMENT, {"metadata": metadata, "spec": made["spec"]})
    finally:
        operator.signal(signal.SIGCONT)
    told(resource, "ImmutableField", f"Deployment {name}", "field is immutable", "delete it", timeout=60)
    kube.delete(DEPLOYMENT, resource.namespace, name, propagationPolicy="Background")
    resource.until_ready(120)


def test_a_namespace_that_is_being_deleted(operator, cluster, kube, kubelet, resource):
    """The GemmaServe goes with it; what comes too late is refused in words that are understood."""
    held = {"metadata": {"name": "held", "namespace": resource.namespace, "finalizers": ["example.com/held"]}}
    kube.create(CONFIG_MAP, held)
    kubelet.reports[f"{REPOSITORY}@{DIGEST}"] = None
    try:
        resource.create()
        eventually(lambda: [pod["status"]["phase"] for pod in resource.of(POD)] == ["Running"], "the gate runs")
        kube.delete(NAMESPACE, None, resource.namespace)
        eventually(
            lambda: kube.get(JOB, resource.namespace, names.gate_job_name("gemma4", REVISION)) is None, "it goes", 60
        )
    finally:
        del kubelet.reports[f"{REPOSITORY}@{DIGEST}"]
    with pytest.raises(ClusterError) as refused:
        cluster.kubectl("create", "-n", resource.namespace, "configmap", "late")
    problem = explain_refusal("ConfigMap late", str(refused.value), otherwise="Otherwise")
    assert problem.reason == "NamespaceTerminating"
    kube.patch(CONFIG_MAP, resource.namespace, "held", {"metadata": {"finalizers": None}})
    eventually(lambda: kube.get(NAMESPACE, None, resource.namespace) is None, "the namespace is gone", 60)
    assert yaml.safe_load(cluster.kubectl("get", "gs", "-n", resource.namespace, "-o", "yaml"))["items"] == []
