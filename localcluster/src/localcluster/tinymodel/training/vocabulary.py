"""Chooses the tokens of more than one byte: `python -m localcluster.tinymodel.training vocabulary`.

Frequent words of generated exchanges become tokens, all numbers of two digits, and the syllables that made-up names
are best cut into. It runs once; a model fits only the vocabulary that it was trained with.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from localcluster.tinymodel.tokenizer import (
    FIRST_WORD_ID,
    PIECES,
    SPECIAL_TOKENS,
    VOCABULARY_SIZE,
    cut_document,
)
from localcluster.tinymodel.training import names
from localcluster.tinymodel.training.conversations import conversation
from localcluster.tinymodel.training.encoding import Template

EXTRA = (*names.COMMON, "call", "tool")
EXCHANGES = 2500
SYLLABLES = 130


def choose(seed: int) -> dict[str, list[str]]:
    """`words` and `merges` for `vocabulary.json`, from exchanges made with `seed`."""
    source = random.Random(seed)
    template = Template()
    cut = Tokenizer.from_str(json.dumps(cut_document([], []))).pre_tokenizer
    counted: Counter[str] = Counter()
    for _ in range(EXCHANGES):
        text = template.render(conversation(source))
        for marker in SPECIAL_TOKENS:
            text = text.replace(marker, "\n")
        counted.update(match for match, _ in cut.pre_tokenize_str(text))
    numbers = [f"{number:02}" for number in range(100)]
    room = VOCABULARY_SIZE - FIRST_WORD_ID - len(PIECES) - len(numbers) - SYLLABLES
    fixed = {*PIECES, *numbers}
    frequent = [word for word, _ in counted.most_common() if len(word) > 1 and word.isascii() and word not in fixed]
    words = [*numbers, *dict.fromkeys([*EXTRA, *frequent])][: room + len(numbers)]
    return {"words": words, "merges": _syllables(source, {*words})}


def _syllables(source: random.Random, words: set[str]) -> list[str]:
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Whitespace()
    alphabet = list(names.LETTERS)
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + SYLLABLES + 60, initial_alphabet=alphabet, max_token_length=3, show_progress=False
    )
    made = [names.syllables(source) for _ in range(20000)]
    trained.train_from_iterator([word for word in made if word not in words], trainer)
    merges: list[str] = []
    for first, second in json.loads(trained.to_str())["model"]["merges"]:
        if first + second not in words and len(merges) < SYLLABLES:
            merges.append(f"{first} {second}")
    known = {*words, *names.LETTERS}
    kept = []
    for merge in merges:
        first, second = merge.split()
        if {first, second} <= known:
            kept.append(merge)
            known.add(first + second)
    return kept


def write(path: Path, seed: int) -> None:
    """Write `vocabulary.json`."""
    path.write_text(json.dumps(choose(seed), indent=0, ensure_ascii=True) + "\n", encoding="utf-8")
