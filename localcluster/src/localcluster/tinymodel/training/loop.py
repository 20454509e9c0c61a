"""The training loop: Muon for the matrices, AdamW for the rest; it can be stopped and taken up again at any time."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from localcluster.tinymodel.training.batches import Batch, exchanges, grouped, repeats
from localcluster.tinymodel.training.encoding import Encoded, Encoder
from localcluster.tinymodel.training.evaluation import Score, evaluate
from localcluster.tinymodel.training.model import Gemma4


@dataclass(frozen=True)
class Plan:
    """How to train.

    Attributes:
        steps: Updates in all.
        decay: The last updates, over which the learning rate falls to nothing.
        warmup: The first updates on repeated random strings alone.
        repeating: The share of such updates after that.
        tokens: Tokens of a batch.
        turns: Requests of an exchange, at most.
        seed: Of names, exchanges and initial weights.
        hardest: The share of all exchanges that is learnt from, above 0 and at most 1: those with the greatest loss of
            a token.
        rate: A factor of the learning rates.
        matrix_rate: Muon's learning rate.
        other_rate: AdamW's learning rate.
    """

    steps: int
    decay: int
    warmup: int = 300
    repeating: float = 0.03
    tokens: int = 4096
    turns: int = 2
    seed: int = 1
    hardest: float = 1.0
    rate: float = 1.0
    matrix_rate: float = 0.02
    other_rate: float = 0.004


class Trainer:
    """A model, its optimizers and how far it is."""

    def __init__(self, config: dict[str, Any], plan: Plan) -> None:
        torch.manual_seed(plan.seed)
        self.plan = plan
        self.model = Gemma4(config)
        for layer in self.model.model.layers:
            # A quarter less time for a step; the first steps wait a minute for the compiler.
            layer.compile(dynamic=True)
        self.step = 0
        named = [*self.model.named_parameters()]
        matrices = [parameter for name, parameter in named if parameter.dim() == 2 and "embed" not in name]
        others = [parameter for name, parameter in named if parameter.dim() != 2 or "embed" in name]
        self.optimizers = (
            torch.optim.Muon(matrices, lr=plan.matrix_rate, weight_decay=0.01),
            torch.optim.AdamW(others, lr=plan.other_rate, betas=(0.9, 0.98), weight_decay=0.0),
        )
        self._rates = (plan.matrix_rate, plan.other_rate)

    def train(self, directory: Path, *, save_every: float = 400.0) -> None:
        """Train to the end of the plan; the state goes to `directory` every `save_every` seconds."""
        encoder, saved, started = Encoder(), time.monotonic(), time.monotonic()
        source = random.Random(f"{self.plan.seed} {self.step}")
        stream = exchanges(source, encoder, self.plan.tokens, self.plan.turns, self.hardest)
        mean, seen = 0.0, 0
        while self.step < self.plan.steps:
            repeating = self.step < self.plan.warmup or source.random() < self.plan.repeating
            batch = repeats(source, self.plan.tokens // 2) if repeating else next(stream)
            loss = self.update(batch)
            if not repeating:
                mean, seen = mean + loss, seen + 1
            if self.step % 25 == 0:
                seconds = time.monotonic() - started
                shown = f"loss {mean / seen:.4f}" if seen else f"repeats {loss:.4f}"
                print(f"step {self.step}/{self.plan.steps} {shown} {seconds:.0f} s", flush=True)
                mean, seen = 0.0, 0
            if time.monotonic() - saved > save_every or self.step == self.plan.steps:
                self.save(directory / "state.pt")
                score = self.score(encoder)
                print(f"step {self.step} {score}", flush=True)
                saved = time.monotonic()

    @torch.no_grad()
    def hardest(self, sequences: list[Encoded]) -> list[Encoded]:
        """The share of the sequences that the plan wants learnt from.

        Late in training most exchanges are right; reading one costs a third of learning from it.
        """
        kept = math.ceil(len(sequences) * self.plan.hardest)
        if kept == len(sequences):
            return sequences
        ordered = sorted(sequences, key=lambda sequence: len(sequence.ids))
        losses = [loss for batch in grouped(ordered, self.plan.tokens) for loss in worst(self.model, batch)]
        ranked = sorted(range(len(ordered)), key=losses.__getitem__, reverse=True)
        return [ordered[number] for number in ranked[:kept]]

    def score(self, encoder: Encoder, exchanges_: int = 40) -> Score:
        """How many held-out exchanges go right."""
        return evaluate(self.model, encoder, exchanges_, seed=0)

    def update(self, batch: Batch) -> float:
        """One step; the loss."""
        left = self.plan.steps - self.step
        share = min(1.0, (self.step + 1) / 50, left / max(1, self.plan.decay))
        for optimizer, rate in zip(self.optimizers, self._rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * share * self.plan.rate
        loss = loss_of(self.model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1
        return float(loss.detach())

    def save(self, path: Path) -> None:
        """Write everything that `load` needs."""
        state = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
        }
        partial = path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(path)

    def load(self, path: Path) -> None:
        """Take up what `save` wrote."""
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step = state["step"]


def worst(model: Gemma4, batch: Batch) -> list[float]:
    """Of each sequence the greatest cross entropy of one of the model's own tokens."""
    losses = torch.zeros(batch.own[:, 1:].shape)
    losses[batch.own[:, 1:]] = _losses(model, batch)
    return losses.amax(1).tolist()


def loss_of(model: Gemma4, batch: Batch) -> Tensor:
    """The mean cross entropy over the model's own tokens."""
    return _losses(model, batch).mean()


def _losses(model: Gemma4, batch: Batch) -> Tensor:
    """The cross entropy of each of the model's own tokens, `[tokens]`."""
    states = model(batch.ids[:, :-1])
    own = batch.own[:, 1:]
    return functional.cross_entropy(model.logits(states[own]), batch.ids[:, 1:][own], reduction="none")
