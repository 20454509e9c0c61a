"""What vLLM loads: the entry point in its group `vllm.general_plugins`, or `--tool-parser-plugin` with this file.

It registers our parser under the name `gemma4_atomic`, and under `gemma4` in place of vLLM's own, so that existing
command lines are cured. A server asks for `gemma4_atomic`: without us there is no such name, and it does not start
(rule 9). Nothing of the adapters is imported until a server asks for a parser by name.
"""

from __future__ import annotations

import functools
import importlib
import sys
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from gemmaserve_parser.adapters.versions import UntestedVllmError, generation

NAMES = ("gemma4_atomic", "gemma4")
"""What the parser is registered as, for tools and for reasoning."""

_MARK = "_gemmaserve_original"


def register() -> None:
    """Register our parsers with the vLLM that is installed; may be called again.

    Raises:
        UntestedVllmError: vLLM is outside the tested range. vLLM lets it through: the server does not start.
    """
    try:
        adapter = f"gemmaserve_parser.adapters.{generation(version('vllm'))}"
    except UntestedVllmError as error:
        # In case a vLLM swallows what its plugins raise: then the name is missing, and this says why.
        sys.stderr.write(f"ERROR: {error}\n")
        raise
    _register(importlib.import_module("vllm.tool_parsers").ToolParserManager, "tool_parsers", adapter, "ToolParser")
    _register(
        importlib.import_module("vllm.reasoning").ReasoningParserManager,
        "reasoning_parsers",
        adapter,
        "ReasoningParser",
    )
    _compose(importlib.import_module("vllm.parser").ParserManager, adapter)
    if find_spec("gemmaserve_parser.adapters.harmony") is not None:
        importlib.import_module("gemmaserve_parser.adapters.harmony").install()


def _register(manager: Any, loaded: str, adapter: str, suffix: str) -> None:
    for name in NAMES:
        getattr(manager, loaded).pop(name, None)
        manager.register_lazy_module(name, adapter, f"Gemma4Atomic{suffix}")


def _compose(manager: Any, adapter: str) -> None:
    original = manager.get_parser
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def get_parser(*args: Any, **kwargs: Any) -> Any:
        composed = original(*args, **kwargs)
        tool_parser = getattr(composed, "tool_parser_cls", None)
        if tool_parser is None or not tool_parser.__module__.startswith("gemmaserve_parser."):
            return composed
        return importlib.import_module(adapter).server_parser(composed)

    setattr(get_parser, _MARK, original)
    manager.get_parser = get_parser


if __name__ != "gemmaserve_parser.vllm_plugin":
    # vLLM loads the file that --tool-parser-plugin names under a module name of its own, and calls nothing in it.
    register()
