"""Leaving out what must not leave a cluster: values of variables, keys in arguments, tokens in logs. Pure."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from gemmaserve_operator.api import names

LEFT_OUT: Final = "(left out)"
_DROPPED_METADATA: Final = frozenset({"managedFields"})
_DROPPED_ANNOTATIONS: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
"""Copies of the whole object."""
_SENSITIVE: Final = re.compile(r"(?i)(api[-_]?keys?|token|passw(or)?d|secret|credentials?)$")
"""The end of a flag's name. `--max-num-batched-tokens` is none of them, and neither is `--tokenizer`."""
_FLAG: Final = re.compile(r"^(--?[\w.-]+)(=.*)?$", re.DOTALL)
_IN_TEXT: Final = (
    (re.compile(r"\bhf_[A-Za-z0-9]{16,}"), LEFT_OUT),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), rf"\1 {LEFT_OUT}"),
    (
        re.compile(r"""(?i)((?:api[-_]?keys?|token|passw(?:or)?d|secret)["']?\s*[=:]\s*\[?\s*["']?)[^\s"',\]})]{4,}"""),
        rf"\1{LEFT_OUT}",
    ),
    (re.compile(r"(://[^/\s:@]+:)[^@\s/]+@"), rf"\1{LEFT_OUT}@"),
)
_MIN_LENGTH: Final = 6
"""Shorter values are words that stand in every log."""
_Note = Callable[[str], object]
"""Is told each value that is left out."""


def redact(obj: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """A Kubernetes object without values of environment variables, keys in arguments, and contents of Secrets."""
    return _walk(obj, lambda _: None)


def secrets_in(objects: Iterable[Any]) -> frozenset[str]:
    """The values that `redact` leaves out of these objects, to be looked for in texts."""
    found: set[str] = set()
    for obj in objects:
        _walk(obj, found.add)
    return frozenset(
        value for value in found if len(value) >= _MIN_LENGTH and not value.startswith("/") and value != LEFT_OUT
    )


def redact_text(text: str, secrets: Iterable[str] = ()) -> str:
    """A log or message without these values, and without what looks like a token."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, LEFT_OUT)
    for pattern, replacement in _IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


def _walk(value: Any, note: _Note) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        if value.get("kind") == "Secret":
            return {key: LEFT_OUT if key in ("data", "stringData") else part for key, part in value.items()}
        return {key: _field(key, part, note) for key, part in value.items() if key not in _DROPPED_METADATA}
    if isinstance(value, list):
        return [_walk(item, note) for item in value]
    return value


def _field(key: str, value: Any, note: _Note) -> Any:  # noqa: ANN401
    if key == "env" and isinstance(value, list):
        return [_variable(item, note) for item in value]
    if key in ("args", "command") and isinstance(value, list):
        return _arguments(value, note)
    if key == "annotations" and isinstance(value, Mapping):
        return {name: _annotation(name, text, note) for name, text in value.items() if name not in _DROPPED_ANNOTATIONS}
    return _walk(value, note)


def _variable(item: Any, note: _Note) -> Any:  # noqa: ANN401
    if not isinstance(item, Mapping) or "value" not in item:
        return item
    note(str(item["value"]))
    return {**item, "value": LEFT_OUT}


def _arguments(arguments: list[Any], note: _Note) -> list[Any]:
    """`--api-key=KEY` and `--api-key KEY`, whatever the flag's exact name."""
    shown: list[Any] = []
    follows = False
    for argument in arguments:
        match = _FLAG.match(argument) if isinstance(argument, str) else None
        if match is None and follows:
            note(str(argument))
            shown.append(LEFT_OUT)
            continue
        follows = match is not None and _SENSITIVE.search(match[1]) is not None
        if follows and match is not None and match[2]:
            note(match[2][1:])
            shown.append(f"{match[1]}={LEFT_OUT}")
        else:
            shown.append(argument)
    return shown


def _annotation(name: str, text: Any, note: _Note) -> Any:  # noqa: ANN401
    if name != names.ANNOTATION_REVISION_SPEC:
        return text
    try:
        return json.dumps(_walk(json.loads(text), note))
    except (ValueError, TypeError):
        return LEFT_OUT
