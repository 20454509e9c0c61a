import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from gemmaserve_parser.replay import Case, problems, read_cases, run_core
from toolstream.cli import app
from toolstream.core.loadreport import COLOURS
from toolstream.core.outcomes import CLASSES

RIGHT = [("read_file", json.dumps({"path": path})) for path in ("a.txt", "b.txt", "c.txt")]
SAID = "".join(
    f'<|tool_call>call:read_file{{path:<|"|>{path}<|"|>}}<tool_call|>' for path in ("a.txt", "b.txt", "c.txt")
)


def run(*arguments):
    result = CliRunner().invoke(app, ["load", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def every_other(make, scripts, wrong):
    """A script whose answers are right and wrong in turn."""
    count = 0

    async def script(request, send):
        nonlocal count
        count += 1
        answer = make.right_answer("chat", True, RIGHT) if count % 2 else wrong
        await scripts.answers(answer)(request, send)

    return script


def test_json_holds_each_level_and_the_exit_code_says_whether_all_was_right(server, scripts):
    server.script = scripts.good_model
    result = run(server.url, "-c", "1,4", "-n", "8", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert [(level["concurrency"], level["outcomes"]) for level in found["levels"]] == [(1, {"ok": 8}), (4, {"ok": 8})]
    assert found["levels"][0]["totalSeconds"]["p99"] > 0


def test_a_table_names_the_classes_and_what_they_mean(make, server, scripts):
    server.script = every_other(make, scripts, make.chat_stream(make.chat_call("read_file", "{")))
    result = run(server.url, "-c", "1", "-n", "4")
    assert result.exit_code == 1
    assert "args_invalid_json" in result.stdout
    assert "not the JSON of an object" in " ".join(re.sub("[│┃]", " ", result.stdout).split())


def test_an_html_report_needs_nothing_from_the_network(make, server, scripts, tmp_path):
    server.script = every_other(make, scripts, make.chat_stream(make.chat_call("<b>", "{")))
    run(server.url, "-c", "1,2", "-n", "4", "--html", tmp_path / "load.html", "--model", "<script>alert(1)</script>")
    page = (tmp_path / "load.html").read_text()
    assert re.findall(r"(?:src|href|@import|url)\s*[=(]", page) == []
    assert "<script>" not in page
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 4
    for plot in plots:
        assert ET.fromstring(plot).get("aria-label")
    assert "args_invalid_json" in page


def test_every_class_has_a_colour_of_its_own():
    assert set(COLOURS) == set(CLASSES)
    assert len(set(COLOURS.values())) == len(CLASSES)


def test_a_request_and_calls_of_ones_own(server, make, scripts, tmp_path):
    server.script = scripts.answers(make.right_answer("chat", True, [("f", '{"x": 1}')]))
    (tmp_path / "request.json").write_text('{"messages": [], "vllm_xargs": {"forced_token_ids": [1]}}')
    (tmp_path / "expect.json").write_text('[{"name": "f", "arguments": {"x": 1}}]')
    own = ["--request", tmp_path / "request.json", "-c", "1", "-n", "2"]
    assert run(server.url, *own, "--expect", tmp_path / "expect.json").exit_code == 0
    assert server.requests[0].body == {
        "model": "stand-in",
        "messages": [],
        "vllm_xargs": {"forced_token_ids": [1]},
        "stream": True,
    }
    (tmp_path / "expect.json").write_text('[{"name": "f", "arguments": {"x": "1"}}]')
    wrong = run(server.url, *own, "--expect", tmp_path / "expect.json", "--json")
    assert json.loads(wrong.stdout)["levels"][0]["outcomes"] == {"wrong_arguments": 2}


@pytest.mark.parametrize("levels", ["", "0", "a", "10,,20", "100000"])
def test_levels_that_are_none_are_a_usage_error(levels):
    result = run("http://127.0.0.1:1", "-c", levels)
    assert result.exit_code == 2
    assert "10,100,500" in result.stderr


def vllm(server, pieces):
    """Make the stand-in give token ids, one a character, and spell them out, as vLLM does."""
    server.small["/version"] = {"version": "0.33.0"}
    server.small["/detokenize"] = lambda body: {"prompt": "".join(map(chr, body["tokens"]))}
    return [[*map(ord, piece)] for piece in pieces]


def chunks_with_ids(make, ids, *deltas):
    made = [make.chat_chunk(delta) for delta in deltas]
    made[-1]["choices"][0]["finish_reason"] = "tool_calls"
    for chunk, some in zip(made, ids, strict=True):
        chunk["choices"][0]["token_ids"] = some
    return [*made, "[DONE]"]


def test_a_kept_failure_is_the_models_own_words_and_replays(make, server, scripts, tmp_path):
    pieces = [SAID[:20], SAID[20:], "<turn|>"]
    broken = {"tool_calls": [make.chat_call("read_file", '{"path": "a.txt"')]}
    server.script = scripts.answers(chunks_with_ids(make, vllm(server, pieces), {}, broken, {}))
    run(server.url, "-c", "1", "-n", "2", "--keep", tmp_path)
    assert server.requests[0].body["return_token_ids"] is True
    kept = [*read_cases(tmp_path / "cases.jsonl")]
    assert len(kept) == 2
    assert (kept[0].text, kept[0].chunks) == (SAID, pieces[:2])
    for mode in kept[0].modes:
        assert problems(kept[0], run_core(kept[0], mode)) == []
    body = next(tmp_path.glob("c1-args_invalid_json-*.txt")).read_text()
    assert '{\\"path\\": \\"a.txt\\"' in body


def test_a_kept_failure_of_another_server_says_that_its_words_are_not_the_models(make, server, scripts, tmp_path):
    server.script = scripts.answers(make.chat_stream(make.chat_call("read_file", '{"path": "b", "n": [1, null]}')))
    run(server.url, "-c", "1", "-n", "1", "--keep", tmp_path)
    assert "return_token_ids" not in server.requests[0].body
    fields = json.loads((tmp_path / "cases.jsonl").read_text())
    assert "written anew" in fields["note"]
    case = Case(fields)
    assert problems(case, run_core(case, "non-streaming")) == []


def test_calls_that_came_broken_make_no_case_where_the_models_words_are_not_known(make, server, scripts, tmp_path):
    server.script = scripts.answers(make.chat_stream(make.chat_call("read_file", '{"path": "a')))
    run(server.url, "-c", "1", "-n", "1", "--keep", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["c1-args_invalid_json-0.txt"]


def test_kept_failures_are_bounded_a_class(make, server, scripts, tmp_path):
    server.script = scripts.answers(make.chat_stream(make.chat_call("read_file", "{")))
    run(server.url, "-c", "8", "-n", "50", "--keep", tmp_path)
    assert len([*tmp_path.glob("*.txt")]) == 20


@pytest.mark.timeout(120)
def test_an_interrupt_ends_it_with_what_there_is(server, make, scripts, tmp_path):
    answered = 0

    async def script(request, send):
        nonlocal answered
        answered += 1
        if answered > 3:
            os.kill(process.pid, signal.SIGINT)
            await asyncio.sleep(0.2)
        await scripts.answers(make.right_answer("chat", True, RIGHT))(request, send)

    server.script = script
    command = [sys.executable, "-m", "toolstream", "load", server.url, "-c", "1", "-n", "100000", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stdout, stderr = process.communicate(timeout=90)
    assert "interrupted by SIGINT" in stderr
    assert "Traceback" not in stderr
    found = json.loads(stdout)
    assert found["stopped"] == "interrupted by SIGINT"
    assert found["levels"][0]["done"] >= 3


def test_extra_fields_go_with_every_request_and_every_report_says_so(server, scripts, tmp_path):
    server.script = scripts.good_model
    result = run(
        server.url, "-c", "2", "-n", "4", "--extra-body", '{"top_k": 7}', "--json", "--html", tmp_path / "l.html"
    )
    assert json.loads(result.stdout)["extraBody"] == {"top_k": 7}
    assert "Each request carried also: {&quot;top_k&quot;: 7}" in (tmp_path / "l.html").read_text()
    asked = [request.body for request in server.requests if request.path == "/v1/chat/completions"]
    assert [(body["top_k"], body["stream"]) for body in asked] == [(7, True)] * 4
