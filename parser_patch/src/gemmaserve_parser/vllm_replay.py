"""Replays a case through the installed vLLM's server and the parser that it hands out for our name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.replay import NON_STREAMING, Result
from gemmaserve_parser.vllm_stage import Script, Stage, Tokenizer

if TYPE_CHECKING:
    from gemmaserve_parser.replay import Case

PARSER = "gemma4_atomic"


def run(case: Case, mode: str, parser: str = PARSER) -> Result:
    """Run a case in one mode, as a chat completion.

    Args:
        case: The case.
        mode: One of `case.modes`.
        parser: The name that the server is started with, for tools and for reasoning.
    """
    if case.model == "harmony":
        replayed: Result = import_module("gemmaserve_parser.adapters.harmony").replay(case, mode)
        return replayed
    tokenizer = Tokenizer(case.marker_ids, case.decode)
    stage = Stage(tokenizer, parser, None if case.request.get("no_reasoning_parser") else parser)
    script = Script([case.deltas(mode)], case.finish, prompt_ids(case))
    if mode == NON_STREAMING:
        return whole(stage.complete(body(case), script))
    return gather(stage.stream(body(case), script))


def gather(chunks: list[dict[str, Any]]) -> Result:
    """What a client makes of a stream's chunks, and what was wrong with them."""
    deltas = [choice["delta"] for chunk in chunks for choice in chunk.get("choices", ())]
    faults = [f"the stream ends with an error: {chunk['error']}" for chunk in chunks if "error" in chunk]
    if any(delta.get("content") and delta.get("tool_calls") for delta in deltas):
        faults.append("content and a call share a chunk")
    parts: dict[int, list[dict[str, Any]]] = {}
    for call in (call for delta in deltas for call in delta.get("tool_calls") or ()):
        parts.setdefault(call["index"], []).append(call)
    calls = [parts[index] for index in sorted(parts)]
    if sorted(parts) != [*range(len(parts))]:
        faults.append(f"indices {sorted(parts)}")
    for call in calls:
        first = call[0]
        if not first.get("id") or first.get("type") != "function" or not first["function"].get("name"):
            faults.append("a call's first delta lacks its id, type or name")
    endings = [choice.get("finish_reason") for chunk in chunks for choice in chunk.get("choices", ())]
    return Result(
        [
            (str(call[0]["function"].get("name")), "".join(part["function"].get("arguments") or "" for part in call))
            for call in calls
        ],
        "".join(delta.get("content") or "" for delta in deltas) or None,
        "".join(delta.get("reasoning") or "" for delta in deltas) or None,
        next((str(ending) for ending in endings[::-1] if ending), "none"),
        [len(call) for call in calls],
        faults,
    )


def whole(response: dict[str, Any]) -> Result:
    """What a client makes of a response that was not streamed."""
    choice = response["choices"][0]
    message = choice["message"]
    calls = message.get("tool_calls") or []
    faults = ["a call has no id"] if not all(call.get("id") for call in calls) else []
    return Result(
        [(call["function"]["name"], call["function"]["arguments"]) for call in calls],
        message.get("content") or None,
        message.get("reasoning") or None,
        choice["finish_reason"],
        faults=faults,
    )


def body(case: Case) -> dict[str, Any]:
    """The fields of a case's request beside model, messages and stream."""
    fields = {name: case.request[name] for name in _REQUEST_FIELDS if name in case.request}
    return {**fields, "tools": case.tools} if case.tools else fields


_REQUEST_FIELDS = ("tool_choice", "parallel_tool_calls", "skip_special_tokens", "include_reasoning")


def prompt_ids(case: Case) -> list[int]:
    """The markers of the prompt's tail; its other tokens say nothing to a parser."""
    prompt = str(case.request.get("prompt") or "")
    found = sorted((at, id_) for marker, id_ in case.marker_ids.items() for at in _positions(prompt, marker))
    return [id_ for _, id_ in found]


def _positions(text: str, part: str) -> list[int]:
    positions, at = [], text.find(part)
    while at >= 0:
        positions.append(at)
        at = text.find(part, at + 1)
    return positions
