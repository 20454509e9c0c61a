"""What a scanner reports: the only vocabulary between the parsers and their vLLM adapters.

An event is complete when it is reported: a `ToolCall` is reported once, when its call has closed, so an
adapter turns it into exactly one delta (contract rule 1). Ids and indices are the adapter's: a scanner knows
neither, it only guarantees the order.
"""

from __future__ import annotations

from typing import NamedTuple


class Content(NamedTuple):
    """A piece of the visible answer; pieces join to the whole without anything in between."""

    text: str


class Reasoning(NamedTuple):
    """A piece of the model's thinking, without its channel markup and label; pieces join to the whole."""

    text: str


class ToolCall(NamedTuple):
    """One whole call.

    Attributes:
        name: The tool's name; a declared one where a declared one was meant, else as the model wrote it.
        arguments: A JSON object as text, `{}` for none; never empty, never another JSON type (rule 4).
    """

    name: str
    arguments: str


Event = Content | Reasoning | ToolCall
