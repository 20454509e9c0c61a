"""The stand-ins' tokenizers: Gemma 4's markers and one token a byte, and for the trained one words and syllables too.

Any text can be written, because every byte is a token. A name is cut into the same tokens wherever it stands: blanks,
punctuation and changes of case always end a token, so that the tokens of a letter run depend on that run alone. That
is what lets a model of this size copy names.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

FIRST_BYTE_ID = 256
"""Byte `b` is token `FIRST_BYTE_ID + b`; everything below is a special token or unused, as in Gemma's vocabulary."""

FIRST_WORD_ID = FIRST_BYTE_ID + 256
VOCABULARY_SIZE = 1024

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

PIECES = (
    "declaration:",
    "{description:",
    ",parameters:{properties:{",
    ",parameters:{type:",
    ":{description:",
    ",type:",
    ":{type:",
    "}},required:[",
    "},required:[",
    "],type:",
    "},",
    "{value:",
    "call:",
    "response:",
    "STRING",
    "OBJECT",
    "INTEGER",
    "BOOLEAN",
)
"""What the chat template writes again and again, a token each."""

WORD_PATTERN = r"\p{Lu}?\p{Ll}+|\p{L}|\p{N}{1,2}|\s|[^\s\p{L}\p{N}]"


def pattern() -> str:
    """The regular expression whose matches are cut from each other before anything else."""
    escaped = ("".join(f"\\{letter}" if letter in "{}[]" else letter for letter in piece) for piece in PIECES)
    return "|".join((*sorted(escaped, key=len, reverse=True), WORD_PATTERN))


@cache
def byte_alphabet() -> tuple[str, ...]:
    """The printable letter for each of the 256 bytes: itself where it is one, else the next code point from 256 on."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    replacements = iter(range(256, 512))
    return tuple(chr(byte) if byte in printable else chr(next(replacements)) for byte in range(256))


def words_and_merges() -> tuple[list[str], list[str]]:
    """Tokens of more than one byte after `PIECES`, and the pairs that make the syllables among them."""
    document = json.loads(resources.files(__package__).joinpath("vocabulary.json").read_text(encoding="utf-8"))
    return document["words"], document["merges"]


def bytes_document() -> dict[str, Any]:
    """A tokenizer of one token a byte and the markers, in the format of the `tokenizers` library."""
    return _document([], [], [_BYTE_LEVEL])


def words_document() -> dict[str, Any]:
    """The trained model's tokenizer, in the format of the `tokenizers` library."""
    return cut_document(*words_and_merges())


def cut_document(words: list[str], merges: list[str]) -> dict[str, Any]:
    """A tokenizer that cuts by `pattern`, in the format of the `tokenizers` library.

    Args:
        words: Tokens that stand for a whole match of `pattern`, after `PIECES`.
        merges: Pairs `"a b"` that are joined within other matches, the first first.
    """
    split = {"type": "Split", "pattern": {"Regex": pattern()}, "behavior": "Isolated", "invert": False}
    return _document([*PIECES, *words], merges, [split, _BYTE_LEVEL])


_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def _document(words: list[str], merges: list[str], cuts: list[dict[str, Any]]) -> dict[str, Any]:
    names = {number: name for name, number in SPECIAL_TOKENS.items()}
    vocabulary = {names.get(number, f"<unused{number}>"): number for number in range(FIRST_BYTE_ID)}
    vocabulary |= {letter: FIRST_BYTE_ID + byte for byte, letter in enumerate(byte_alphabet())}
    for token in (*words, *(merge.replace(" ", "") for merge in merges)):
        vocabulary.setdefault(token, len(vocabulary))
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
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cuts},
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "unk_token": None,
            "fuse_unk": False,
            "ignore_merges": True,
            "vocab": vocabulary,
            "merges": merges,
        },
    }
