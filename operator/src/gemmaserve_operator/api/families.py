"""What a model family implies for vLLM: the one place that maps `engine.family` to parsers."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Family:
    """Parser names as vLLM's registries know them."""

    tool_call_parser: str
    reasoning_parser: str


FAMILIES: Final[dict[str, Family]] = {
    "gemma4": Family(tool_call_parser="gemma4_atomic", reasoning_parser="gemma4"),
    "harmony": Family(tool_call_parser="openai", reasoning_parser="openai_gptoss"),
}
