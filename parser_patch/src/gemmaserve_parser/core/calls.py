"""A call's body as calls: its header, its name among the declared ones, its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gemmaserve_parser.core.arguments import ArgumentReader, MalformedError
from gemmaserve_parser.core.events import ToolCall
from gemmaserve_parser.core.jsontext import dumps
from gemmaserve_parser.core.schema import Schema

if TYPE_CHECKING:
    from gemmaserve_parser.core.lexer import BodyLexer

_NAME_CHARACTER = r"""[^\s{}()\[\]<>"',=]"""
_PREFIX = r"[\s:]*(?P<prefix>(?:call\s*:[\s:]*){0,4})"
_HEADER = re.compile(rf"{_PREFIX}(?P<name>{_NAME_CHARACTER}{{1,200}})\s*(?P<opener>[{{(]|\Z)")
_UNFINISHED_HEADER = re.compile(rf"{_PREFIX}{_NAME_CHARACTER}{{0,200}}\s*\Z")
_LONGEST_HEADER = 300
_NAMESPACE_END = re.compile(r"[.:/]")
_BETWEEN_CALLS = re.compile(r"[\s,;})\]]*")


class Tools:
    """The declared tools.

    Args:
        declared: See `Gemma4Scanner`.
    """

    def __init__(self, declared: Sequence[Mapping[str, Any]] | None) -> None:
        self._schemas: dict[str, Schema] = {}
        for tool in declared or ():
            function = tool.get("function", tool) if isinstance(tool, Mapping) else None
            if isinstance(function, Mapping) and isinstance(function.get("name"), str):
                self._schemas[function["name"]] = Schema(function.get("parameters"))

    def __bool__(self) -> bool:
        return bool(self._schemas)

    def resolve(self, written: str) -> str | None:
        """The declared tool that a name means: itself, or what follows a namespace or its own double."""
        if written in self._schemas:
            return written
        ends = (written[match.end() :] for match in _NAMESPACE_END.finditer(written))
        return next((end for end in ends if end in self._schemas), None)

    def any_starts_with(self, start: str) -> bool:
        """Whether a declared name starts so."""
        return any(name.startswith(start) for name in self._schemas)

    def schema(self, name: str) -> Schema:
        """The parameters of a tool; of an undeclared one, none."""
        return self._schemas.get(name) or Schema(None)


class Reading(NamedTuple):
    """What a body holds.

    Attributes:
        calls: One or more.
        declared: Whether every name is a declared one.
        rest: The text after the last call.
    """

    calls: list[ToolCall]
    declared: bool
    rest: str


def header_opens(text: str, tools: Tools, *, declared_only: bool = False) -> bool | None:
    """Whether a call starts here: True once its arguments open, False when it cannot, None while it may.

    Args:
        text: What was written so far, without the opening marker.
        tools: The declared tools.
        declared_only: Whether only a declared name may be called.
    """
    match = _HEADER.match(text)
    if match is not None and match.group("opener"):
        return _name(match, tools, declared_only=declared_only) is not None
    return None if len(text) <= _LONGEST_HEADER and _UNFINISHED_HEADER.match(text) else False


def begins_call(text: str, tools: Tools) -> bool:
    """Whether an unfinished header is the start of a call and not of a sentence after a stray marker."""
    start = text.strip().lstrip(":")
    return start.startswith("call:") or "call:".startswith(start) or tools.any_starts_with(start)


def read_calls(body: BodyLexer, tools: Tools, *, marked_end: bool) -> Reading | None:
    """Read a finished body, of which everything is cut; None when it is no call.

    Args:
        body: What stands between the markers.
        tools: The declared tools.
        marked_end: Whether the close marker was seen. Then the model ended the call, so a missing bracket at its end
            is a slip; without the marker it is an unfinished call.
    """
    source = body.source()
    calls: list[ToolCall] = []
    declared = True
    position = index = 0
    while (match := _HEADER.match(source, position)) and (match.group("prefix") or not calls):
        name = _name(match, tools, declared_only=not match.group("opener"))
        if name is None or not (match.group("opener") or match.group("prefix")):
            break
        arguments = "{}"
        position_after = match.end()
        if match.group("opener"):
            while index < len(body.tokens) and body.tokens[index].start < match.start("opener"):
                index += 1
            reader = ArgumentReader(body, source, index)
            try:
                value = reader.read()
            except MalformedError:
                break
            if reader.repaired and (body.unclosed_quote or not marked_end):
                break
            index = reader.index
            position_after = body.tokens[index - 1].end
            arguments = dumps(
                tools.schema(name).arguments(value, lambda span: body.text_between(source, *span).strip())
            )
        calls.append(ToolCall(name, arguments))
        declared = declared and tools.resolve(name) is not None
        between = _BETWEEN_CALLS.match(source, position_after)
        position = between.end() if between else position_after
    return Reading(calls, declared, body.text_between(source, position, len(source))) if calls else None


def _name(header: re.Match[str], tools: Tools, *, declared_only: bool) -> str | None:
    written = header.group("name").strip(":")
    name = tools.resolve(written)
    if name is None and written and header.group("prefix") and not declared_only:
        return written
    return name
