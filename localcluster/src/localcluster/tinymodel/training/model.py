"""Gemma 4's text model in plain torch: the same maths as transformers' and vLLM's, without what training never needs.

Only what the stand-in's configuration uses is here: no per-layer embeddings, no shared keys and values, no experts.
Parameters carry the names of the checkpoint format, so that a state dict is a checkpoint. That the scores equal
those of transformers and of vLLM is a test.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Rope = tuple[Tensor, Tensor]
"""Cosines, and sines with the sign of each channel's partner, each `[tokens, head size]`."""


class RmsNorm(nn.Module):
    """Root-mean-square normalisation with a learned factor for each channel."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, states: Tensor) -> Tensor:
        """`[..., size]` to the same shape."""
        return functional.rms_norm(states, self.weight.shape, self.weight, self.epsilon)


def rotary(config: dict[str, Any], kind: str, length: int) -> Rope:
    """The rotations of one kind of layer for positions 0 to `length`; the part that is not rotated has angle 0."""
    parameters = config["rope_parameters"][kind]
    size = config["head_dim"]
    rotated = int(parameters.get("partial_rotary_factor", 1.0) * size // 2)
    frequencies = torch.zeros(size // 2)
    frequencies[:rotated] = parameters["rope_theta"] ** (-torch.arange(0, 2 * rotated, 2).float() / size)
    angles = torch.outer(torch.arange(length).float(), frequencies).repeat(1, 2)
    sine = angles.sin()
    sine[:, : size // 2] *= -1
    return angles.cos(), sine


def rotate(states: Tensor, rope: Rope) -> Tensor:
    """Turn `[batch, heads, tokens, head size]` by their positions."""
    cosine, sine = rope
    return torch.addcmul(states * cosine, states.roll(states.shape[-1] // 2, dims=-1), sine)


def attend(query: Tensor, key: Tensor, value: Tensor, window: int | None) -> Tensor:
    """Causal attention `[batch, heads, tokens, head size]`, with `window` over that many last tokens only.

    With a window the tokens go in blocks, each of which sees itself and the block before it.
    """
    if window is None:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=1.0)
    batch, heads, tokens, size = query.shape
    block = -(-window // 16) * 16
    blocks = -(-tokens // block)
    query, key, value = (functional.pad(each, (0, 0, 0, blocks * block - tokens)) for each in (query, key, value))

    def with_before(each: Tensor) -> Tensor:
        cut = functional.pad(each, (0, 0, block, 0)).unfold(2, 2 * block, block)
        return cut.transpose(-1, -2).reshape(batch * heads, blocks, 2 * block, size)

    distance = torch.arange(block)[:, None] + block - torch.arange(2 * block)[None, :]
    visible = ((distance >= 0) & (distance < window)).repeat(blocks, 1, 1)
    visible[0, :, :block] = False
    mask = torch.zeros(visible.shape).masked_fill(~visible, float("-inf"))
    query = query.reshape(batch * heads, blocks, block, size)
    mixed = functional.scaled_dot_product_attention(query, with_before(key), with_before(value), mask, scale=1.0)
    return mixed.reshape(batch, heads, blocks * block, size)[:, :, :tokens]


class Attention(nn.Module):
    """Attention with normalised queries, keys and values and no further scaling."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        hidden, self.size = config["hidden_size"], config["head_dim"]
        queries, pairs = config["num_attention_heads"] * self.size, config["num_key_value_heads"] * self.size
        self.groups = queries // pairs
        self.epsilon = config["rms_norm_eps"]
        self.q_proj = nn.Linear(hidden, queries, bias=False)
        self.k_proj = nn.Linear(hidden, pairs, bias=False)
        self.v_proj = nn.Linear(hidden, pairs, bias=False)
        self.o_proj = nn.Linear(queries, hidden, bias=False)
        self.q_norm = RmsNorm(self.size, self.epsilon)
        self.k_norm = RmsNorm(self.size, self.epsilon)

    def forward(self, states: Tensor, rope: Rope, window: int | None) -> Tensor:
        """`[batch, tokens, hidden]` to the same shape."""
        batch, tokens, _ = states.shape

        def heads(projected: Tensor) -> Tensor:
            return projected.view(batch, tokens, -1, self.size)

        query = rotate(self.q_norm(heads(self.q_proj(states))).transpose(1, 2), rope)
        key = rotate(self.k_norm(heads(self.k_proj(states))).transpose(1, 2), rope)
        value = functional.rms_norm(heads(self.v_proj(states)), (self.size,), None, self.epsilon).transpose(1, 2)
        if self.groups > 1:
            key, value = (pair.repeat_interleave(self.groups, dim=1) for pair in (key, value))
        mixed = attend(query, key, value, window)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, tokens, -1))


class Mlp(nn.Module):
    """The gated feed-forward part."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        """`[..., hidden]` to the same shape."""
        gate = functional.gelu(self.gate_proj(states), approximate="tanh")
        return self.down_proj(gate * self.up_proj(states))


class Layer(nn.Module):
    """One decoder layer: attention and feed-forward, each normalised before and after."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        hidden, epsilon = config["hidden_size"], config["rms_norm_eps"]
        self.self_attn = Attention(config)
        self.mlp = Mlp(hidden, config["intermediate_size"])
        self.input_layernorm = RmsNorm(hidden, epsilon)
        self.post_attention_layernorm = RmsNorm(hidden, epsilon)
        self.pre_feedforward_layernorm = RmsNorm(hidden, epsilon)
        self.post_feedforward_layernorm = RmsNorm(hidden, epsilon)
        self.register_buffer("layer_scalar", torch.ones(1))

    def forward(self, states: Tensor, rope: Rope, window: int | None) -> Tensor:
        """`[batch, tokens, hidden]` to the same shape."""
        attended = self.self_attn(self.input_layernorm(states), rope, window)
        states = states + self.post_attention_layernorm(attended)
        transformed = self.mlp(self.pre_feedforward_layernorm(states))
        return states + self.post_feedforward_layernorm(transformed)


class Gemma4(nn.Module):
    """The model that `config` (a checkpoint's config.json) describes.

    Sequences in a batch are padded on the right: a causal model never sees what comes later.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.model.layers = nn.ModuleList(Layer(config) for _ in config["layer_types"])
        self.model.norm = RmsNorm(config["hidden_size"], config["rms_norm_eps"])
        self._ropes: dict[tuple[str, int], Rope] = {}
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids `[batch, tokens]` to final states `[batch, tokens, hidden]`."""
        embed = self.model.embed_tokens
        states = embed(ids) * self.config["hidden_size"] ** 0.5
        for kind, layer in zip(self.config["layer_types"], self.model.layers, strict=True):
            window = self.config["sliding_window"] if kind == "sliding_attention" else None
            states = layer(states, self._rope(kind, ids.shape[1]), window)
        return self.model.norm(states)

    def logits(self, states: Tensor) -> Tensor:
        """Final states `[..., hidden]` to scores `[..., vocabulary]`, softly capped."""
        cap = self.config["final_logit_softcapping"]
        scores = functional.linear(states, self.model.embed_tokens.weight)
        return cap * torch.tanh(scores / cap)

    def _rope(self, kind: str, tokens: int) -> Rope:
        if (kind, tokens) not in self._ropes:
            self._ropes[kind, tokens] = rotary(self.config, kind, tokens)
        return self._ropes[kind, tokens]
