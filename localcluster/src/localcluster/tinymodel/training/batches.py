"""Batches of tokens: exchanges of similar length together, and random strings that repeat."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from localcluster.tinymodel.tokenizer import FIRST_BYTE_ID, VOCABULARY_SIZE
from localcluster.tinymodel.training.conversations import conversation
from localcluster.tinymodel.training.encoding import Encoded, Encoder

POOL = 96
"""Exchanges that are made at once and sorted by length, so that little of a batch is padding."""


@dataclass(frozen=True)
class Batch:
    """Token ids `[sequences, tokens]`, and whether each is the model's to say."""

    ids: Tensor
    own: Tensor


def padded(sequences: list[Encoded]) -> Batch:
    """One batch, padded on the right to a multiple of 16 tokens (so that few different lengths occur)."""
    longest = -(-max(len(sequence.ids) for sequence in sequences) // 16) * 16
    ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    own = torch.zeros(len(sequences), longest, dtype=torch.bool)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence.ids)] = torch.tensor(sequence.ids)
        own[row, : len(sequence.own)] = torch.tensor(sequence.own)
    return Batch(ids, own)


def grouped(sequences: list[Encoded], tokens: int) -> Iterator[Batch]:
    """Batches of at most `tokens` tokens (or one sequence), the short ones first."""
    group: list[Encoded] = []
    for sequence in sorted(sequences, key=lambda sequence: len(sequence.ids)):
        if group and (len(group) + 1) * (len(sequence.ids) + 15) > tokens:
            yield padded(group)
            group = []
        group.append(sequence)
    if group:
        yield padded(group)


def exchanges(
    source: random.Random, encoder: Encoder, tokens: int, turns: int, choose: Callable[[list[Encoded]], list[Encoded]]
) -> Iterator[Batch]:
    """Exchanges without end, `tokens` tokens a batch; of every `POOL` of them those that `choose` gives back."""
    while True:
        made = [encoder.encode(conversation(source, turns=turns)) for _ in range(POOL)]
        batches = [*grouped(choose(made), tokens)]
        source.shuffle(batches)
        yield from batches


def repeats(source: random.Random, tokens: int) -> Batch:
    """Random tokens, then parts of them again in any order: what copying is made of.

    A sequence holds a few random words with separators, then the same words in another order; the model is to say
    all but the first token of each repeated word.
    """
    length = source.choice((64, 64, 96, 160))
    sequences = []
    for _ in range(tokens // length):
        pool = [source.randrange(FIRST_BYTE_ID, VOCABULARY_SIZE) for _ in range(source.choice((8, 40, 400, 400)))]
        words: list[list[int]] = []
        while sum(len(word) + 1 for word in words) < length // 2 - 12:
            words.append([source.choice(pool) for _ in range(source.randint(3, 12))])
        separator = source.randrange(FIRST_BYTE_ID, VOCABULARY_SIZE)
        ids, own = [], []
        for word in words:
            ids += [*word, separator]
            own += [False] * (len(word) + 1)
        if source.random() < 0.5:
            source.shuffle(words)
        for word in words:
            ids += [*word, separator]
            own += [False, *([True] * len(word))]
        sequences.append(Encoded(ids[:length], own[:length]))
    return padded(sequences)
