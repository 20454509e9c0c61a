"""What the spec accepts, what it refuses and in which words, and its defaults."""

import pytest
from pydantic import ValidationError

from gemmaserve_operator.api.spec import GemmaServeSpec

DIGEST = "sha256:" + "0123456789abcdef" * 4


def make(**changes):
    base = {"model": {"uri": "hf://google/gemma-4"}, "image": {"repository": "r.example/vllm", "tag": "0.1.0"}}
    return GemmaServeSpec.model_validate(base | changes)


def refusal(**changes):
    with pytest.raises(ValidationError) as caught:
        make(**changes)
    return str(caught.value)


def test_a_model_and_an_image_are_enough():
    spec = make()
    assert spec.replicas == 1
    assert spec.gpu_count == 1
    assert spec.resources.gpu.resource == "nvidia.com/gpu"
    assert spec.engine.effective_tool_call_parser == "gemma4_atomic"
    assert spec.engine.effective_reasoning_parser == "gemma4"
    assert spec.rollout.strategy == "BlueGreen"
    assert spec.rollout.on_insufficient_capacity == "Wait"
    assert spec.routing.service.port == 80


def test_family_picks_parsers_and_a_written_one_wins():
    assert make(engine={"family": "harmony"}).engine.effective_tool_call_parser == "openai"
    engine = make(engine={"family": "harmony", "toolCallParser": "mine"}).engine
    assert (engine.effective_tool_call_parser, engine.effective_reasoning_parser) == ("mine", "openai_gptoss")


def test_gpu_count_follows_parallelism():
    assert make(parallelism={"tensor": 2, "pipeline": 3}).gpu_count == 6


def test_no_gpu_serves_on_the_cpu():
    assert make(resources={"gpu": {"count": 0}}).gpu_count == 0


@pytest.mark.parametrize(
    "uri",
    [
        "hf://google/gemma-4-31b-it",
        "hf://gpt2",
        "pvc://models/gemma/31b",
        "pvc://models",
        "oci://registry.example:5000/models/gemma:v1",
        f"oci://registry.example/models/gemma@{DIGEST}",
        "file:///models/tiny-gemma4",
    ],
)
def test_uri_schemes(uri):
    assert make(model={"uri": uri}).model.uri == uri


@pytest.mark.parametrize(
    "uri",
    [
        "google/gemma-4",
        "s3://bucket/model",
        "HF://google/gemma",
        "hf://",
        "hf://a/b/c",
        "hf://google/gemma 4",
        "pvc://Claim/x",
        "pvc://claim/../etc",
        "file://models/x",
        "file:///",
        "file:///models/../etc",
        "oci://r.example/x@sha256:12",
        " hf://google/gemma-4",
        "hf://google/gemma-4\n",
    ],
)
def test_bad_uri_is_refused_with_the_schemes(uri):
    assert "hf://ORG/MODEL, pvc://CLAIM/PATH" in refusal(model={"uri": uri})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {}}, "model.uri"),
        ({"replicas": -1}, "greater than or equal to 0"),
        ({"replica": 3}, "replica"),
        ({"engine": {"maxModelLength": 5}}, "maxModelLength"),
        ({"model": {"uri": "file:///m", "revision": "main"}}, "spec.model.revision goes with an hf:// uri only"),
        ({"image": {"repository": "r"}}, "exactly one of spec.image.digest and spec.image.tag"),
        ({"image": {"repository": "r", "tag": "a", "digest": DIGEST}}, "exactly one of"),
        ({"image": {"repository": "r", "digest": "sha256:abc"}}, "image.digest"),
        ({"resources": {"requests": {"memory": "abc"}}}, "must be a Kubernetes quantity"),
        ({"resources": {"requests": {"memory": "-1Gi"}}}, "not negative"),
        ({"resources": {"requests": {"cpu": True}}}, "requests.cpu"),
        ({"storage": {"sharedMemory": "8 GB"}}, "must be a Kubernetes quantity"),
        ({"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}}, "at most the limit"),
        ({"resources": {"limits": {"nvidia.com/gpu": "1"}}}, "spec.resources.gpu.count"),
        ({"scheduling": {"tolerations": [{"operator": "Exists", "value": "x"}]}}, "toleration needs a key"),
        ({"scheduling": {"tolerations": [{"operator": "Equal"}]}}, "toleration needs a key"),
        ({"scheduling": {"tolerations": [{"key": "a", "tolerationSeconds": 5}]}}, "effect: NoExecute only"),
        ({"engine": {"env": [{"name": "A-B", "value": "x"}]}}, "env.0.name"),
    ],
)
def test_refused(changes, words):
    assert words in refusal(**changes)


@pytest.mark.parametrize(
    ("tensor", "pipeline", "count", "fits"),
    [(2, 1, 2, True), (2, 2, 4, True), (1, 1, 0, True), (2, 1, 1, False), (1, 1, 2, False), (2, 1, 0, False)],
)
def test_parallelism_must_fill_the_gpus(tensor, pipeline, count, fits):
    changes = {
        "parallelism": {"tensor": tensor, "pipeline": pipeline},
        "resources": {"gpu": {"count": count}},
    }
    if fits:
        make(**changes)
        return
    message = refusal(**changes)
    assert "spec.parallelism.tensor * spec.parallelism.pipeline" in message
    assert "spec.resources.gpu.count" in message


@pytest.mark.parametrize(
    ("argument", "instead"),
    [
        ("--model=x", "spec.model.uri"),
        ("--served-model-name", "spec.model.name"),
        ("--served_model_name=x", "spec.model.name"),
        ("--revision=main", "spec.model.revision"),
        ("--max-model-len=4096", "spec.engine.maxModelLen"),
        ("--max_model_len", "spec.engine.maxModelLen"),
        ("--max-model=4096", "spec.engine.maxModelLen"),
        ("--tensor-parallel-size", "spec.parallelism.tensor"),
        ("--tensor-parallel-size=2", "spec.parallelism.tensor"),
        ("--tensor_parallel_size=2", "spec.parallelism.tensor"),
        ("--tensor=2", "spec.parallelism.tensor"),
        ("-tp", "spec.parallelism.tensor"),
        ("-tp=2", "spec.parallelism.tensor"),
        ("-pp", "spec.parallelism.pipeline"),
        ("--data-parallel-size=2", "spec.replicas"),
        ("--port=9000", "spec.routing.service.port"),
        ("--host=0.0.0.0", "spec.routing.service.port"),
        ("--tool-call-parser=hermes", "spec.engine.toolCallParser"),
        ("--tool-parser-plugin=/x.py", "spec.engine.toolCallParser"),
        ("--enable-auto-tool-choice", "always on"),
        ("--no-enable-auto-tool-choice", "always on"),
        ("--reasoning-parser=x", "spec.engine.reasoningParser"),
        ("--download-dir=/x", "spec.storage.cache"),
        ("--config=/x.yaml", "as fields"),
    ],
)
def test_an_argument_that_contradicts_a_field_names_the_field(argument, instead):
    assert instead in refusal(engine={"args": ["--enforce-eager", argument]})


@pytest.mark.parametrize(
    "argument",
    [
        "--gpu-memory-utilization=0.92",
        "--enforce-eager",
        "--model-impl=auto",
        "--config-format=hf",
        "--tokenizer-revision=main",
        "--max-num-seqs=64",
        "--port-is-not-a-flag",
        "model",
        "-O3",
        "--hf-overrides.max_model_len=5",
        '--hf-overrides={"model": "--port"}',
    ],
)
def test_other_arguments_pass(argument):
    assert make(engine={"args": [argument]}).engine.args == [argument]


@pytest.mark.parametrize("name", ["HF_TOKEN", "HF_HOME", "HOME", "XDG_CACHE_HOME"])
def test_owned_variables_are_refused(name):
    assert f"must not hold {name}" in refusal(engine={"env": [{"name": name, "value": "x"}]})
