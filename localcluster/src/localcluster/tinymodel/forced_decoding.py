"""A vLLM logits processor that makes the model say exactly the tokens a request names. For stand-ins and tests only.

    vllm serve ... --logits-processors forced_decoding:ForcedDecoding

A request carries `"vllm_xargs": {"forced_token_ids": [48, 355, ...]}`; token n of the answer is number n of that list,
whatever the model's own scores are, and after the last one the end-of-turn token. A request without the field is left
alone, unless the server was started with `FORCED_ANSWER` and the request declares tools: then that text is the answer,
so that a client which knows nothing of us sees tool calls, too. Everything else of vLLM, the engine, detokenizing,
tool-call parsing, streaming, runs as it always does.

This file is copied into the demo's serving image and runs there, in vLLM's engine process.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from vllm.v1.sample.logits_processor import LogitsProcessor, MoveDirectionality

if TYPE_CHECKING:
    import torch
    from vllm import SamplingParams
    from vllm.config import VllmConfig
    from vllm.v1.sample.logits_processor import BatchUpdate

FIELD = "forced_token_ids"
END_OF_TURN_ID = 106
"""`<turn|>` in Gemma 4's vocabulary."""
DECLARATION_ID = 46
"""`<|tool>`: stands in a prompt before each tool that the request declares."""
DEFAULT_VARIABLE = "FORCED_ANSWER"


class ForcedDecoding(LogitsProcessor):  # type: ignore[misc]  # vLLM is not installed where this is type-checked
    """Keeps, for each row of the batch that is forced, its ids and vLLM's own list of what was said so far."""

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        """Refuse (HTTP 400) a field that is not a list of token ids."""
        forced = (sampling_params.extra_args or {}).get(FIELD)
        if forced is not None and not _is_list_of_ids(forced):
            raise ValueError(f"vllm_xargs.{FIELD} must be a list of token ids (integers, 0 or more)")

    def __init__(self, vllm_config: VllmConfig, device: torch.device, is_pin_memory: bool) -> None:  # noqa: ARG002
        """Spell the answer to requests that declare tools, if there is to be one, in the model's tokens."""
        self._rows: dict[int, tuple[list[int], list[int]]] = {}
        self._default = _spell(os.environ.get(DEFAULT_VARIABLE, ""), vllm_config.model_config.tokenizer)

    def is_argmax_invariant(self) -> bool:
        """False: greedy sampling must come through here too."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follow requests as vLLM adds, removes and moves rows of its batch (in the order its interface prescribes)."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._rows.pop(row, None)
        for row, params, prompt, said in batch_update.added:
            self._rows.pop(row, None)
            forced = self.words(params, prompt)
            if forced is not None:
                self._rows[row] = (forced, said)
        for source, target, direction in batch_update.moved:
            moving, displaced = self._rows.pop(source, None), self._rows.pop(target, None)
            if moving is not None:
                self._rows[target] = moving
            if displaced is not None and direction is MoveDirectionality.SWAP:
                self._rows[source] = displaced

    def words(self, params: SamplingParams, prompt: list[int] | None) -> list[int] | None:
        """The token ids that a new request's answer is made of; None leaves the model its own words."""
        forced: list[int] | None = (params.extra_args or {}).get(FIELD)
        return self._default if forced is None and DECLARATION_ID in (prompt or ()) else forced

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Leave one possible token in each row that is forced."""
        for row, (forced, said) in self._rows.items():
            position = len(said)
            token = forced[position] if position < len(forced) else END_OF_TURN_ID
            logits[row] = float("-inf")
            logits[row, token] = 0.0
        return logits


def _spell(text: str, tokenizer: str) -> list[int] | None:
    if not text:
        return None
    from transformers import AutoTokenizer  # noqa: PLC0415  (vLLM's own; a second that few need)

    ids: list[int] = AutoTokenizer.from_pretrained(tokenizer).encode(text, add_special_tokens=False)
    return ids


def _is_list_of_ids(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, int) and item >= 0 for item in value)
