"""Which vLLM versions the adapters were tested with, and the generation that each belongs to."""

from __future__ import annotations

import os
import re

FIRST, LAST = (0, 20, 2), (0, 33)
TESTED = "0.20.2 to 0.33"
ALLOW_UNTESTED = "GEMMASERVE_ALLOW_UNTESTED_VLLM"

_ENGINE = (0, 24)


class UntestedVllmError(RuntimeError):
    """The installed vLLM is outside the tested range."""


def generation(version: str) -> str:
    """The adapter module of a vLLM version: `vllm_0_20` or `vllm_0_24`.

    Args:
        version: As vLLM's distribution reports it, such as `0.32.0+cpu`.

    Raises:
        UntestedVllmError: It is outside the tested range and `GEMMASERVE_ALLOW_UNTESTED_VLLM` is not `1`.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
    tested = numbers >= FIRST and numbers[: len(LAST)] <= LAST
    if not tested and os.environ.get(ALLOW_UNTESTED) != "1":
        raise UntestedVllmError(
            f"gemmaserve-parser is tested with vLLM {TESTED}, and this is vLLM {version}. Install a tested vLLM or a"
            f" gemmaserve-parser that was tested with this one; {ALLOW_UNTESTED}=1 runs it untested."
        )
    return "vllm_0_24" if numbers >= _ENGINE else "vllm_0_20"
