"""How our parsers come into vLLM, and the refusal of a vLLM that was not tested."""

import pytest
from vllm.parser import ParserManager
from vllm.plugins import load_general_plugins
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager

from gemmaserve_parser import vllm_plugin
from gemmaserve_parser.adapters.versions import UntestedVllmError


@pytest.fixture(autouse=True)
def _loaded():
    load_general_plugins()


@pytest.mark.parametrize("name", ["gemma4_atomic", "gemma4"])
def test_both_names_are_ours_for_tools_and_for_reasoning(name):
    tools = ToolParserManager.get_tool_parser(name)
    reasoning = ReasoningParserManager.get_reasoning_parser(name)
    assert {tools.__module__.split(".")[0], reasoning.__module__.split(".")[0]} == {"gemmaserve_parser"}


def test_the_file_works_as_a_tool_parser_plugin(monkeypatch):
    monkeypatch.setattr(ToolParserManager, "tool_parsers", {})
    monkeypatch.setattr(ToolParserManager, "lazy_parsers", {})
    ToolParserManager.import_tool_parser(vllm_plugin.__file__)
    assert ToolParserManager.get_tool_parser("gemma4_atomic").__name__ == "Gemma4AtomicToolParser"


def test_registering_again_does_no_harm():
    before = ParserManager.get_parser
    vllm_plugin.register()
    assert ParserManager.get_parser is before


def test_other_parsers_are_left_alone():
    composed = ParserManager.get_parser(tool_parser_name="hermes", enable_auto_tools=True)
    assert not composed.__module__.startswith("gemmaserve_parser")


def test_an_untested_vllm_does_not_start(monkeypatch, capsys):
    monkeypatch.setattr(vllm_plugin, "version", lambda name: "0.99.0")
    monkeypatch.delenv("GEMMASERVE_ALLOW_UNTESTED_VLLM", raising=False)
    with pytest.raises(UntestedVllmError):
        vllm_plugin.register()
    assert "0.20.2 to 0.33" in capsys.readouterr().err
