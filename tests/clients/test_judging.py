"""The judgement of a session finds each thing that a user could not use; no client or server needed."""

import json

import pytest
import scenarios
import sessions
import table
from servers import SERVERS

THREE = next(each for each in scenarios.SCENARIOS if each.name == "three calls")
RIGHT = {
    "text": "",
    "calls": [
        {"id": f"call-{number}", "name": call.name, "arguments": json.dumps(call.arguments)}
        for number, call in enumerate(THREE.calls)
    ],
    "finish": "tool_calls",
    "answer": scenarios.FINAL_ANSWER,
    "error": None,
}


def changed(call: int, **fields: str | None) -> dict[str, object]:
    calls = [dict(each) for each in RIGHT["calls"]]
    calls[call].update(fields)
    return {"calls": calls}


def test_a_right_session_has_no_problem() -> None:
    assert sessions.problem(THREE, RIGHT) is None


def test_a_cut_call_is_none() -> None:
    cut = scenarios.SCENARIOS[-1]
    assert sessions.problem(cut, {**RIGHT, "calls": [], "finish": "length", "answer": None}) is None
    call = {"id": "call-0", "name": "read_file", "arguments": '{"path": "READ"}'}
    said = sessions.problem(cut, {**RIGHT, "calls": [call], "finish": "length", "answer": None})
    assert said == '1 calls instead of 0, the first with {"path": "READ"}'


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        ({"error": "TypeError: no id"}, "TypeError: no id"),
        ({"calls": RIGHT["calls"][:2]}, '2 calls instead of 3, the first with {"path": "src/main.py"}'),
        (changed(1, name="weather"), "call 2 has the name 'weather'"),
        (changed(2, arguments='{"path": "do'), "call 3 has the arguments"),
        (changed(0, arguments=""), "call 1 has the arguments ''"),
        (changed(1, arguments='{"city": "Zürich", "days": "3"}'), 'call 2 has the arguments {"city"'),
        (changed(0, id=None), "the ids are [None"),
        (changed(0, id="call-1"), "the ids are ['call-1', 'call-1'"),
        ({"text": "<|tool_call>"}, "text: '<|tool_call>'"),
        ({"finish": "stop"}, "finish 'stop'"),
        ({"answer": None}, "answer after the tools: None"),
    ],
)
def test_each_fault_is_named(difference: dict[str, object], said: str) -> None:
    problem = sessions.problem(THREE, {**RIGHT, **difference})
    assert problem is not None
    assert problem.startswith(said)


def test_the_table_tells_what_broke_and_what_was_not_run() -> None:
    by_1, by_8 = (server for server in SERVERS if (server.parser, server.version) == ("upstream", "0.32.0"))
    client = table.CLIENTS[1]
    found = {"one call": None, "three calls": "TypeError: a | b"}
    text = table.render({str(by_1): {client.name: {"one call": None}}, str(by_8): {client.name: found}})
    row = next(line for line in text.splitlines() if client.name in line).split(" | ")
    assert row[1:3] == ["not run", "**2 of 3 right**; breaks: three calls (by 8)"]
    assert f"vLLM 0.32.0, by 1 with {table.CLIENTS[0].name}, " in text
    assert f"| {client.name} | vLLM 0.32.0, by 8 | three calls | `TypeError: a \\| b` |" in text
