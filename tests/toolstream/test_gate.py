"""The gate's report, and the two exits that matter: nothing that was not seen to be right passes."""

import json

import pytest

from toolstream.commands.check import gate_questions
from toolstream.core.gate import CALL_SEEN, REPORT_LIMIT, GateContext, gate_failures, gate_report
from toolstream.core.readers import read
from toolstream.core.verdicts import judge

CONTEXT = GateContext(
    parser="gemma4_atomic",
    parser_version="0.1.0",
    vllm_version="0.32.0",
    started_at="2026-01-01T00:00:00Z",
    finished_at="2026-01-01T00:00:09Z",
    total=2,
)


def judged(make, *calls, text="", finish_reason="tool_calls"):
    answer = read(make.exchange(make.chat_stream(*calls, text=text, finish_reason=finish_reason)))
    return judge(make.question(), answer)


def right(make):
    return judged(make, make.chat_call("read_file", '{"path": "notes.txt"}'))


def test_a_report_has_the_shape_that_the_operator_reads(make):
    report = json.loads(gate_report([right(make), right(make)], CONTEXT))
    assert report == {
        "parser": "gemma4_atomic",
        "parserVersion": "0.1.0",
        "vllmVersion": "0.32.0",
        "passed": 2,
        "failed": 0,
        "inconclusive": 0,
        "total": 2,
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:09Z",
        "failures": [],
    }


def test_failures_name_the_rules(make):
    bad = judged(make, make.chat_call("read_file", '{"path": "notes') | {"id": None})
    report = json.loads(gate_report([right(make), bad], CONTEXT))
    assert (report["passed"], report["failed"]) == (1, 1)
    assert {failure["name"] for failure in report["failures"]} == {
        "call-has-id",
        "delta-complete",
        "arguments-are-an-object",
    }
    assert "chat stream auto one-call" in report["failures"][0]["message"]


@pytest.mark.parametrize("mess", ["\N{FOX FACE}" * 5000, '\\"\x00' * 5000, "\ud800" * 2000])
def test_a_report_fits_whatever_a_server_says(make, mess):
    calls = [make.chat_call(mess, mess, index=index + 3) | {"id": mess, "type": mess} for index in range(6)]
    context = GateContext(mess, "0.1.0", mess, "", "", 1, trouble=mess)
    text = gate_report([judged(make, *calls, text=f"<|tool_call>{mess}", finish_reason=mess)], context)
    assert len(text.encode(errors="backslashreplace")) <= REPORT_LIMIT
    assert len(json.loads(text)["failures"]) == 5


def test_a_gate_that_saw_no_call_does_not_pass(make):
    silent = judged(make, text="I cannot.", finish_reason="stop")
    assert [failure["name"] for failure in gate_failures([silent], CONTEXT)] == [CALL_SEEN]
    assert gate_failures([silent, right(make)], CONTEXT) == []
    assert [failure["name"] for failure in gate_failures([], CONTEXT)] == [CALL_SEEN]


def test_a_gate_that_did_not_finish_does_not_pass(make):
    unfinished = GateContext("", "", "", "", "", 2, trouble="1 of 2 requests judged: the time of 1 s was up")
    assert [failure["name"] for failure in gate_failures([right(make)], unfinished)] == ["unfinished"]


def test_calls_of_forbidden_requests_are_not_seen_calls(make):
    forbidden = make.question(tool_choice="none")
    answer = read(make.exchange(make.chat_stream(text="So be it.", finish_reason="stop")))
    assert [failure["name"] for failure in gate_failures([judge(forbidden, answer)], CONTEXT)] == [CALL_SEEN]


def test_the_gate_asks_as_often_as_it_is_told_streams_first():
    questions = gate_questions(40)
    assert len(questions) == 40
    assert {question.endpoint for question in questions} == {"chat"}
    assert all(question.streaming for question in questions[:10])
    assert len({question.name for question in questions}) == 20
