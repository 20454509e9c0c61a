"""The demo's verdict: silent on a right stream, and each planted fault found by the rule that names it."""

from __future__ import annotations

import copy
import json

import pytest

from localcluster.demo.verdict import Call, judge

EXPECTED = (Call("read_file", {"path": "a"}), Call("list_directory", {}))


def chunk(finish=None, **delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index, name, arguments, **more):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"index": index, "id": f"call-{index}", "type": "function", "function": function, **more}


RIGHT = [
    chunk(role="assistant", content=""),
    chunk(content="On it."),
    chunk(tool_calls=[call(0, "read_file", {"path": "a"})]),
    chunk(tool_calls=[call(1, "list_directory", {})]),
    chunk(finish="tool_calls"),
    {"choices": [], "usage": {"total_tokens": 3}},
]


def broken(chunks, expected=EXPECTED):
    return [rule.name for rule in judge(chunks, expected) if rule.problem is not None]


def test_a_right_stream_breaks_no_rule():
    assert broken(RIGHT) == []


def test_two_whole_calls_may_share_a_chunk():
    both = [*RIGHT[2]["choices"][0]["delta"]["tool_calls"], *RIGHT[3]["choices"][0]["delta"]["tool_calls"]]
    assert broken([*RIGHT[:2], chunk(tool_calls=both), *RIGHT[4:]]) == []


def edited(edit):
    chunks = copy.deepcopy(RIGHT)
    edit(chunks, chunks[2]["choices"][0]["delta"]["tool_calls"][0])
    return chunks


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (lambda chunks, first: first.update(index=1), "indices"),
        (lambda chunks, first: chunks.pop(3), "2 calls"),
        (lambda chunks, first: first.pop("id"), "id of its own"),
        (lambda chunks, first: first.update(id="call-1"), "id of its own"),
        (lambda chunks, first: first.pop("type"), "type"),
        (lambda chunks, first: first["function"].pop("name"), "name"),
        (lambda chunks, first: first["function"].update(name="write_file"), "name"),
        (lambda chunks, first: first["function"].update(arguments='{"path": '), "arguments"),
        (lambda chunks, first: first["function"].update(arguments=""), "arguments"),
        (lambda chunks, first: first["function"].update(arguments='{"path": "b"}'), "arguments"),
        (lambda chunks, first: first.pop("function"), "arguments"),
        (lambda chunks, first: chunks[2]["choices"][0]["delta"].update(content="x"), "one chunk"),
        (lambda chunks, first: chunks[4]["choices"][0].update(finish_reason="stop"), "finish_reason"),
    ],
)
def test_a_planted_fault_is_found(edit, rule):
    assert any(rule in name for name in broken(edited(edit))), broken(edited(edit))


def test_a_call_in_pieces_is_found_though_its_pieces_make_it_whole():
    pieces = [
        chunk(tool_calls=[{"index": 0, "id": "call-0", "type": "function", "function": {"name": "read_file"}}]),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"path": "a"}'}}]),
    ]
    assert "each call in exactly one chunk" in broken([*RIGHT[:2], *pieces, *RIGHT[3:]])


def test_a_stream_without_calls_breaks_the_rules_of_calls():
    assert "2 calls, in order, with indices counted from 0" in broken([*RIGHT[:2], chunk(finish="stop")])
