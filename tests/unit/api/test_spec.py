"""What the spec accepts, what it refuses and in which words, and its defaults."""

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from gemmaserve_operator.api.spec import GemmaServeSpec

CASES = yaml.safe_load((Path(__file__).parent / "admission.yaml").read_text())


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


@pytest.mark.parametrize("change", CASES["accepted"], ids=str)
def test_accepted(change):
    make(**change)


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: str(case["spec"]))
def test_refused(case):
    assert case["words"] in refusal(**case["spec"])
