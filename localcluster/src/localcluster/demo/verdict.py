"""Judges one streamed chat completion: did each tool call arrive whole, in one chunk, as a strict client needs it?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the answer is expected to hold."""

    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule and how it went.

    Attributes:
        name: what must hold, in words.
        problem: what was seen instead; None when the rule holds.
    """

    name: str
    problem: str | None


def tool_call_deltas(chunk: Json) -> list[Json]:
    """The tool-call deltas of a chunk, of all its choices."""
    deltas = (choice.get("delta") or {} for choice in chunk.get("choices") or [])
    return [call for delta in deltas for call in delta.get("tool_calls") or []]


def content_of(chunk: Json) -> str:
    """The text of a chunk, of all its choices; empty if it brings none."""
    return "".join((choice.get("delta") or {}).get("content") or "" for choice in chunk.get("choices") or [])


def judge(chunks: Sequence[Json], expected: Sequence[Call]) -> list[Rule]:
    """Hold the chunks of a whole stream against every rule, in the order a person would ask.

    Args:
        chunks: the `data:` payloads of the stream, in order, without the closing `[DONE]`.
        expected: the calls that the model was made to write.
    """
    deltas = [delta for chunk in chunks for delta in tool_call_deltas(chunk)]
    reasons = [choice.get("finish_reason") for chunk in chunks for choice in chunk.get("choices") or []]
    return [
        Rule(f"{len(expected)} calls, in order, with indices counted from 0", _wrong_indices(deltas, len(expected))),
        Rule("each call in exactly one chunk", _split_calls(deltas)),
        Rule("each with an id of its own", _wrong_ids(deltas)),
        Rule('each with type "function"', _wrong_types(deltas)),
        Rule("each with its name", _wrong_names(deltas, [call.name for call in expected])),
        Rule("each with complete JSON arguments", _wrong_arguments(deltas, [call.arguments for call in expected])),
        Rule("text and call never in one chunk", _mixed(chunks)),
        Rule("finish_reason tool_calls", None if "tool_calls" in reasons else f"it was {_last(reasons)!r}"),
    ]


def _wrong_indices(deltas: list[Json], count: int) -> str | None:
    indices = list(dict.fromkeys(delta.get("index") for delta in deltas))
    return None if indices == list(range(count)) else f"the indices were {indices}"


def _split_calls(deltas: list[Json]) -> str | None:
    indices = [delta.get("index") for delta in deltas]
    split = [
        f"call {index} came in {indices.count(index)}" for index in dict.fromkeys(indices) if indices.count(index) > 1
    ]
    return "; ".join(split) or None


def _wrong_ids(deltas: list[Json]) -> str | None:
    missing = sum(not delta.get("id") for delta in deltas)
    if missing:
        return f"{missing} of {len(deltas)} deltas had none"
    ids = [delta["id"] for delta in deltas]
    return None if len(set(ids)) == len(ids) else f"the ids were {ids}"


def _wrong_types(deltas: list[Json]) -> str | None:
    types = [delta.get("type") for delta in deltas]
    return None if all(value == "function" for value in types) else f"the types were {types}"


def _wrong_names(deltas: list[Json], wanted: list[str]) -> str | None:
    names = [(delta.get("function") or {}).get("name") for delta in deltas]
    return None if names == wanted else f"the names were {names}"


def _wrong_arguments(deltas: list[Json], wanted: list[Json]) -> str | None:
    texts = [(delta.get("function") or {}).get("arguments") or "" for delta in deltas]
    read = []
    for text in texts:
        try:
            read.append(json.loads(text))
        except json.JSONDecodeError:
            return f"{text!r} is not JSON"
    return None if read == wanted else f"they were {', '.join(texts) or 'nowhere'}"


def _mixed(chunks: Sequence[Json]) -> str | None:
    mixed = next((chunk for chunk in chunks if tool_call_deltas(chunk) and content_of(chunk)), None)
    return None if mixed is None else f"{content_of(mixed)!r} came with a call"


def _last(reasons: list[str | None]) -> str | None:
    return next((reason for reason in reversed(reasons) if reason), None)
