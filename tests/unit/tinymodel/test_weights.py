"""The kept weights: their file, and what becomes of them."""

from __future__ import annotations

import math
import struct
from importlib import resources
from pathlib import Path

import pytest

from localcluster.tinymodel.checkpoint import WEIGHTS, trained_config, write_trained
from localcluster.tinymodel.weights import Tensor, floats, read_tensors, whole, write_tensors

KEPT = Path(str(resources.files("localcluster.tinymodel").joinpath(WEIGHTS)))


def test_a_file_gives_back_what_was_written(tmp_path):
    tensors = {
        "a": Tensor("I8", (2, 3), bytes([1, 2, 3, 255, 254, 0])),
        "a.scale": Tensor("F32", (2,), struct.pack("<2f", 0.5, 2)),
    }
    write_tensors(tmp_path / "file", tensors)
    assert read_tensors(tmp_path / "file") == tensors


def test_whole_numbers_are_multiplied_by_the_factor_of_their_row():
    scale = Tensor("F32", (2,), struct.pack("<2f", 0.5, 2))
    kept = {"a": Tensor("I8", (2, 2), bytes([1, 127, 255, 129])), "a.scale": scale, "b": scale}
    made = whole(kept)
    assert {name: (tensor.dtype, tensor.shape, list(floats(tensor))) for name, tensor in made.items()} == {
        "a": ("F32", (2, 2), [0.5, 63.5, -2, -254]),
        "b": ("F32", (2,), [0.5, 2]),
    }


@pytest.mark.parametrize("content", [b"", b"abc", struct.pack("<Q", 5) + b"nojson", struct.pack("<Q", 2) + b"[]"])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"file is not a safetensors file .*restore it"):
        read_tensors(path)


def test_the_weights_fit_the_configuration_and_the_repository():
    config = trained_config()
    shapes = {name: tensor.shape for name, tensor in read_tensors(KEPT).items()}
    hidden = config["hidden_size"]
    assert shapes["model.embed_tokens.weight"] == (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        queries = config["num_attention_heads"] * config["head_dim"]
        assert shapes[f"{prefix}.self_attn.q_proj.weight"] == (queries, hidden)
        assert shapes[f"{prefix}.mlp.gate_proj.weight"] == (config["intermediate_size"], hidden)
    assert KEPT.stat().st_size < 1024 * 1024


def test_the_trained_checkpoint_holds_numbers_only(tmp_path):
    write_trained(tmp_path)
    for name, tensor in read_tensors(tmp_path / "model.safetensors").items():
        assert tensor.dtype == "F32", name
        assert len(tensor.data) == 4 * math.prod(tensor.shape), name
        assert all(map(math.isfinite, floats(tensor))), name
