"""Bad input of every field: refused at admission with the field's name, or named in a condition.

Whatever gets past admission (nobody asks for validation here, as with `kubectl apply --validate=ignore`), the operator
shows no traceback and comes to rest: what is refused is tried ever more slowly, and nothing is written meanwhile.
"""

import time
from collections import Counter

import httpx
import pytest

from gemmaserve_operator.api import names
from gemmaserve_operator.cluster.kinds import GEMMASERVE

from .kube import DIGEST, REPOSITORY, Resource, eventually

LEAST = {"model": {"uri": "hf://a/b"}, "image": {"repository": REPOSITORY, "digest": DIGEST}}
HUGE = "x" * 100_000
REST_SECONDS = 15
MOST_TRIES = 6
"""Of a write that is refused, in that time."""

REFUSED = {
    "quantity": ({"resources": {"limits": {"memory": "abc"}}}, "spec.resources.limits"),
    "negative quantity": ({"resources": {"requests": {"cpu": "-1"}}}, "spec.resources.requests"),
    "quantity as a list": ({"resources": {"limits": {"memory": []}}}, "spec.resources.limits"),
    "shared memory": ({"storage": {"sharedMemory": "lots"}}, "spec.storage.sharedMemory"),
    "empty model": ({"model": {}}, "spec.model.uri"),
    "empty image": ({"image": {}}, "spec.image.repository"),
    "no digest and no tag": ({"image": {"repository": REPOSITORY}}, "spec.image.digest and spec.image.tag"),
    "unknown scheme": ({"model": {"uri": "s3://bucket/model"}}, "spec.model.uri must be hf://"),
    "unknown family": ({"engine": {"family": "gpt"}}, "spec.engine.family"),
    "parser's name": ({"engine": {"toolCallParser": "no such; rm"}}, "spec.engine.toolCallParser"),
    "context length": ({"engine": {"maxModelLen": 0}}, "spec.engine.maxModelLen"),
    "argument of ours": ({"engine": {"args": ["--port=1"]}}, "spec.engine.args must not hold"),
    "variable of ours": ({"engine": {"env": [{"name": "HF_TOKEN", "value": "x"}]}}, "spec.engine.env must not hold"),
    "variable twice": ({"engine": {"env": [{"name": "A"}, {"name": "A"}]}}, "spec.engine.env[1]"),
    "name of a variable": ({"engine": {"env": [{"name": "1 2"}]}}, "spec.engine.env[0].name"),
    "huge value": ({"engine": {"env": [{"name": "A", "value": HUGE}]}}, "spec.engine.env[0].value"),
    "replicas as text": ({"replicas": "two"}, "spec.replicas"),
    "too many replicas": ({"replicas": 10_001}, "spec.replicas"),
    "tensor parallelism": (
        {"parallelism": {"tensor": 2}, "resources": {"gpu": {"count": 3}}},
        "spec.parallelism.tensor",
    ),
    "toleration": ({"scheduling": {"tolerations": [{"operator": "Exists", "value": "v"}]}}, "a toleration needs"),
    "spread": ({"scheduling": {"topologySpreadConstraints": [{}]}}, "topologyKey"),
    "priority class": ({"scheduling": {"priorityClassName": "A B"}}, "spec.scheduling.priorityClassName"),
    "claim": ({"storage": {"cache": {"claim": "A/B"}}}, "spec.storage.cache.claim"),
    "startup timeout": ({"startupTimeoutSeconds": 0}, "spec.startupTimeoutSeconds"),
    "gate's timeout": ({"verification": {"parser": {"timeoutSeconds": 0}}}, "spec.verification.parser.timeoutSeconds"),
    "live requests": ({"verification": {"live": {"requests": 0}}}, "spec.verification.live.requests"),
    "strategy": ({"rollout": {"strategy": "Canary"}}, "spec.rollout.strategy"),
    "deadline": ({"rollout": {"progressDeadlineSeconds": 1}}, "spec.rollout.progressDeadlineSeconds"),
    "port": ({"routing": {"service": {"port": 0}}}, "spec.routing.service.port"),
    "history": ({"revisionHistoryLimit": 1000}, "spec.revisionHistoryLimit"),
}
"""What the schema can judge, and the words that name the field."""

SERVES = {
    "empty maps": {
        key: {}
        for key in ("engine", "parallelism", "resources", "scheduling", "storage", "verification", "rollout", "routing")
    },
    "empty inner maps": {
        "resources": {"gpu": {}, "requests": {}, "limits": {}},
        "scheduling": {"nodeSelector": {}, "tolerations": [], "affinity": {}, "topologySpreadConstraints": []},
        "storage": {"cache": {}},
        "engine": {"args": [], "env": []},
        "verification": {"parser": {}, "live": {}},
        "routing": {"service": {}},
    },
    "nulls": {"engine": None, "replicas": None, "resources": None, "rollout": {"paused": None}},
    "unknown fields": {"repicas": 5, "engine": {"familiy": "harmony"}},
    "odd quantities": {"resources": {"requests": {"cpu": 1, "memory": "0.5Gi"}, "limits": {"memory": "1e9"}}},
}
"""What looks wrong and is not: it serves."""

NAMED = {
    "unknown resource": ({"resources": {"limits": {"gpus": "1"}}}, "gpus"),
    "empty resource": ({"resources": {"limits": {"": "1"}}}, "limits"),
    "GPU without a domain": ({"resources": {"gpu": {"resource": "gpus", "count": 1}}}, "gpus"),
    "affinity of a wrong type": ({"scheduling": {"affinity": {"nodeAffinity": "x"}}}, "nodeAffinity"),
    "unknown affinity": ({"scheduling": {"affinity": {"moonAffinity": {}}}}, "moonAffinity"),
    "label's name": ({"scheduling": {"nodeSelector": {"a b!": "v"}}}, "a b!"),
    "spread's selector": (
        {"scheduling": {"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": {"matchLabels": 1}}]}},
        "matchLabels",
    ),
    "no such priority class": ({"scheduling": {"priorityClassName": "nobody"}}, "nobody"),
    "no such runtime class": ({"scheduling": {"runtimeClassName": "nobody"}}, "nobody"),
    "more variables than fit": (
        {"engine": {"env": [{"name": f"V{number}", "value": "x" * 4096} for number in range(64)]}},
        "annotations",
    ),
}
"""What only Kubernetes itself can judge, or no object can hold, and a word that the condition carries."""


def slug(case):
    return "b-" + "".join(letter if letter.isalnum() else "-" for letter in case.lower())[:40].strip("-")


def body(case, spec, namespace, **metadata):
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": slug(case), "namespace": namespace} | metadata,
        "spec": LEAST | {"rollout": {"scaleDownDelaySeconds": 0}} | spec,
    }


@pytest.mark.parametrize("case", REFUSED)
def test_refused_at_admission(kube, installed, case):
    spec, words = REFUSED[case]
    with pytest.raises(httpx.HTTPStatusError) as refused:
        kube.create(GEMMASERVE, body(case, spec, "default"))
    assert refused.value.response.status_code == 422
    assert words in refused.value.response.json()["message"]


@pytest.mark.parametrize("name", ["a" * 63, "a" * 48, "1a", "a.b"])
def test_a_name_from_which_children_cannot_be_named_is_refused(kube, installed, name):
    with pytest.raises(httpx.HTTPStatusError) as refused:
        kube.create(GEMMASERVE, body("name", {}, "default", name=name))
    assert "metadata.name must be at most 47 characters" in refused.value.response.json()["message"]


@pytest.fixture(scope="module")
def made(operator, kube, new_namespace):
    """All that admission lets in, made at once in a namespace; the resources by case."""
    namespace = new_namespace("bad")
    resources = {}
    for case, spec in (*SERVES.items(), *((case, spec) for case, (spec, _) in NAMED.items())):
        kube.create(GEMMASERVE, body(case, spec, namespace))
        resources[case] = Resource(kube, namespace, slug(case))
    notes = {
        "note": HUGE,
        names.ANNOTATION_RETRY: HUGE,
        "kubectl.kubernetes.io/last-applied-configuration": "{not json",
    }
    kube.create(GEMMASERVE, body("huge annotations", {}, namespace, annotations=notes))
    resources["huge annotations"] = Resource(kube, namespace, slug("huge annotations"))
    return resources


@pytest.mark.parametrize("case", [*SERVES, "huge annotations"])
def test_what_only_looks_wrong_serves(made, case):
    made[case].until_ready(180)


@pytest.mark.parametrize("case", NAMED)
def test_named_in_a_condition(made, case):
    def told():
        degraded = made[case].condition("Degraded")
        return degraded.get("status") == "True" and degraded

    degraded = eventually(told, "the condition is there", 180, show=lambda: made[case].status)
    assert NAMED[case][1] in degraded["message"]
    assert degraded["reason"] in ("InvalidSpec", "WriteRefused", "PodsRefused")


def test_no_loop_and_no_traceback(operator, made, requests_of):
    """After all the others: what is refused is tried ever more slowly, nothing else is written."""
    before = len(requests_of())
    time.sleep(REST_SECONDS)
    namespace = next(iter(made.values())).namespace
    writes = [
        entry
        for entry in requests_of()[before:]
        if entry["verb"] in ("create", "update", "patch", "delete") and entry["objectRef"]["namespace"] == namespace
    ]
    done = [entry["requestURI"] for entry in writes if entry["responseStatus"]["code"] < 300]
    assert done == []
    tries = Counter((entry["objectRef"]["resource"], entry["objectRef"]["name"]) for entry in writes)
    assert not [what for what, count in tries.items() if count > MOST_TRIES]
    assert "Traceback" not in operator.log.read_text()
