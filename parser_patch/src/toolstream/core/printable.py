"""Text from strangers, made safe for terminals, files and termination messages."""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with control characters (terminals obey them) and lone surrogates (UTF-8 has none) spelled out."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
