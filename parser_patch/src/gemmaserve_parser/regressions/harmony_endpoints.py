"""That the other two endpoints give gpt-oss's calls as chat completions do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.regressions.cases import expect
from gemmaserve_parser.regressions.harmony import TOOLS, case
from gemmaserve_parser.regressions.registry import regression
from gemmaserve_parser.replay import FIVE, NON_STREAMING, TOKENS, WHOLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gemmaserve_parser.regressions.server import Server

_FLAT = [{"type": "function", **tool["function"]} for tool in TOOLS]
_NEXT = "<|start|>assistant"
_QUERY = f'{_NEXT} to=functions.query<|channel|>commentary<|channel|>commentary json<|message|>{{"sql":"x"}}<|call|>'
_TEXT = (
    f"<|channel|>analysis<|message|>Hm.<|end|>{_NEXT}<|channel|>commentary<|message|>Looking.<|end|>{_QUERY}{_QUERY}"
)
_CALLS = [("query", {"sql": "x"})] * 2
_CUT = f'<|channel|>analysis<|message|>Hm.<|end|>{_NEXT} to=functions.query<|channel|>commentary<|message|>{{"sql":"'


@regression
def harmony_responses_stream_whole_calls(server: Server) -> None:
    """/v1/responses streams an item for the thought, one for the text, and one with one delta for each call."""
    made = case(_TEXT)
    for mode in (TOKENS, FIVE, WHOLE):
        events = server.stage(made).stream_responses({"tools": _FLAT}, server.script(made, mode))
        _expect_items(_items(events, "done"), mode)
        added = [item["type"] for item in _items(events, "added")]
        expect(added, ["reasoning", "message", "function_call", "function_call"], f"{mode}: items added")
        deltas = [event["delta"] for event in events if event["type"] == "response.function_call_arguments.delta"]
        expect([json.loads(delta) for delta in deltas], [{"sql": "x"}] * 2, f"{mode}: deltas of arguments")


@regression
def harmony_responses_give_whole_calls(server: Server) -> None:
    """/v1/responses gives the same items without streaming."""
    made = case(_TEXT)
    items = server.stage(made).complete_responses({"tools": _FLAT}, server.script(made, NON_STREAMING))
    _expect_items(items, NON_STREAMING)


@regression
def harmony_responses_give_nothing_of_a_truncated_call(server: Server) -> None:
    """A call that max_tokens cut is no item, streamed or not."""
    made = case(_CUT, finish="length")
    items = server.stage(made).complete_responses({"tools": _FLAT}, server.script(made, NON_STREAMING))
    expect([item["type"] for item in items], ["reasoning"], f"{NON_STREAMING}: items")
    for mode in (TOKENS, WHOLE):
        events = server.stage(made).stream_responses({"tools": _FLAT}, server.script(made, mode))
        expect([item["type"] for item in _items(events, "added")], ["reasoning"], f"{mode}: items")


@regression
def harmony_responses_give_no_call_that_is_not_wanted(server: Server) -> None:
    """With tool_choice `none` /v1/responses gives no calls."""
    made = case(_TEXT)
    body = {"tools": _FLAT, "tool_choice": "none"}
    items = server.stage(made).complete_responses(body, server.script(made, NON_STREAMING))
    expect([item["type"] for item in items], ["reasoning", "message"], "items")


@regression
def harmony_messages_stream_whole_calls(server: Server) -> None:
    """/v1/messages streams a block for each call."""
    made = case(_TEXT)
    body = {"tools": TOOLS, "stream_options": {"include_usage": True}}
    for mode in (TOKENS, WHOLE):
        events = server.stage(made).stream_messages(body, server.script(made, mode))
        starts = [event for event in events if event["type"] == "content_block_start"]
        calls = [start for start in starts if start["content_block"]["type"] == "tool_use"]
        found = [(start["content_block"]["name"], _input(events, start["index"])) for start in calls]
        expect(found, _CALLS, f"{mode}: calls")
        stop = next(event["delta"]["stop_reason"] for event in events if event["type"] == "message_delta")
        expect(stop, "tool_use", f"{mode}: stop_reason")


@regression
def harmony_messages_give_whole_calls(server: Server) -> None:
    """/v1/messages gives the same blocks without streaming."""
    made = case(_TEXT)
    response = server.stage(made).complete_messages({"tools": TOOLS}, server.script(made, NON_STREAMING))
    found = [(block["name"], block["input"]) for block in response["content"] if block["type"] == "tool_use"]
    expect(found, _CALLS, "calls")


def _expect_items(items: Sequence[Mapping[str, Any]], where: str) -> None:
    kinds = [item["type"] for item in items]
    expect(kinds, ["reasoning", "message", "function_call", "function_call"], f"{where}: items")
    expect(items[1]["content"][0]["text"], "Looking.", f"{where}: text")
    expect([(item["name"], json.loads(item["arguments"])) for item in items[2:]], _CALLS, f"{where}: calls")
    expect(len({item["call_id"] for item in items[2:]}), 2, f"{where}: distinct call ids")


def _items(events: Sequence[Mapping[str, Any]], when: str) -> list[Mapping[str, Any]]:
    return [event["item"] for event in events if event["type"] == f"response.output_item.{when}"]


def _input(events: Sequence[Mapping[str, Any]], index: int) -> object:
    ours = [event for event in events if event["type"] == "content_block_delta" and event["index"] == index]
    return json.loads("".join(event["delta"]["partial_json"] for event in ours))
