"""Initial weights that already copy: what took earlier runs most of their time is laid down before the first step.

A transformer copies a word it has seen by two attentions in a row. In the first layer, which sees only a few tokens
back, heads look one and two tokens back and write down what stood there. In the second layer heads look for the place
before which stood what stands here now, and repeat what follows. Here both are set by hand in the channels named
below; training goes on from there and is free to change every weight.

The channels of a state: `CONTENT` the token itself, `BEFORE` and `EARLIER` codes of the tokens one and two back,
`CONSTANT` the same number for every token, by which heads of the first layer look at a distance and not at content.
"""

from __future__ import annotations

import torch
from torch import Tensor

from localcluster.tinymodel.training.model import Attention, Gemma4, rotary, rotate

CONTENT = slice(0, 64)
BEFORE = slice(64, 96)
EARLIER = slice(96, 127)
CONSTANT = 127
NOISE = 0.02
QUIET = 0.1
"""How loud a part of the model is at first that has yet to find its task."""


@torch.no_grad()
def lay_down(model: Gemma4) -> None:
    """Set the initial weights of a model of hidden size 128 with at least four heads of 32 channels in every layer."""
    layers = model.model.layers
    scale = model.config["hidden_size"] ** -0.5
    embedding = torch.zeros_like(model.model.embed_tokens.weight)
    embedding[:, CONTENT] = torch.randn_like(embedding[:, CONTENT]) * scale
    embedding[:, CONSTANT] = 4 * scale
    model.model.embed_tokens.weight.copy_(embedding)
    for layer in layers:
        layer.post_attention_layernorm.weight.fill_(QUIET)
        layer.post_feedforward_layernorm.weight.fill_(QUIET)
        layer.self_attn.q_norm.weight.fill_(0.5)
        layer.self_attn.k_norm.weight.fill_(0.5)
    _look_back(layers[0].self_attn, model)
    layers[0].post_attention_layernorm.weight.fill_(0.7)
    _look_for(layers[1].self_attn)
    layers[1].post_attention_layernorm.weight.fill_(3.0)


def _look_back(attention: Attention, model: Gemma4) -> None:
    """Heads 0 and 1 look one token back, head 2 two tokens; what they find goes to `BEFORE` and `EARLIER`."""
    key = torch.zeros(32)
    key[0:4] = key[16:20] = 1.0
    cosines, sines = rotary(model.config, "sliding_attention", 3)
    for projection in (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj):
        projection.weight.normal_(std=NOISE)
    for head, distance in enumerate((1, 1, 2)):
        rows = slice(32 * head, 32 * head + 32)
        back = rotate(key[None, None, None], (cosines[distance], -sines[distance])).flatten()
        attention.q_proj.weight[rows, CONSTANT] = back
        attention.k_proj.weight[rows, CONSTANT] = key
    _place(attention.v_proj.weight, slice(0, 32), slice(0, 32))
    _place(attention.o_proj.weight, BEFORE, slice(0, 32))
    _place(attention.v_proj.weight, slice(64, 96), slice(0, 32))
    _place(attention.o_proj.weight, EARLIER, slice(64, 95))
    attention.q_norm.weight.fill_(1.0)
    attention.k_norm.weight.fill_(1.0)


def _look_for(attention: Attention) -> None:
    """Heads 0 and 1 look for the last token's earlier places, heads 2 and 3 for those of the last two tokens."""
    still = [*range(4, 16), *range(20, 32)]
    for projection in (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj):
        projection.weight.normal_(std=NOISE)
    for head in (0, 1):
        for place, channel in enumerate(still):
            code = channel if head == 0 else (place + 8 * head) % 32
            attention.q_proj.weight[32 * head + channel, code] = 1.0
            attention.k_proj.weight[32 * head + channel, BEFORE.start + code] = 1.0
    for head in (2, 3):
        for place, channel in enumerate(still):
            code = place % 12 + 12 * (head - 2)
            here, there = (0, BEFORE.start) if place < 12 else (BEFORE.start, EARLIER.start)
            attention.q_proj.weight[32 * head + channel, here + code] = 1.0
            attention.k_proj.weight[32 * head + channel, there + code] = 1.0
    for head in range(4):
        copied = slice(32 * (head % 2), 32 * (head % 2) + 32)
        _place(attention.v_proj.weight, slice(32 * head, 32 * head + 32), copied)
        _place(attention.o_proj.weight, copied, slice(32 * head, 32 * head + 32))


def _place(weight: Tensor, rows: slice, columns: slice) -> None:
    """Let `rows` repeat `columns`."""
    weight[rows, columns] += torch.eye(rows.stop - rows.start, columns.stop - columns.start)
