"""What a user sees of the resource through kubectl."""

import pytest
import yaml

from gemmaserve_operator.api import names
from localcluster import ClusterError

from .kube import DIGEST, REPOSITORY, eventually

LEAST = {"model": {"uri": "hf://google/gemma-4-31b-it"}, "image": {"repository": REPOSITORY, "digest": DIGEST}}


def _manifest(spec, namespace="default"):
    metadata = {"name": "gemma4", "namespace": namespace}
    return yaml.safe_dump({"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "sentences"),
    [
        ({"image": LEAST["image"]}, ["spec.model: Required value"]),
        (LEAST | {"replicas": -1}, ["spec.replicas", "should be greater than or equal to 0"]),
        (LEAST | {"repicas": 2}, ['unknown field "spec.repicas"']),
        (
            LEAST | {"parallelism": {"tensor": 4}, "resources": {"gpu": {"count": 2}}},
            ["spec.parallelism.tensor", "spec.resources.gpu.count"],
        ),
        (
            LEAST | {"engine": {"args": ["--max-model-len=4096"]}},
            ["spec.engine.args must not hold --max-model-len: set spec.engine.maxModelLen instead"],
        ),
    ],
    ids=["no model", "negative replicas", "unknown field", "tensor parallelism and GPUs", "contradicting argument"],
)
def test_bad_input_is_refused_with_a_sentence(cluster, installed, spec, sentences):
    with pytest.raises(ClusterError) as caught:
        cluster.kubectl("apply", "-f", "-", stdin=_manifest(spec))
    for sentence in sentences:
        assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "field",
    ["spec", "spec.model.uri", "spec.engine.args", "spec.rollout.strategy", "status.conditions", "status.phase"],
)
def test_explain_describes_every_field(cluster, installed, field):
    text = cluster.kubectl("explain", f"gemmaserve.{field}")
    description = text.partition("DESCRIPTION:")[2].strip()
    assert description
    assert not description.startswith("<empty>")


def test_columns(operator, cluster, resource, show_log):
    resource.create().until_ready()
    header, row = cluster.kubectl("get", "gs", "-n", resource.namespace).splitlines()
    assert header.split() == ["NAME", "READY", "ACTIVE", "CANDIDATE", "REPLICAS", "VERIFIED", "PHASE", "AGE"]
    active = resource.status["activeRevision"]["name"]
    assert row.split()[:-1] == ["gemma4", "True", active, "1/1", "61/61", "Serving"]
    wide = cluster.kubectl("get", "gs", "-n", resource.namespace, "-o", "wide").splitlines()
    assert wide[0].split()[-3:] == ["URL", "IMAGE", "MODEL"]
    url = f"http://gemma4.{resource.namespace}.svc/v1"
    assert wide[1].split()[-3:] == [url, f"{REPOSITORY}@{DIGEST}", LEAST["model"]["uri"]]


def test_listed_with_all_that_a_user_can_see(operator, cluster, resource, show_log):
    resource.create().until_ready()
    assert "gemmaserve.gemmaserve.dev/gemma4" in cluster.kubectl("get", "all", "-n", resource.namespace)


def test_describe_ends_with_the_events(operator, cluster, resource, show_log):
    resource.create().until_ready()
    text = eventually(
        lambda: "UpToDate" in (text := cluster.kubectl("describe", "gs", "gemma4", "-n", resource.namespace)) and text,
        "the last event is shown",
    )
    assert "ParserRegressionsRunning" in text.partition("Events:")[2]


def test_scaling_through_the_scale_subresource_stays(operator, cluster, kube, resource, show_log):
    resource.create().until_ready()
    cluster.kubectl("scale", "gs/gemma4", "--replicas=2", "-n", resource.namespace)
    eventually(lambda: resource.status["summary"]["replicas"] == "2/2", "two pods are ready")
    assert resource.object["spec"]["replicas"] == 2
    assert resource.status["activeRevision"]["name"]
    assert not resource.status.get("candidateRevision")
