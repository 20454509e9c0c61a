"""The shipped regressions, against our parser and against vLLM's own under our name."""

import json

import pytest
from vllm.plugins import load_general_plugins
from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager

from gemmaserve_parser.regressions import main


@pytest.mark.parametrize("parser", ["gemma4_atomic", "gemma4"])
def test_all_pass_with_our_parser(tmp_path, parser):
    report = tmp_path / "report.json"
    assert main(["--parser", parser, "--report", str(report)]) == 0
    fields = json.loads(report.read_text())
    assert fields["parser"] == parser
    assert fields["passed"] == fields["total"] >= 78
    assert (fields["failed"], fields["failures"]) == (0, [])
    assert fields["startedAt"] <= fields["finishedAt"]


def test_upstreams_parser_fails_by_name(tmp_path, monkeypatch, capsys, upstreams):
    load_general_plugins()
    tools, reasoning = upstreams
    monkeypatch.setitem(ToolParserManager.tool_parsers, "gemma4_atomic", tools)
    monkeypatch.setitem(ReasoningParserManager.reasoning_parsers, "gemma4_atomic", reasoning)
    report = tmp_path / "report.json"
    assert main(["--report", str(report)]) == 1
    failed = {line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")}
    assert failed >= {
        "the_server_hands_out_our_parser",
        "every_chunk_carries_the_required_strict_fields",
        "multiple_tools_emit_distinct_indices",
        "max_tokens_inside_a_string",
    }
    fields = json.loads(report.read_text())
    assert fields["failed"] == len(failed)
    assert len(fields["failures"]) == 5
    assert len(report.read_bytes()) <= 4096


def test_a_server_without_our_name_fails(monkeypatch, capsys):
    load_general_plugins()
    monkeypatch.setattr(ToolParserManager, "tool_parsers", {})
    monkeypatch.setattr(ToolParserManager, "lazy_parsers", {})
    assert main(["-k", "the_server_hands_out_our_parser"]) == 1
    assert "gemma4_atomic" in capsys.readouterr().out


def test_a_pattern_that_matches_nothing_is_a_usage_error(capsys):
    assert main(["-k", "no_such_regression"]) == 2
    assert "--list" in capsys.readouterr().err


def test_the_named_ones_are_there(capsys):
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    for name in (
        "every_chunk_carries_the_required_strict_fields",
        "id_resets_between_requests",
        "multiple_tools_emit_distinct_indices",
        "mega_delta_with_all_tools_in_one_chunk",
        "partial_delta_split_inside_close_marker",
        "parenthesised_call",
        "braced_call_control",
        "parenthesised_call_followed_by_braced_call",
        "call_that_ends_right_after_its_name",
    ):
        assert f"{name}: " in listed
