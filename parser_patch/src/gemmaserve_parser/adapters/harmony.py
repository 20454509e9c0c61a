"""gpt-oss: our reading of Harmony in place of the installed vLLM's."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gemmaserve_parser.adapters import messages

if TYPE_CHECKING:
    from types import ModuleType

    from gemmaserve_parser.replay import Case, Result


def install() -> None:
    """Put our reading of Harmony into the installed vLLM; may be called again.

    vLLM uses no registered name for gpt-oss: it picks its Harmony code by the model's type, whatever
    `--tool-call-parser` says (`openai` on every tested version). So ours takes its place.
    """
    _adapter().install()
    messages.install()


def installed() -> bool:
    """Whether the installed vLLM reads gpt-oss with our reading."""
    return bool(_adapter().installed())


def _adapter() -> ModuleType:
    generation = "harmony_0_24" if find_spec("vllm.parser.harmony") is not None else "harmony_0_20"
    return importlib.import_module(f"gemmaserve_parser.adapters.{generation}")


def replay(case: Case, mode: str) -> Result:
    """Run a case in one of its modes through the installed vLLM's chat server, as a chat completion."""
    replayed: Result = importlib.import_module("gemmaserve_parser.vllm_harmony").replay(case, mode)
    return replayed
