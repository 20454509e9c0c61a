"""That every call is one strict, complete delta, however the output is cut (rules 1, 2 and 6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gemmaserve_parser.regressions.cases import THREE_CALLS, THREE_READS, TOOLS, case, expect
from gemmaserve_parser.regressions.registry import regression
from gemmaserve_parser.replay import FIVE, TOKENS, WHOLE

if TYPE_CHECKING:
    from gemmaserve_parser.regressions.server import Server

STREAMED = (TOKENS, FIVE, WHOLE)


@regression
def every_chunk_carries_the_required_strict_fields(server: Server) -> None:
    """Each call's delta has index, id, type, name and arguments; each chunk is a whole chat.completion.chunk."""
    for mode in STREAMED:
        answer = server.stream(case(THREE_READS), mode)
        for chunk in answer.chunks:
            missing = {"id", "object", "created", "model", "choices"} - chunk.keys()
            expect(missing, set(), f"{mode}: fields missing of a chunk")
            expect(chunk["object"], "chat.completion.chunk", f"{mode}: a chunk's object")
        expect(len(answer.calls), 3, f"{mode}: deltas with a call")
        for call in answer.calls:
            function = call.get("function") or {}
            fields = {**call, "name": function.get("name"), "arguments": function.get("arguments")}
            lacking = [name for name in ("id", "type", "name", "arguments") if not fields.get(name)]
            expect(lacking, [], f"{mode}: fields lacking in the delta of index {call.get('index')}")
            expect(call["type"], "function", f"{mode}: a call's type")


@regression
def id_resets_between_requests(server: Server) -> None:
    """Two requests share no id, and each counts its calls from 0."""
    first, second = (server.stream(case(THREE_READS), TOKENS).calls for _ in range(2))
    expect([call["index"] for call in second], [0, 1, 2], "indices of the second request")
    ids = [call.get("id") for call in [*first, *second]]
    expect(len({id_ for id_ in ids if id_}), 6, f"distinct ids of two requests with three calls each ({ids})")


@regression
def multiple_tools_emit_distinct_indices(server: Server) -> None:
    """Three parallel read_file calls have the indices 0, 1, 2 and each its own arguments."""
    for mode in STREAMED:
        answer = server.stream(case(THREE_READS), mode)
        expect([call["index"] for call in answer.calls], [0, 1, 2], f"{mode}: indices of the deltas with a call")
        found = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in answer.calls]
        expect(found, THREE_CALLS, f"{mode}: calls")


@regression
def mega_delta_with_all_tools_in_one_chunk(server: Server) -> None:
    """Three calls that the engine gives in one delta reach the client as three."""
    answer = server.stream(case(THREE_READS), WHOLE)
    expect([(name, json.loads(text)) for name, text in answer.result.tool_calls], THREE_CALLS, "calls")
    expect(answer.result.finish_reason, "tool_calls", "finish_reason")


@regression
def partial_delta_split_inside_close_marker(server: Server) -> None:
    """A delta may end anywhere inside the close marker of a call and start of the next."""
    seam = THREE_READS.index("<tool_call|>")
    for cut in range(seam, seam + len("<tool_call|><|tool_call>")):
        made = case(THREE_READS, calls=THREE_CALLS, chunks=[THREE_READS[:cut], THREE_READS[cut:]])
        server.check(made)


@regression
def the_end_of_one_call_and_the_start_of_the_next_in_one_delta(server: Server) -> None:
    """The tail of a call's arguments never goes under the next call's index."""
    cut = THREE_READS.index(".txt")
    again = THREE_READS.index("b.txt")
    chunks = [THREE_READS[:cut], THREE_READS[cut:again], THREE_READS[again:]]
    server.check(case(THREE_READS, calls=THREE_CALLS, chunks=chunks))


@regression
def content_and_call_never_share_a_chunk(server: Server) -> None:
    """Text and a call that the engine gives in one delta, the last one too, go out in chunks of their own."""
    text = f"Looking.{THREE_READS}Done."
    for mode in STREAMED:
        answer = server.stream(case(text), mode)
        mixed = [delta for delta in answer.deltas if delta.get("content") and delta.get("tool_calls")]
        expect(mixed, [], f"{mode}: chunks with content and a call")
        expect(answer.result.content, "Looking.Done.", f"{mode}: content")
        expect(len(answer.calls), 3, f"{mode}: deltas with a call")
        order = ["call" if delta.get("tool_calls") else delta["content"] for delta in answer.deltas if _says(delta)]
        expect((order[0][:1], order[-1][-1:]), ("L", "."), f"{mode}: what comes first and last")


@regression
def sixty_four_calls_have_sixty_four_ids(server: Server) -> None:
    """Ids are unique and indices without a gap, also for many calls in one answer."""
    text = "".join(f'<|tool_call>call:get_time{{city:<|"|>{number}<|"|>}}<tool_call|>' for number in range(64))
    for mode in (TOKENS, WHOLE):
        answer = server.stream(case(text, tools=TOOLS), mode)
        expect(len({call.get("id") for call in answer.calls}), 64, f"{mode}: distinct ids")
        expect([call["index"] for call in answer.calls], [*range(64)], f"{mode}: indices")


@regression
def every_call_has_an_id_without_streaming(server: Server) -> None:
    """Calls of a whole answer have ids too, for auto, required and named tool choice."""
    for choice in ("auto", "required", {"type": "function", "function": {"name": "read_file"}}):
        result = server.whole(case(THREE_READS, tool_choice=choice))
        expect(result.faults, [], f"faults with tool_choice {choice}")
        expect(len(result.tool_calls), 3, f"calls with tool_choice {choice}")


def _says(delta: dict[str, object]) -> bool:
    return bool(delta.get("content") or delta.get("tool_calls"))
