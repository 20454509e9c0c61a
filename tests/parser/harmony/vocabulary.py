"""The vocabulary of gpt-oss's encoding, offline: vLLM would download it from its maker.

The package that carries it keeps it in a format of its own: a count, then for each token the length of its bytes (2
bytes, little-endian), its bytes and its rank (4 bytes). openai-harmony refuses a file with another SHA-256 than the
one it knows, so what comes out is the real one or nothing.
"""

from __future__ import annotations

import base64
import os
import struct
import subprocess
import tempfile
from pathlib import Path

from localcluster.images.vllm_cpu import uv_command

LOCK = Path(__file__).resolve().parents[3] / "requirements" / "harmony-vocabulary.txt"
_NAME = "o200k_base.tiktoken"


def encodings_base() -> Path:
    """The folder for TIKTOKEN_ENCODINGS_BASE, filled if it is not yet."""
    cache = Path(os.environ.get("GEMMASERVE_CACHE") or Path.home() / ".cache" / "gemmaserve") / "harmony"
    if not (cache / _NAME).exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as target:
            command = [uv_command(), "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", target]
            environment = {**os.environ, "UV_SYSTEM_CERTS": "1"}
            subprocess.run([*command, "--requirement", str(LOCK)], check=True, env=environment, timeout=300)
            tokens = _tokens((Path(target) / "quicktok" / "data" / "o200k.vocab").read_bytes())
        part = cache / f"{_NAME}.{os.getpid()}"
        part.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in sorted(tokens)))
        part.rename(cache / _NAME)
    return cache


def _tokens(data: bytes) -> list[tuple[int, bytes]]:
    (count,) = struct.unpack_from("<I", data)
    tokens, at = [], 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        (rank,) = struct.unpack_from("<I", data, at + 2 + length)
        tokens.append((rank, data[at + 2 : at + 2 + length]))
        at += 6 + length
    return tokens
