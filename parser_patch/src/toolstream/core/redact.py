"""Secrets kept out of what is written down."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

REDACTED = "[secret]"

_SHORTEST = 8
_LOOKS_SECRET = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic, Stripe
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bhf_[A-Za-z0-9]{20,}"
    r"|\bAKIA[A-Z0-9]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"  # JSON web tokens
    r"|\bBearer\s+[A-Za-z0-9._~+/-]{16,}=*"
)


def redact_case(case: Mapping[str, Any], secrets: Iterable[str] = ()) -> dict[str, Any]:
    """A case without what looks like a credential, and without the credentials that its request carried.

    Args:
        case: A case; its cutting goes where a secret stood across it.
        secrets: Credentials that are known; shorter than eight characters they are taken for ordinary words.
    """
    known = [re.escape(secret) for secret in secrets if len(secret) >= _SHORTEST]
    pattern = re.compile("|".join([*known, _LOOKS_SECRET.pattern]))
    clean: dict[str, Any] = _redact(dict(case), pattern)
    if "chunks" in clean and "".join(clean["chunks"]) != clean["text"]:
        del clean["chunks"]
    return clean


def _redact(value: Any, pattern: re.Pattern[str]) -> Any:  # noqa: ANN401  (any JSON value)
    if isinstance(value, str):
        return pattern.sub(REDACTED, value)
    if isinstance(value, dict):
        return {_redact(key, pattern): _redact(item, pattern) for key, item in value.items()}
    if isinstance(value, list):
        return [_redact(item, pattern) for item in value]
    return value
