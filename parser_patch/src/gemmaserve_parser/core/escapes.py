"""Backslash escapes of strings in ordinary quotes."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SIMPLE = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "/": "/",
    "\\": "\\",
    '"': '"',
    "'": "'",
}


def unescape(text: str) -> str:
    r"""Read JSON's escapes and `\'`; an unknown one, as in a path or a pattern, stays as it is."""
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_replacement, text)
    return _SURROGATE_PAIR.sub(lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), text)


def _replacement(match: re.Match[str]) -> str:
    code, char = match.groups()
    return chr(int(code, 16)) if code else _SIMPLE.get(char, match.group())
