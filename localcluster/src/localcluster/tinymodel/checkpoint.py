"""Writes the stand-in checkpoint: Gemma 4's architecture in miniature, its markers as tokens, one token a byte.

`python -m localcluster.tinymodel.checkpoint DIRECTORY`. Needs nothing but Python: the files are small JSON documents
in the layout that transformers reads. There are no weights: vLLM fills them at random (`--load-format dummy`), and
what such a model says is decided by `forced_decoding`. A trained checkpoint of the same layout takes its place
without any change elsewhere.
"""

from __future__ import annotations

import argparse
import json
from importlib import resources
from pathlib import Path
from typing import Any

VOCABULARY_SIZE = 512
FIRST_BYTE_ID = 256
"""Byte `b` is token `FIRST_BYTE_ID + b`; everything below is a special token or unused, as in Gemma's vocabulary."""

SPECIAL_TOKENS = {
    "<pad>": 0,
    "<eos>": 1,
    "<bos>": 2,
    "<unk>": 3,
    "<mask>": 4,
    "<|tool>": 46,
    "<tool|>": 47,
    "<|tool_call>": 48,
    "<tool_call|>": 49,
    "<|tool_response>": 50,
    "<tool_response|>": 51,
    '<|"|>': 52,
    "<|think|>": 98,
    "<|channel>": 100,
    "<channel|>": 101,
    "<|turn>": 105,
    "<turn|>": 106,
}
"""Gemma 4's markers, at the ids they have in its tokenizer."""

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


def tokenizer() -> dict[str, Any]:
    """A byte-level tokenizer in the `tokenizers` library's format: 256 bytes, no merges, the markers as special tokens.

    The letters that stand for bytes are those of the byte-level alphabet that GPT-2's tokenizer introduced.
    """
    names = {number: name for name, number in SPECIAL_TOKENS.items()}
    vocabulary = {names.get(number, f"<unused{number}>"): number for number in range(FIRST_BYTE_ID)}
    vocabulary |= {letter: FIRST_BYTE_ID + byte for byte, letter in enumerate(_byte_alphabet())}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": name,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for name, number in SPECIAL_TOKENS.items()
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "model": {"type": "BPE", "unk_token": None, "fuse_unk": False, "vocab": vocabulary, "merges": []},
    }


def _byte_alphabet() -> list[str]:
    """The printable letter for each of the 256 bytes: itself where it is one, else the next code point from 256 on."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    replacements = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(replacements)) for byte in range(256)]


def write_checkpoint(directory: Path) -> None:
    """Write the files of the checkpoint into `directory`, which is made if it is not there."""
    directory.mkdir(parents=True, exist_ok=True)
    documents: dict[str, dict[str, Any]] = {
        "config.json": model_config(),
        "generation_config.json": {"bos_token_id": SPECIAL_TOKENS["<bos>"], "eos_token_id": list(END_OF_TURN)},
        "tokenizer.json": tokenizer(),
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
    template = resources.files("localcluster.tinymodel").joinpath("chat_template.jinja").read_text(encoding="utf-8")
    (directory / "chat_template.jinja").write_text(template, encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m localcluster.tinymodel.checkpoint",
        description="Write the stand-in Gemma 4 checkpoint of the demo (2 layers, hidden size 64, no weights).",
        epilog="example: python -m localcluster.tinymodel.checkpoint /tmp/tiny-gemma4",
    )
    parser.add_argument("directory", type=Path, help="where to write it")
    write_checkpoint(parser.parse_args().directory)


if __name__ == "__main__":
    main()
