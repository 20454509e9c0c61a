"""JSON as clients read it: RFC 8259, without Python's additions, and nothing that a server sends can raise."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class NotJson(ValueError):  # noqa: N818  (named for what the text is)
    """The text is not JSON; the message says why."""


def loads(text: str) -> Any:  # noqa: ANN401  (any JSON value)
    """The value of a JSON text.

    Raises:
        NotJson: Syntax, `NaN` and `Infinity`, nesting deeper or numbers longer than Python's limits.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise NotJson("nested too deeply") from error
    except ValueError as error:
        raise NotJson(str(error)) from error


def is_object(text: object) -> bool:
    """Whether this is the text of a JSON object."""
    if not isinstance(text, str):
        return False
    try:
        return isinstance(loads(text), dict)
    except NotJson:
        return False


def parses(text: str) -> bool:
    """Whether this is JSON at all."""
    try:
        loads(text)
    except NotJson:
        return False
    return True


def equal(one: object, other: object) -> bool:
    """JSON equality: numbers by value, but `1`, `true` and `"1"` are three things."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _refuse(constant: str) -> NoReturn:
    raise NotJson(f"{constant} is not JSON")


# One for all: json.loads makes a decoder anew for each call that has options, and a load reads a million chunks.
_DECODER = json.JSONDecoder(parse_constant=_refuse)
