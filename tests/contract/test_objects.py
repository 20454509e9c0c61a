"""What the builders make, on a real API server: accepted, not changed by its defaults, and safe under its policies."""

import copy
import json

import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.api.revision import Revision, VerifiedRevision
from gemmaserve_operator.api.spec import GemmaServeSpec
from gemmaserve_operator.desired.common import Owner
from gemmaserve_operator.desired.deployment import build_deployment
from gemmaserve_operator.desired.gate_job import build_gate_job
from gemmaserve_operator.desired.live_job import build_live_job
from gemmaserve_operator.desired.services import build_main_service, build_revision_service
from gemmaserve_operator.planning.drift import needs_apply
from gemmaserve_operator.planning.writes import annotate_job

DIGEST = "sha256:" + "a" * 64
NAMESPACE = "objects"
LEAST = {"model": {"uri": "hf://google/gemma-4"}, "image": {"repository": "r.example/vllm", "digest": DIGEST}}
SPECS = {
    "least": LEAST,
    "most": LEAST
    | {
        "model": {"uri": "pvc://models/gemma", "tokenSecretRef": {"name": "hf-token"}},
        "engine": {"args": ["--enforce-eager"], "env": [{"name": "A", "value": ""}, {"name": "B", "value": "b"}]},
        "parallelism": {"tensor": 2},
        "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": {"memory": "2048Mi"}},
        "scheduling": {
            "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "k", "value": "v", "effect": "NoExecute", "tolerationSeconds": 5}],
            "topologySpreadConstraints": [{"topologyKey": "kubernetes.io/hostname"}],
        },
        "storage": {"cache": {"claim": "cache"}, "sharedMemory": "0.5Gi"},
    },
    "oci": LEAST | {"model": {"uri": "oci://r.example/models/gemma:v1"}},
}
KINDS = ("Job", "live Job", "Deployment", "Service", "main Service")


def build(spec, kind):
    parsed = GemmaServeSpec.model_validate(spec)
    revision = Revision.of(parsed)
    # No such owner, so that the garbage collector does not know it either and leaves the object to the test.
    owner = Owner(name="gemma4", namespace=NAMESPACE, uid="00000000-0000-0000-0000-000000000000")
    verified = VerifiedRevision(revision, DIGEST, "{}")
    built = {
        "Job": lambda: build_gate_job(owner, revision, timeout_seconds=600),
        "live Job": lambda: build_live_job(owner, verified, parsed.verification.live),
        "Deployment": lambda: build_deployment(owner, verified, replicas=0, progress_deadline_seconds=3600),
        "Service": lambda: build_revision_service(owner, verified),
        "main Service": lambda: build_main_service(owner, revision.name, parsed.routing.service),
    }[kind]()
    built["metadata"].pop("ownerReferences")
    return built


@pytest.fixture(scope="module")
def apply(cluster):
    """Server-side apply, as the operator does it; the object as the API server then has it."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")

    def send(body, *flags):
        how = ("--server-side", f"--field-manager={names.FIELD_MANAGER}", *flags)
        return json.loads(cluster.kubectl("apply", *how, "-o", "json", "-f", "-", stdin=json.dumps(body)))

    yield send
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", SPECS)
def test_what_is_stored_is_what_was_wanted(apply, spec, kind):
    """Else the operator would write for ever."""
    wanted = build(SPECS[spec], kind)
    stored = apply(wanted)
    assert needs_apply(wanted, stored) is None
    again = apply(wanted | {"metadata": wanted["metadata"] | {"uid": stored["metadata"]["uid"]}})
    assert again["spec"] == stored["spec"]
    assert again["metadata"].get("generation") == stored["metadata"].get("generation")


def test_a_verdict_can_be_recorded_on_a_job(apply):
    job = apply(build(SPECS["most"], "Job"))
    job["metadata"]["ownerReferences"] = []
    body = copy.deepcopy(annotate_job(job, {names.ANNOTATION_VERIFICATION: "{}"}).body)
    recorded = apply(body)
    assert recorded["metadata"]["annotations"][names.ANNOTATION_VERIFICATION] == "{}"
    assert recorded["spec"] == job["spec"]


@pytest.mark.parametrize("kind", ["Job", "live Job", "Deployment"])
@pytest.mark.parametrize("spec", SPECS)
def test_pods_pass_the_restricted_policy_under_enforcement(apply, spec, kind):
    template = build(SPECS[spec], kind)["spec"]["template"]
    metadata = {
        "name": f"pod-{spec}-{kind}".lower().replace(" ", "-"),
        "namespace": NAMESPACE,
        "labels": template["metadata"]["labels"],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    assert apply(pod, "--dry-run=server")["metadata"]["name"] == metadata["name"]
