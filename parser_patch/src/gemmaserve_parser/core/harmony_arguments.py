"""The body of a Harmony call as its arguments: JSON, with the slips of models that lose nothing."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from gemmaserve_parser.core.jsontext import dumps, loads, number

if TYPE_CHECKING:
    from gemmaserve_parser.core.jsontext import Json

_EXTRA_CLOSERS = "]}) \t\r\n;"
_CLOSER_OF = {"{": "}", "[": "]"}
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|["{}\[\]]', re.DOTALL)


def _exact(digits: str) -> str:
    value = number(digits)
    return digits if value is None else value


_LENIENT = json.JSONDecoder(strict=False, parse_int=_exact, parse_float=_exact, parse_constant=str)


def read_arguments(body: str, *, marked_end: bool = True) -> str | None:
    """A call's body as the JSON text of an object; None when it is none.

    An empty body and `null` are `{}`; an object that was encoded twice is the object; the last of a key's values wins.

    Args:
        body: What the message holds.
        marked_end: Whether the model ended the message. Then a missing bracket at its end is a slip; otherwise the
            call is unfinished.
    """
    body = body.strip()
    if not body:
        return "{}"
    try:
        value = _read(body, marked_end=marked_end)
        if isinstance(value, str):
            value = _read(value, marked_end=False)
    except (ValueError, RecursionError):
        return None
    if value is None:
        return "{}"
    return dumps(value) if isinstance(value, dict) else None


def _read(text: str, *, marked_end: bool) -> Json:
    """Read JSON that may have line breaks in strings, a key twice, or closers too many or, at a marked end, too few.

    Raises:
        ValueError: It is not JSON.
        RecursionError: It is nested too deep.
    """
    try:
        return loads(text)
    except ValueError:
        whole = text + (_missing_closers(text) if marked_end else "")
        value, end = _LENIENT.raw_decode(whole)
        if whole[end:].strip(_EXTRA_CLOSERS):
            raise
        return loads(dumps(value))


def _missing_closers(text: str) -> str:
    """The brackets that close what is open at the end of `text`; none when a string is open."""
    missing: list[str] = []
    for match in _STRING_OR_BRACKET.finditer(text):
        found = match.group()
        if found in _CLOSER_OF:
            missing.append(_CLOSER_OF[found])
        elif missing and found == missing[-1]:
            missing.pop()
        elif found == '"':
            return ""
    return "".join(reversed(missing))
