"""Trained parameters to the kept form and back."""

from __future__ import annotations

import torch

from localcluster.tinymodel.weights import SCALE, Tensor, whole


def kept(state: dict[str, torch.Tensor]) -> dict[str, Tensor]:
    """A state dict with its matrices rounded to whole numbers, one factor a row."""
    tensors = {}
    for name, value in state.items():
        if value.dim() != 2:
            tensors[name] = Tensor("F32", tuple(value.shape), value.float().numpy().tobytes())
            continue
        scale = value.abs().amax(dim=1).clamp_min(1e-12) / 127
        numbers = (value / scale[:, None]).round().clamp(-127, 127).to(torch.int8)
        tensors[name] = Tensor("I8", tuple(value.shape), numbers.numpy().tobytes())
        tensors[name + SCALE] = Tensor("F32", (len(scale),), scale.float().numpy().tobytes())
    return tensors


def state_of(tensors: dict[str, Tensor]) -> dict[str, torch.Tensor]:
    """The state dict that the kept form stands for."""
    return {
        name: torch.frombuffer(bytearray(tensor.data), dtype=torch.float32).reshape(tensor.shape)
        for name, tensor in whole(tensors).items()
    }
