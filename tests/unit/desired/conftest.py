import os
from pathlib import Path

import pytest
import yaml

from gemmaserve_operator.api.revision import Revision, VerifiedRevision
from gemmaserve_operator.api.spec import GemmaServeSpec
from gemmaserve_operator.desired.common import Owner

GOLDEN = Path(__file__).parent / "golden"
DIGEST = "sha256:" + "a" * 64

MINIMAL = {"model": {"uri": "hf://google/gemma-4-31b-it"}, "image": {"repository": "r.example/vllm", "tag": "0.1.0"}}
FULL = {
    "model": {
        "uri": "pvc://models/gemma/31b",
        "name": "gemma-4",
        "tokenSecretRef": {"name": "hf-token"},
    },
    "image": {"repository": "r.example/vllm", "digest": DIGEST, "pullSecrets": [{"name": "regcred"}]},
    "engine": {
        "maxModelLen": 131072,
        "args": ["--gpu-memory-utilization=0.92"],
        "env": [{"name": "VLLM_LOGGING_LEVEL", "value": "DEBUG"}],
    },
    "parallelism": {"tensor": 2},
    "resources": {"requests": {"cpu": 8, "memory": "64Gi"}, "limits": {"memory": "96Gi"}},
    "scheduling": {
        "nodeSelector": {"accelerator": "h100"},
        "tolerations": [{"key": "dedicated", "value": "llm", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "topologySpreadConstraints": [{"topologyKey": "kubernetes.io/hostname"}],
        "priorityClassName": "serving",
        "runtimeClassName": "nvidia",
    },
    "storage": {"cache": {"claim": "hf-cache"}, "sharedMemory": "16Gi"},
    "startupTimeoutSeconds": 605,
    "rollout": {"drainTimeoutSeconds": 120},
}


@pytest.fixture
def owner():
    return Owner(name="gemma4", namespace="team", uid="0b0c")


@pytest.fixture
def make_revision():
    def make(spec=None, **changes):
        return Revision.of(GemmaServeSpec.model_validate({**(spec or MINIMAL), **changes}))

    return make


@pytest.fixture
def make_verified(make_revision):
    def make(spec=None, **changes):
        return VerifiedRevision(make_revision(spec, **changes), DIGEST, '{"failed":0,"passed":61,"total":61}')

    return make


@pytest.fixture
def minimal():
    return MINIMAL


@pytest.fixture
def full():
    return FULL


@pytest.fixture
def check_golden():
    """Compares with a file that a person has read; GEMMASERVE_UPDATE_GOLDEN=1 writes it anew, to be read again."""

    def check(name, built):
        path = GOLDEN / f"{name}.yaml"
        if os.environ.get("GEMMASERVE_UPDATE_GOLDEN"):
            path.write_text(yaml.safe_dump(built, sort_keys=False, width=110))
        assert built == yaml.safe_load(path.read_text())

    return check
