"""The trained weights as they are kept, a byte each, and as vLLM reads them.

Both files are safetensors: eight bytes that tell the length of a JSON header, the header, the numbers. What is kept
has for each matrix whole numbers from -127 to 127 (`I8`) and, under the name with `.scale` after it, one factor a row
(`F32`); vectors are kept as they are. Needs nothing but Python.
"""

from __future__ import annotations

import json
import struct
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path

SCALE = ".scale"


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file: `I8` or `F32`, its sizes, its numbers row by row in little-endian order."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file by name.

    Raises:
        ValueError: not such a file.
    """
    content = path.read_bytes()
    try:
        (length,) = struct.unpack_from("<Q", content)
        header = json.loads(content[8 : 8 + length])
        body = memoryview(content)[8 + length :]
        return {
            name: Tensor(entry["dtype"], tuple(entry["shape"]), bytes(body[slice(*entry["data_offsets"])]))
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (struct.error, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a safetensors file ({error}); restore it from the repository") from error


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write a safetensors file."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": (offset, end)}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensor.data for tensor in tensors.values()))


def whole(kept: dict[str, Tensor]) -> dict[str, Tensor]:
    """The kept tensors as 32-bit floating-point numbers: each whole number times the factor of its row."""
    made = {}
    for name, tensor in kept.items():
        if name.endswith(SCALE):
            continue
        made[name] = _scaled(tensor, kept[name + SCALE]) if tensor.dtype == "I8" else tensor
    return made


def _scaled(tensor: Tensor, scale: Tensor) -> Tensor:
    rows, columns = tensor.shape
    numbers, factors = array("b", tensor.data), floats(scale)
    scaled = array("f")
    for row in range(rows):
        factor = factors[row]
        scaled.extend(factor * number for number in numbers[row * columns : (row + 1) * columns])
    if sys.byteorder == "big":
        scaled.byteswap()
    return Tensor("F32", tensor.shape, scaled.tobytes())


def floats(tensor: Tensor) -> array[float]:
    """The numbers of an `F32` tensor."""
    numbers = array("f", tensor.data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
