"""VLLM's own Gemma 4 parsers, whatever the installed version calls them."""

import importlib
from importlib.util import find_spec

import pytest

ENGINE = "vllm.tool_parsers.gemma4_engine_tool_parser"


@pytest.fixture(scope="session")
def upstreams():
    """The tool parser class and the reasoning parser class."""
    if find_spec(ENGINE) is not None:
        reasoning = importlib.import_module("vllm.reasoning.gemma4_engine_reasoning_parser")
        return importlib.import_module(ENGINE).Gemma4EngineToolParser, reasoning.Gemma4ParserReasoningAdapter
    reasoning = importlib.import_module("vllm.reasoning.gemma4_reasoning_parser")
    tools = importlib.import_module("vllm.tool_parsers.gemma4_tool_parser")
    return tools.Gemma4ToolParser, reasoning.Gemma4ReasoningParser
