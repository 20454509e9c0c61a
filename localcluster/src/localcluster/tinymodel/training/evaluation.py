"""How many answers are right to the letter, greedily, on names that training never shows.

An answer is what the model says after one request or after the tools' results. That greedy decoding gives the right
answer token by token is the same as that each right token scores highest after the right ones before it; so one
forward pass tells, without decoding.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from localcluster.tinymodel.tokenizer import SPECIAL_TOKENS
from localcluster.tinymodel.training.batches import grouped
from localcluster.tinymodel.training.conversations import conversation
from localcluster.tinymodel.training.encoding import Encoder
from localcluster.tinymodel.training.model import Gemma4

CALL = SPECIAL_TOKENS["<|tool_call>"]


@dataclass
class Score:
    """Answers that are right, of how many: those with calls, and those without."""

    calls_right: int = 0
    calls: int = 0
    texts_right: int = 0
    texts: int = 0

    def __str__(self) -> str:
        return f"calls {self.calls_right}/{self.calls} sentences {self.texts_right}/{self.texts}"


@torch.no_grad()
def evaluate(model: Gemma4, encoder: Encoder, exchanges: int, seed: int, tokens: int = 8192) -> Score:
    """Score `exchanges` held-out exchanges of one or two requests."""
    source = random.Random(f"evaluation {seed}")
    made = [encoder.encode(conversation(source, held_out=True, turns=2)) for _ in range(exchanges)]
    score = Score()
    for batch in grouped(made, tokens):
        said = model.logits(model(batch.ids[:, :-1])).argmax(-1)
        right = said == batch.ids[:, 1:]
        for ids, own, good in zip(batch.ids[:, 1:].tolist(), batch.own[:, 1:].tolist(), right.tolist(), strict=True):
            for start, end in answers(own):
                exact = all(good[start:end])
                if CALL in ids[start:end]:
                    score.calls += 1
                    score.calls_right += exact
                else:
                    score.texts += 1
                    score.texts_right += exact
    return score


def answers(own: list[bool]) -> Iterator[tuple[int, int]]:
    """Where the model speaks: `[start, end)` of each run of its own tokens."""
    start = None
    for position, mine in enumerate([*own, False]):
        if mine and start is None:
            start = position
        elif not mine and start is not None:
            yield start, position
            start = None
