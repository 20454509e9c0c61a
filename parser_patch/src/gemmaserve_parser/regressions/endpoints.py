"""That the other two endpoints give the same calls as chat completions does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.regressions.cases import THREE_CALLS, THREE_READS, case, expect
from gemmaserve_parser.regressions.registry import regression
from gemmaserve_parser.replay import NON_STREAMING, TOKENS, WHOLE

if TYPE_CHECKING:
    from gemmaserve_parser.regressions.server import Server

_TEXT = f"<|channel>thought\nhm<channel|>Reading.{THREE_READS}"


@regression
def responses_stream_three_whole_calls(server: Server) -> None:
    """/v1/responses streams an item for the thought, one for the text and one for each call."""
    made = case(_TEXT)
    for choice in ("auto", "required"):
        for mode in (TOKENS, WHOLE):
            body = {"tools": _flat(made.tools), "tool_choice": choice}
            events = server.stage(made).stream_responses(body, server.script(made, mode))
            done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
            _expect_items(done, f"{choice}, {mode}")
            added = [event["item"]["type"] for event in events if event["type"] == "response.output_item.added"]
            expect(added, [item["type"] for item in done], f"{choice}, {mode}: items added, beside those done")


@regression
def responses_give_three_whole_calls(server: Server) -> None:
    """/v1/responses gives the same items without streaming."""
    made = case(_TEXT)
    for choice in ("auto", "required"):
        body = {"tools": _flat(made.tools), "tool_choice": choice}
        items = server.stage(made).complete_responses(body, server.script(made, NON_STREAMING))
        _expect_items(items, choice)


@regression
def responses_give_nothing_of_a_truncated_call(server: Server) -> None:
    """A call that max_tokens cut is no item of /v1/responses and no text, streamed or not."""
    made = case(_TEXT[:-20], finish="length")
    body = {"tools": _flat(made.tools)}
    right = ["reasoning", "message", "function_call", "function_call"]
    items = server.stage(made).complete_responses(body, server.script(made, NON_STREAMING))
    expect([item["type"] for item in items], right, f"{NON_STREAMING}: items")
    for mode in (TOKENS, WHOLE):
        events = server.stage(made).stream_responses(body, server.script(made, mode))
        done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        expect([item["type"] for item in done], right, f"{mode}: items")
        expect(done[1]["content"][0]["text"], "Reading.", f"{mode}: text")


@regression
def messages_stream_three_whole_calls(server: Server) -> None:
    """/v1/messages streams a block for the thought, one for the text and one for each call."""
    made = case(_TEXT)
    body = {"tools": made.tools, "stream_options": {"include_usage": True}}
    for mode in (TOKENS, WHOLE):
        events = server.stage(made).stream_messages(body, server.script(made, mode))
        starts = [event for event in events if event["type"] == "content_block_start"]
        kinds = [event["content_block"]["type"] for event in starts]
        expect(kinds, ["thinking", "text", "tool_use", "tool_use", "tool_use"], f"{mode}: blocks")
        found = [(start["content_block"]["name"], _input(events, start["index"])) for start in starts[2:]]
        expect(found, THREE_CALLS, f"{mode}: calls")
        stop = next(event["delta"]["stop_reason"] for event in events if event["type"] == "message_delta")
        expect(stop, "tool_use", f"{mode}: stop_reason")


@regression
def messages_give_three_whole_calls(server: Server) -> None:
    """/v1/messages gives the same blocks without streaming."""
    made = case(_TEXT)
    response = server.stage(made).complete_messages({"tools": made.tools}, server.script(made, NON_STREAMING))
    blocks = [block for block in response["content"] if block["type"] == "tool_use"]
    expect([(block["name"], block["input"]) for block in blocks], THREE_CALLS, "calls")
    texts = [block["text"] for block in response["content"] if block["type"] == "text"]
    expect(texts, ["Reading."], "text")


@regression
def messages_say_tool_use_for_every_tool_choice(server: Server) -> None:
    """/v1/messages ends a call with `tool_use`, also where the client forced the tool."""
    made = case(THREE_READS)
    for choice in ("auto", "required", {"type": "function", "function": {"name": THREE_CALLS[0][0]}}):
        body: dict[str, Any] = {"tools": made.tools, "tool_choice": choice}
        response = server.stage(made).complete_messages(body, server.script(made, NON_STREAMING))
        expect(response["stop_reason"], "tool_use", f"{choice}: stop_reason")
        body["stream_options"] = {"include_usage": True}
        events = server.stage(made).stream_messages(body, server.script(made, TOKENS))
        stop = next(event["delta"]["stop_reason"] for event in events if event["type"] == "message_delta")
        expect(stop, "tool_use", f"{choice}: stop_reason of the stream")


def _expect_items(items: list[dict[str, Any]], where: str) -> None:
    kinds = [item["type"] for item in items]
    expect(kinds, ["reasoning", "message", *["function_call"] * 3], f"{where}: items")
    found = [(item["name"], json.loads(item["arguments"])) for item in items[2:]]
    expect(found, THREE_CALLS, f"{where}: calls")
    expect(items[1]["content"][0]["text"], "Reading.", f"{where}: text")
    expect(len({item["call_id"] for item in items[2:]}), 3, f"{where}: distinct call ids")


def _flat(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tools as the responses API has them."""
    return [{"type": "function", **tool["function"]} for tool in tools]


def _input(events: list[dict[str, Any]], index: int) -> object:
    parts = [
        event["delta"]["partial_json"]
        for event in events
        if event["type"] == "content_block_delta" and event["index"] == index
    ]
    return json.loads("".join(parts))
