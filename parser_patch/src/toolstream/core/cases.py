"""From what a server sent to a case that `gemmaserve-parser replay` runs.

A case needs the model's own words, which an answer no longer holds. vLLM gives the token ids with each chunk when the
request asks for them (`return_token_ids`), and its `/detokenize` spells them out with the special tokens; then the
case is the model's output itself. Without ids the words are written anew from the calls that were delivered; the
case's note says which of the two it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gemmaserve_parser.replay import NON_STREAMING, Case, run_core
from toolstream.core.faults import has_text
from toolstream.core.strictjson import is_object, loads

if TYPE_CHECKING:
    from toolstream.core.exchange import Answer
    from toolstream.core.scenarios import ExpectedCall

Family = Literal["gemma4", "harmony"]
Object = dict[str, Any]

_HARMONY_MARKERS = ("<|channel|>", "<|start|>", "<|message|>")
_TURN_ENDS = ("<turn|>", "<eos>", "<|return|>")
_CUT = {"length", "max_tokens", "incomplete"}
_KEPT_REQUEST = ("tool_choice", "parallel_tool_calls", "chat_template_kwargs")


def family_of(text: str, model: str) -> Family:
    """Whose markup a model's output is: told by its markers, and by the model's name where it has none."""
    if any(marker in text for marker in _HARMONY_MARKERS) or "gpt-oss" in model.lower():
        return "harmony"
    return "gemma4"


class Words(NamedTuple):
    """What the model itself wrote, special tokens spelled out, and the cutting in which it came, if that is known."""

    text: str
    chunks: Sequence[str] | None


@dataclass(frozen=True)
class CaseSource:
    """What a case is made from.

    Attributes:
        answer: What the server sent.
        request: The request's body. Its messages are left out of the case: they may be private.
        name: The case's id.
        title: What it shows.
        expected: The right calls; None where they are not known.
    """

    answer: Answer
    request: Mapping[str, Any]
    name: str
    title: str
    expected: Sequence[ExpectedCall] | None = None


def spoken(pieces: Sequence[str], whole: str) -> Words:
    """The model's words without the end of its turn, and their cutting where the pieces join to them.

    Args:
        pieces: The detokenized ids of each chunk.
        whole: All ids detokenized together.
    """
    end = next((end for end in _TURN_ENDS if whole.endswith(end)), "")
    text = whole.removesuffix(end)
    chunks = [piece for piece in pieces if piece]
    if end and chunks:
        chunks[-1] = chunks[-1].removesuffix(end)
        chunks = [chunk for chunk in chunks if chunk]
    return Words(text, chunks if chunks and "".join(chunks) == text else None)


def build_case(source: CaseSource, words: Words | None) -> Object | None:
    """A case from one answer; `words` is None where nobody knows what the model itself wrote.

    None where there is no case: without the model's words, calls that came broken say nothing of what was meant.
    """
    answer, request = source.answer, source.request
    if words is None and not all(has_text(call.name) and is_object(call.arguments) for call in answer.calls):
        return None
    fields: Object = {
        "id": source.name,
        "source": "toolstream",
        "title": source.title,
        "model": family_of(words.text if words else "", str(request.get("model", ""))),
        "text": words.text if words else _rewritten(answer),
        "tools": _chat_tools(request),
        "request": {key: request[key] for key in _KEPT_REQUEST if key in request},
    }
    if answer.finish_reason in _CUT:
        fields["request"]["finish"] = "length"
    if words is None:
        note = "The text is written anew from what the server sent; the model's own words are not known."
        return {**fields, "expect": _delivered(answer), "note": note}
    if words.chunks:
        fields["chunks"] = [*words.chunks]
    fields["expect"] = _drafted(fields)
    fields["note"] = "The answer expected is what gemmaserve-parser makes of the text: look at it before you use it."
    if source.expected is not None:
        fields["expect"]["tool_calls"] = [
            {"name": each.name, "arguments": dict(each.arguments)} for each in source.expected
        ]
        fields["note"] = (
            "The calls expected are those that the prompt asked for; where the model's own text holds others, the model"
            " is at fault and not its parser."
        )
    return fields


def _chat_tools(request: Mapping[str, Any]) -> list[Object]:
    """The tools as chat completions declare them, whichever protocol the request speaks."""
    found: list[Object] = []
    for tool in request.get("tools") or []:
        if not isinstance(tool, dict):
            continue
        function = tool.get("function")
        if not isinstance(function, dict):
            schema = tool.get("parameters", tool.get("input_schema", {}))
            function = {"name": tool.get("name", ""), "parameters": schema}
        found.append({"type": "function", "function": function})
    return found


def _drafted(fields: Mapping[str, Any]) -> Object:
    case = Case({**fields, "expect": {}})
    result = run_core(case, NON_STREAMING)
    return {
        "tool_calls": [{"name": name, "arguments": json.loads(arguments)} for name, arguments in result.tool_calls],
        "content": result.content,
        "reasoning": result.reasoning,
        "finish_reason": result.finish_reason,
    }


def _delivered(answer: Answer) -> Object:
    calls = [{"name": call.name, "arguments": loads(call.arguments)} for call in answer.calls]
    finish = {"tool_use": "tool_calls", "completed": "tool_calls" if calls else "stop", "end_turn": "stop"}
    reason = answer.finish_reason or "stop"
    if reason in _CUT:
        reason = "length"
    return {
        "tool_calls": calls,
        "content": answer.text or None,
        "reasoning": None,
        "finish_reason": finish.get(reason, reason),
    }


def _rewritten(answer: Answer) -> str:
    """Gemma 4's markup for what was delivered."""
    calls = (f"<|tool_call>call:{call.name}{_native(loads(call.arguments))}<tool_call|>" for call in answer.calls)
    return answer.text + "".join(calls)


def _native(value: object) -> str:
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_native(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_native, value)) + "]"
    return json.dumps(value)
