"""The trained stand-in: how often it is right, and that transformers and vLLM compute what its training computed."""

import math
import random

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm import LLM, SamplingParams

from localcluster.tinymodel.checkpoint import trained_config, write_trained
from localcluster.tinymodel.tokenizer import SPECIAL_TOKENS
from localcluster.tinymodel.training import names
from localcluster.tinymodel.training.batches import padded
from localcluster.tinymodel.training.conversations import conversation
from localcluster.tinymodel.training.encoding import Encoder
from localcluster.tinymodel.training.evaluation import evaluate
from localcluster.tinymodel.training.export import state_of
from localcluster.tinymodel.training.loop import worst
from localcluster.tinymodel.training.model import Gemma4
from localcluster.tinymodel.weights import read_tensors

EXCHANGES = 200
CALLS_RIGHT, TEXTS_RIGHT = 0.93, 0.95
"""Shares of the held-out answers; docs/tiny-model.md has the measured ones."""
STOPS = [SPECIAL_TOKENS["<turn|>"], SPECIAL_TOKENS["<|tool_response>"]]
TOLERANCE = 2e-3
"""Of scores between -30 and 30, which two orders of the same 32-bit sums may give."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    write_trained(folder)
    return folder


@pytest.fixture(scope="module")
def model(checkpoint):
    made = Gemma4(trained_config())
    made.load_state_dict(state_of(read_tensors(checkpoint / "model.safetensors")))
    return made.eval()


@pytest.fixture(scope="module")
def encoder():
    return Encoder()


def exchanges(count):
    source = random.Random("what three implementations are compared on")
    return [conversation(source, held_out=True, turns=1) for _ in range(count)]


def test_most_held_out_answers_are_right_to_the_letter(model, encoder):
    score = evaluate(model, encoder, EXCHANGES, seed=0)
    assert score.calls > EXCHANGES / 2
    assert score.calls_right >= CALLS_RIGHT * score.calls, score
    assert score.texts_right >= TEXTS_RIGHT * score.texts, score


def test_the_evaluation_sees_a_wrong_answer(model, encoder):
    """A model with one head of the copying layer silenced cannot be as good."""
    broken = Gemma4(trained_config())
    broken.load_state_dict(model.state_dict())
    with torch.no_grad():
        broken.model.layers[1].self_attn.o_proj.weight.zero_()
    assert evaluate(broken, encoder, 20, seed=0).calls_right == 0


def test_a_wrong_answer_counts_as_hard(model, encoder):
    """A token that is not the most likely one has less than half of the probability, so a loss above log 2."""
    source = random.Random("what is hard")
    batch = padded([encoder.encode(conversation(source, held_out=True, turns=1)) for _ in range(60)])
    broken = Gemma4(trained_config())
    broken.load_state_dict(model.state_dict())
    with torch.no_grad():
        broken.model.layers[2].self_attn.o_proj.weight.zero_()
        right = broken.logits(broken(batch.ids[:, :-1])).argmax(-1) == batch.ids[:, 1:]
        losses = worst(broken, batch)
    wrong = (~right & batch.own[:, 1:]).any(1).tolist()
    assert any(wrong)
    assert not all(wrong)
    assert all(loss > math.log(2) for loss, failed in zip(losses, wrong, strict=True) if failed)


def test_transformers_computes_the_same_scores(model, checkpoint, encoder):
    theirs = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    ids = padded([encoder.encode(exchange) for exchange in exchanges(1)]).ids
    with torch.no_grad():
        torch.testing.assert_close(model.logits(model(ids)), theirs(ids).logits, atol=TOLERANCE, rtol=0)


def test_transformers_renders_and_cuts_the_same_tokens(checkpoint, encoder):
    theirs = AutoTokenizer.from_pretrained(checkpoint)
    for exchange in exchanges(10):
        rendered = theirs.apply_chat_template(
            exchange.messages, tools=exchange.tools or None, enable_thinking=exchange.thinking, tokenize=False
        )
        assert theirs(rendered.rstrip("\n"), add_special_tokens=False).input_ids == encoder.encode(exchange).ids


@pytest.mark.parametrize("make", [names.file, names.city, names.folder])
def test_a_name_is_cut_alike_wherever_it_stands(make, encoder):
    source = random.Random(1)
    for _ in range(200):
        name = make(source)
        bare = encoder.ids(name)
        for before, after in ((" ", "."), ("`", "`"), ('path:<|"|>', '<|"|>}'), ("\n", ", and")):
            around = len(encoder.ids(before)), len(encoder.ids(after))
            ids = encoder.ids(before + name + after)
            assert ids[around[0] : len(ids) - around[1]] == bare, (before, name, after)
        assert encoder.tokenizer.decode(bare) == name


def test_vllm_says_the_same(model, checkpoint, encoder):
    """Greedily, token for token, and with the same score for each: sliding layers, rotations, norms and capping."""
    asked = exchanges(6)
    prompts = [encoder.ids(encoder.template.render(exchange, messages=-2)) for exchange in asked]
    engine = LLM(str(checkpoint), dtype="float32", enforce_eager=True, max_model_len=2048, seed=0)
    sampling = SamplingParams(temperature=0, max_tokens=80, logprobs=1, stop_token_ids=STOPS)
    outputs = engine.generate([{"prompt_token_ids": ids} for ids in prompts], sampling)
    for prompt, output in zip(prompts, outputs, strict=True):
        said = list(output.outputs[0].token_ids)
        with torch.no_grad():
            scores = model.logits(model(torch.tensor([prompt + said])))[0, len(prompt) - 1 : -1].log_softmax(-1)
        theirs = [step[token].logprob for step, token in zip(output.outputs[0].logprobs, said, strict=True)]
        assert scores.argmax(-1).tolist() == said
        torch.testing.assert_close(scores.max(-1).values, torch.tensor(theirs), atol=TOLERANCE, rtol=0)
