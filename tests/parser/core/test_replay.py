"""The command `gemmaserve-parser replay`: cases in, verdicts out."""

import json
import subprocess
import sys
import types
from pathlib import Path

import pytest

from gemmaserve_parser import cli, replay

PUBLIC_CASES = Path(__file__).parents[1] / "cases" / "public.jsonl"

RIGHT = {
    "id": "C1",
    "title": "text around a call",
    "model": "gemma4",
    "text": 'Hi <|tool_call>call:f{a:<|"|>x<|"|>}<tool_call|>',
    "chunks": ["Hi <|tool", '_call>call:f{a:<|"|>x<|"|>}<tool_call|>'],
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "expect": {
        "tool_calls": [{"name": "f", "arguments": {"a": "x"}}],
        "content": "Hi",
        "reasoning": None,
        "finish_reason": "tool_calls",
    },
}
WRONG = {**RIGHT, "id": "C2", "expect": {**RIGHT["expect"], "content": "Ho"}}


@pytest.fixture
def run(tmp_path, capsys):
    def run(*cases, options=()):
        file = tmp_path / "cases.jsonl"
        file.write_text("".join(case if isinstance(case, str) else json.dumps(case) + "\n" for case in cases))
        code = cli.main(["replay", str(file), *options])
        return code, *capsys.readouterr()

    return run


def test_right_cases_end_with_zero_and_a_summary(run):
    code, out, _ = run(RIGHT)
    assert code == 0
    assert out.splitlines()[0].startswith("through the core")
    assert out.splitlines()[-1] == "1 of 1 right"


def test_a_wrong_case_ends_with_one_and_says_what_was_wrong_in_which_mode(run):
    code, out, _ = run(RIGHT, WRONG)
    assert code == 1
    assert "right C1" in out
    assert "wrong C2" in out
    for mode in ("non-streaming", "token by token", "five characters", "all at once", "chunks"):
        assert f"core, {mode}: content 'Hi ', not 'Ho'" in out
    assert out.splitlines()[-1] == "1 of 2 right"


def test_json_for_machines(run):
    code, out, _ = run(RIGHT, WRONG, options=["--json"])
    report = json.loads(out)
    assert code == 1
    assert (report["right"], report["total"]) == (1, 2)
    assert [bool(case["wrong"]) for case in report["cases"]] == [False, True]


def test_only_one_model(run):
    assert run(RIGHT, options=["--model", "harmony"])[1].splitlines()[-1] == "0 of 0 right"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1"),
        ("[]", "line 1"),
        (json.dumps({"id": "X"}) + "\n", "case X: 'model' is missing"),
        (json.dumps({**RIGHT, "model": "llama"}) + "\n", "unknown model 'llama'"),
        (json.dumps({**RIGHT, "chunks": ["x"]}) + "\n", "'chunks' do not join to 'text'"),
    ],
)
def test_what_is_no_case_is_named(run, line, message):
    code, _, err = run(line)
    assert code == 2
    assert message in err


def test_a_missing_file_is_named(capsys):
    assert cli.main(["replay", "/nowhere/cases.jsonl"]) == 2
    assert "/nowhere/cases.jsonl" in capsys.readouterr().err


def test_an_exception_is_a_wrong_case(run, monkeypatch):
    def broken(case, mode):
        raise IndexError("boom")

    monkeypatch.setattr(cli, "run_core", broken)
    code, out, _ = run(RIGHT)
    assert code == 1
    assert "raised IndexError('boom')" in out


def test_spans_of_plain_text_get_ordinary_tokens():
    case = replay.Case({**RIGHT, "plain_text_spans": [[3, 15]], "chunks": None})
    ids = set(case.tokens)
    assert case.marker_ids["<tool_call|>"] in ids
    assert case.marker_ids["<|tool_call>"] not in ids
    assert "".join(map(case.decode, case.tokens)) == case.text


@pytest.mark.parametrize("mode", [replay.NON_STREAMING, replay.TOKENS, replay.FIVE, replay.WHOLE, replay.CHUNKS])
def test_every_mode_brings_the_whole_text_and_each_token_once(mode):
    case = replay.Case(RIGHT)
    deltas = case.deltas(mode)
    assert "".join(delta.text for delta in deltas) == case.text
    assert [token_id for delta in deltas for token_id in delta.token_ids] == case.tokens


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tool_calls": [("f", '{"a": "y"}')]}, "tool calls"),
        ({"tool_calls": [("f", '{"a": "x"')]}, "no JSON"),
        ({"tool_calls": []}, "tool calls"),
        ({"reasoning": "hm"}, "reasoning"),
        ({"finish_reason": "stop"}, "finish_reason stop"),
        ({"deltas_per_call": [2]}, "deltas a call: [2]"),
        ({"faults": ["two ids for index 0"]}, "two ids for index 0"),
    ],
)
def test_every_difference_is_a_problem(change, problem):
    case = replay.Case(RIGHT)
    right = replay.Result([("f", '{"a": "x"}')], "Hi", None, "tool_calls", [1])
    assert replay.problems(case, right) == []
    (found,) = replay.problems(case, right._replace(**change))
    assert problem in found


@pytest.mark.parametrize(("one", "other"), [("1", 1), (True, 1), (None, 0), ([], {}), ("", None)])
def test_values_of_different_types_differ(one, other):
    case = replay.Case({**RIGHT, "expect": {**RIGHT["expect"], "tool_calls": [{"name": "f", "arguments": {"a": one}}]}})
    result = replay.Result([("f", json.dumps({"a": other}))], "Hi", None, "tool_calls")
    assert replay.problems(case, result)
    assert not replay.problems(case, result._replace(tool_calls=[("f", json.dumps({"a": one}))]))


def test_another_answer_may_do_too():
    case = replay.Case({**WRONG, "alt_expect": RIGHT["expect"]})
    assert replay.problems(case, replay.run_core(case, replay.WHOLE)) == []


@pytest.mark.parametrize(
    ("request_fields", "reason"),
    [
        ({}, "tool_calls"),
        ({"finish": "length"}, "length"),
        ({"tool_choice": "none"}, "stop"),
        ({"tool_choice": "required"}, "tool_calls"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "stop"),
    ],
)
def test_finish_reason(request_fields, reason):
    case = replay.Case({**RIGHT, "request": request_fields})
    assert replay.run_core(case, replay.TOKENS).finish_reason == reason


def module(monkeypatch, name, **functions):
    stand_in = types.ModuleType(name)
    vars(stand_in).update(functions)
    monkeypatch.setitem(sys.modules, name, stand_in)


def test_where_vllm_is_installed_its_adapter_is_judged_too(run, monkeypatch):
    broken = replay.Result([], None, None, "stop")
    module(monkeypatch, "gemmaserve_parser.vllm_replay", run=lambda case, mode: broken)
    monkeypatch.setattr(cli, "find_spec", lambda name: name)
    code, out, _ = run(RIGHT)
    assert code == 1
    assert out.splitlines()[0] == "through the core and adapter"
    assert "adapter, all at once: tool calls []" in out
    assert "core, all at once" not in out


def test_regressions_get_their_own_options(monkeypatch):
    seen = []
    module(monkeypatch, "gemmaserve_parser.regressions", main=lambda arguments: seen.extend(arguments) or 1)
    assert cli.main(["regressions", "--report", "file", "--help"]) == 1
    assert seen == ["--report", "file", "--help"]


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", "--help"])
    assert ended.value.code == 0
    assert "gemmaserve-parser replay cases.jsonl" in capsys.readouterr().out


def test_the_core_needs_nothing_but_the_standard_library():
    program = (
        "import sys; sys.path = [p for p in sys.path if 'site-packages' not in p]; "
        "import gemmaserve_parser.core.gemma4; "
        "loaded = {name.partition('.')[0] for name in sys.modules}; "
        "print(sorted(loaded - set(sys.stdlib_module_names) - {'__main__', 'gemmaserve_parser'}))"
    )
    source = str(replay.__file__).rpartition("/gemmaserve_parser/")[0]
    answer = subprocess.run(
        [sys.executable, "-S", "-c", program], env={"PYTHONPATH": source}, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_the_cases_of_public_reports_are_right_in_every_mode(capsys):
    assert cli.main(["replay", str(PUBLIC_CASES), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["right"] == report["total"] == len(PUBLIC_CASES.read_text(encoding="utf-8").splitlines())
