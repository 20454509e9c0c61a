"""Writes the stand-in checkpoints: Gemma 4's architecture in miniature, in the layout that transformers reads.

`python -m localcluster.tinymodel.checkpoint DIRECTORY` writes the model that was trained to call tools (see
`training`). With `--no-weights` it writes one of a token a byte that vLLM fills at random (`--load-format dummy`); what
that one says is decided by `forced_decoding`. Needs nothing but Python.
"""

from __future__ import annotations

import argparse
import json
from importlib import resources
from pathlib import Path
from typing import Any

from localcluster.tinymodel import tokenizer
from localcluster.tinymodel.tokenizer import FIRST_BYTE_ID, FIRST_WORD_ID, SPECIAL_TOKENS
from localcluster.tinymodel.weights import read_tensors, whole, write_tensors

__all__ = ["FIRST_BYTE_ID", "SPECIAL_TOKENS", "VOCABULARY_SIZE", "trained_config", "write_checkpoint", "write_trained"]

VOCABULARY_SIZE = FIRST_WORD_ID
"""Of the checkpoint without weights: markers and bytes."""

WEIGHTS = "weights.safetensors"

END_OF_TURN = (SPECIAL_TOKENS["<eos>"], SPECIAL_TOKENS["<turn|>"], SPECIAL_TOKENS["<|tool_response>"])
"""Tokens at which generation stops, as in Gemma 4's generation_config.json."""

MAX_TOKENS = 16384


def model_config() -> dict[str, Any]:
    """The text-only Gemma 4 (`Gemma4ForCausalLM`): one layer of sliding attention and one of full attention."""
    return {
        "architectures": ["Gemma4ForCausalLM"],
        "model_type": "gemma4_text",
        "vocab_size": VOCABULARY_SIZE,
        "vocab_size_per_layer_input": VOCABULARY_SIZE,
        "hidden_size": 64,
        "hidden_size_per_layer_input": 0,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "global_head_dim": 32,
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 512,
        "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": MAX_TOKENS,
        "rms_norm_eps": 1e-06,
        "tie_word_embeddings": True,
        "final_logit_softcapping": 30.0,
        "bos_token_id": SPECIAL_TOKENS["<bos>"],
        "eos_token_id": SPECIAL_TOKENS["<eos>"],
        "pad_token_id": SPECIAL_TOKENS["<pad>"],
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
        },
        "dtype": "float32",
    }


def trained_config() -> dict[str, Any]:
    """The configuration of the trained model: five layers, of which the first and third see eight tokens."""
    untrained = model_config()
    ropes = untrained["rope_parameters"]
    return {
        **untrained,
        "vocab_size": tokenizer.VOCABULARY_SIZE,
        "vocab_size_per_layer_input": tokenizer.VOCABULARY_SIZE,
        "hidden_size": 128,
        "intermediate_size": 96,
        "num_hidden_layers": 5,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "layer_types": [*["sliding_attention", "full_attention"] * 2, "full_attention"],
        "sliding_window": 8,
        "rope_parameters": {**ropes, "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}},
    }


def write_checkpoint(directory: Path) -> None:
    """Write the files of the checkpoint without weights into `directory`, which is made if it is not there."""
    _write(directory, model_config(), tokenizer.bytes_document())


def write_trained(directory: Path) -> None:
    """Write the trained checkpoint into `directory`, which is made if it is not there.

    Raises:
        ValueError: the kept weights are damaged.
    """
    _write(directory, trained_config(), tokenizer.words_document())
    with resources.as_file(resources.files(__package__).joinpath(WEIGHTS)) as kept:
        write_tensors(directory / "model.safetensors", whole(read_tensors(kept)))


def _write(directory: Path, config: dict[str, Any], tokens: dict[str, Any]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    documents: dict[str, dict[str, Any]] = {
        "config.json": config,
        "generation_config.json": {"bos_token_id": SPECIAL_TOKENS["<bos>"], "eos_token_id": list(END_OF_TURN)},
        "tokenizer.json": tokens,
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "clean_up_tokenization_spaces": False,
            "model_max_length": MAX_TOKENS,
        },
    }
    for name, document in documents.items():
        (directory / name).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    template = resources.files(__package__).joinpath("chat_template.jinja").read_text(encoding="utf-8")
    (directory / "chat_template.jinja").write_text(template, encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m localcluster.tinymodel.checkpoint",
        description="Write the stand-in Gemma 4 checkpoint: trained to call tools (5 layers, hidden size 128), or "
        "without weights and with one token a byte (2 layers, hidden size 64), for answers that a request dictates.",
        epilog="example: python -m localcluster.tinymodel.checkpoint /tmp/tiny-gemma4",
    )
    parser.add_argument("directory", type=Path, help="where to write it")
    parser.add_argument("--no-weights", action="store_true", help="the one without weights (--load-format dummy)")
    options = parser.parse_args()
    (write_checkpoint if options.no_weights else write_trained)(options.directory)


if __name__ == "__main__":
    main()
