"""JSON as text: numbers keep the digits they were written with, strings stay readable."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

#: Deeper than this a container stays text: Python's, pydantic's and most clients' JSON readers have limits, and a
#: call that its reader cannot open is lost.
MAX_DEPTH = 100

#: `int()` and so `json.loads` refuse longer integers by default (CVE-2020-10735).
MAX_DIGITS = 4300

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")


class Number(str):
    """A JSON number as its text."""

    __slots__ = ()

    @property
    def integral(self) -> bool:
        """Whether it is written as an integer, without a fraction or an exponent."""
        return not any(char in self for char in ".eE")


#: What a value of a call's arguments may be once its type is settled; numbers are `Number`.
Json: TypeAlias = str | bool | list["Json"] | dict[str, "Json"] | None


def number(text: str) -> Number | None:
    """`text` as a JSON number, or None when it is not one or is too large for common readers."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    if match.group(1) is None and match.group(2) is None:
        return Number(text) if len(text) <= MAX_DIGITS else None
    return Number(text) if isfinite(float(text)) else None


def dumps(value: Json) -> str:
    """`value` as JSON text. Lone surrogates are escaped, so that the text is always encodable."""
    from json.encoder import encode_basestring  # noqa: PLC0415  (a third of the core's import, and not needed for it)

    pieces: list[str] = []
    _write(value, pieces, encode_basestring)
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
    return text


def _write(value: Json, pieces: list[str], quoted: Callable[[str], str]) -> None:
    if isinstance(value, Number):
        pieces.append(value)
    elif isinstance(value, str):
        pieces.append(quoted(value))
    elif isinstance(value, dict):
        separator = "{"
        for key, item in value.items():
            pieces += (separator, quoted(key), ": ")
            _write(item, pieces, quoted)
            separator = ", "
        pieces.append("}" if value else "{}")
    elif isinstance(value, list):
        separator = "["
        for item in value:
            pieces.append(separator)
            _write(item, pieces, quoted)
            separator = ", "
        pieces.append("]" if value else "[]")
    else:
        pieces.append("null" if value is None else "true" if value else "false")


def loads(text: str) -> Json:
    """Read JSON without loss.

    Raises:
        ValueError: It is not JSON (NaN and Infinity are not), a key comes twice, a number is too large, or it is
            nested deeper than MAX_DEPTH.
    """
    import json  # noqa: PLC0415  (see `dumps`)

    try:
        value: Json = json.loads(
            text, parse_int=_exact, parse_float=_exact, parse_constant=_exact, object_pairs_hook=_unique
        )
    except RecursionError:
        raise ValueError("nested too deep") from None
    if _deeper_than(value, MAX_DEPTH):
        raise ValueError("nested too deep")
    return value


def _exact(text: str) -> Number:
    value = number(text)
    if value is None:
        raise ValueError(f"{text[:20]} is not a JSON number that readers take")
    return value


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key comes twice")
    return value


def _deeper_than(value: Json, depth: int) -> bool:
    if isinstance(value, (dict, list)):
        items = value.values() if isinstance(value, dict) else value
        return depth == 0 or any(_deeper_than(item, depth - 1) for item in items)
    return False
