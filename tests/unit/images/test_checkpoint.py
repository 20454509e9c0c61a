"""The stand-in's files. That vLLM accepts them is checked when the demo's image is built."""

from __future__ import annotations

import json
import re

import pytest

from localcluster.tinymodel.checkpoint import FIRST_BYTE_ID, SPECIAL_TOKENS, VOCABULARY_SIZE, write_checkpoint


@pytest.fixture
def files(tmp_path):
    write_checkpoint(tmp_path)
    return {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}


def test_the_tokenizer_has_one_token_for_each_byte_and_the_markers_in_one_vocabulary(files):
    tokenizer = json.loads(files["tokenizer.json"])
    vocabulary = tokenizer["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(VOCABULARY_SIZE))
    assert {token["content"]: token["id"] for token in tokenizer["added_tokens"]} == SPECIAL_TOKENS
    assert SPECIAL_TOKENS.items() <= vocabulary.items()


@pytest.mark.parametrize(
    ("byte", "letter"), [(0x41, "A"), (0x20, "Ġ"), (0x0A, "Ċ"), (0xC3, "Ã"), (0x00, "Ā"), (0xAD, "Ń")]
)
def test_bytes_have_the_letters_of_the_byte_level_alphabet(files, byte, letter):
    """Known from any GPT-2 style vocabulary: a blank is Ġ, a line feed Ċ, a soft hyphen the last letter."""
    assert json.loads(files["tokenizer.json"])["model"]["vocab"][letter] == FIRST_BYTE_ID + byte


def test_config_and_tokenizer_agree(files):
    config = json.loads(files["config.json"])
    assert config["architectures"] == ["Gemma4ForCausalLM"]
    assert config["vocab_size"] == VOCABULARY_SIZE
    assert len(config["layer_types"]) == config["num_hidden_layers"] == len(config["rope_parameters"])
    for name in ("bos", "eos", "pad"):
        token = json.loads(files["tokenizer_config.json"])[f"{name}_token"]
        assert config[f"{name}_token_id"] == SPECIAL_TOKENS[token]


def test_generation_stops_at_the_end_of_a_turn(files):
    stops = json.loads(files["generation_config.json"])["eos_token_id"]
    assert SPECIAL_TOKENS["<turn|>"] in stops


def test_the_template_writes_only_markers_that_are_tokens(files):
    markers = set(re.findall(r"<\|[a-z_]+\|?>|<[a-z_]+\|>|<\|\"\|>", files["chat_template.jinja"]))
    assert markers
    assert markers <= SPECIAL_TOKENS.keys()
