"""Values by a tool's JSON schema; what the schema does not say, or says wrongly, is as if there were none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.core.arguments import Array, Bare, Object, Value
from gemmaserve_parser.core.jsontext import Json, Number, loads, number

if TYPE_CHECKING:
    from collections.abc import Callable

_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
_COMBINATIONS = frozenset({"$ref", "anyOf", "oneOf", "allOf"})
_MAX_ALTERNATIVES = 64
_MAX_NESTING = 16

#: Python's spellings too: the keyword-argument dialect writes them.
_LITERALS: dict[str, bool | None] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
_LOOSE_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?((?:[eE][+-]?[0-9]+)?)", re.ASCII)

_Alternative = Mapping[str, Any]


class Schema:
    """The parameters of one tool.

    Args:
        document: A JSON schema; anything else means none.
    """

    def __init__(self, document: object) -> None:
        self._document = document
        self._cache: dict[int, tuple[_Alternative, ...]] = {}

    def arguments(self, value: Object, text_of: Callable[[tuple[int, int]], str]) -> dict[str, Json]:
        """The arguments of a call, each of the type its parameter asks for where it reads as one.

        Args:
            value: The arguments as read.
            text_of: The text of the body at a span.
        """
        return self._object(value, self._alternatives(self._document), text_of)

    def _coerce(self, value: Value | Json, schema: object, text_of: Callable[[tuple[int, int]], str]) -> Json:
        alternatives = self._alternatives(schema)
        types = _types(alternatives)
        if isinstance(value, (Object, Array)):
            wanted = "object" if isinstance(value, Object) else "array"
            if types is not None and wanted not in types:
                return text_of(value.span)
        if isinstance(value, dict):
            return self._object(value, alternatives, text_of)
        if isinstance(value, list):
            return self._array(value, alternatives, text_of)
        if isinstance(value, Bare):
            return _natural(value) if types is None else _bare(value, types)
        if isinstance(value, str) and not isinstance(value, Number):
            return self._quoted(value, schema, types, text_of)
        return value

    def _quoted(
        self, value: str, schema: object, types: frozenset[str] | None, text_of: Callable[[tuple[int, int]], str]
    ) -> Json:
        if types is None or "string" in types:
            return value
        try:
            read = loads(value)
        except ValueError:
            return value
        if isinstance(read, (dict, list)):
            wanted = "object" if isinstance(read, dict) else "array"
            return self._coerce(read, schema, text_of) if wanted in types else value
        if isinstance(read, bool):
            return read if "boolean" in types else value
        if isinstance(read, Number):
            fits = "number" in types or ("integer" in types and read.integral)
            return read if fits and read == value else value
        return value

    def _object(
        self,
        value: Mapping[str, Any],
        alternatives: Sequence[_Alternative],
        text_of: Callable[[tuple[int, int]], str],
    ) -> dict[str, Json]:
        chosen = alternatives[0] if alternatives else {}
        if len(alternatives) > 1:
            chosen = max(alternatives, key=lambda alternative: _fit(alternative, value))
        return {key: self._coerce(item, _property(chosen, key), text_of) for key, item in value.items()}

    def _array(
        self, value: Sequence[Any], alternatives: Sequence[_Alternative], text_of: Callable[[tuple[int, int]], str]
    ) -> list[Json]:
        chosen = next((each for each in alternatives if "items" in each or "prefixItems" in each), {})
        items, prefix = chosen.get("items"), chosen.get("prefixItems")
        if isinstance(items, list):  # before draft 2020-12
            items, prefix = chosen.get("additionalItems"), items
        first = prefix if isinstance(prefix, list) else []
        return [
            self._coerce(item, first[index] if index < len(first) else items, text_of)
            for index, item in enumerate(value)
        ]

    def _alternatives(self, schema: object, nesting: int = _MAX_NESTING) -> tuple[_Alternative, ...]:
        """The plain schemas of which a value satisfies one: references followed, combinations spread out."""
        if not isinstance(schema, Mapping):
            return ({},)
        known = self._cache.get(id(schema))
        if known is None:
            self._cache[id(schema)] = ({},)  # what a reference to itself means
            known = self._cache[id(schema)] = tuple(self._spread(schema, nesting))
        return known

    def _spread(self, schema: Mapping[str, Any], nesting: int) -> list[_Alternative]:
        if nesting == 0:
            return [{}]
        branches: list[list[_Alternative]] = []
        if "$ref" in schema:
            branches.append([*self._alternatives(self._resolve(schema["$ref"]), nesting - 1)])
        branches.extend([*self._alternatives(member, nesting - 1)] for member in _list(schema.get("allOf")))
        branches.extend(
            [each for member in members for each in self._alternatives(member, nesting - 1)]
            for word in ("anyOf", "oneOf")
            if (members := _list(schema.get(word)))
        )
        result: list[_Alternative] = [{key: item for key, item in schema.items() if key not in _COMBINATIONS}]
        for branch in branches:
            result = [_merge(one, other) for one in result for other in branch[:_MAX_ALTERNATIVES]][:_MAX_ALTERNATIVES]
        return result

    def _resolve(self, reference: object) -> object:
        """What a reference into the same document points to; None for any other."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        target: object = self._document
        for part in reference[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, Mapping):
                target = target.get(name)
            elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            else:
                return None
        return target


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _merge(one: _Alternative, other: _Alternative) -> _Alternative:
    merged = {**one, **other}
    for word in ("properties", "patternProperties"):
        if isinstance(one.get(word), Mapping) and isinstance(other.get(word), Mapping):
            merged[word] = {**one[word], **other[word]}
    return merged


def _types(alternatives: Sequence[_Alternative]) -> frozenset[str] | None:
    """The types that one of the alternatives allows; None when one of them allows any."""
    union: set[str] = set()
    for alternative in alternatives:
        types = _declared(alternative)
        if not types:
            return None
        union |= types
    return frozenset(union)


def _declared(alternative: _Alternative) -> set[str]:
    declared = alternative.get("type")
    types = {each for each in (declared if isinstance(declared, list) else [declared]) if isinstance(each, str)}
    types &= _TYPES
    if not types and "type" not in alternative:
        types = _implied(alternative)
    if types and alternative.get("nullable") is True:
        types.add("null")
    return types


def _implied(alternative: _Alternative) -> set[str]:
    if isinstance(alternative.get("enum"), list):
        return {_type_of(each) for each in alternative["enum"]}
    if "const" in alternative:
        return {_type_of(alternative["const"])}
    if isinstance(alternative.get("properties"), Mapping):
        return {"object"}
    if isinstance(alternative.get("items"), Mapping):
        return {"array"}
    return set()


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "object" if isinstance(value, Mapping) else "array"


def _fit(alternative: _Alternative, value: Mapping[str, Any]) -> int:
    """How well an object fits one of several schemas: by the keys it has, and by constants that tell them apart."""
    properties = alternative.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    score = sum(1 for key in value if key in properties)
    score -= sum(1 for key in _list(alternative.get("required")) if isinstance(key, str) and key not in value)
    for key, item in value.items():
        schema = properties.get(key)
        if isinstance(schema, Mapping) and isinstance(item, str):
            allowed = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
            if allowed and item not in [str(each) for each in allowed]:
                score -= len(value) + 1
    return score


def _property(schema: _Alternative, key: str) -> object:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and key in properties:
        return properties[key]
    patterns = schema.get("patternProperties")
    if isinstance(patterns, Mapping):
        for pattern, each in patterns.items():
            if _matches(pattern, key):
                return each
    return schema.get("additionalProperties")


def _matches(pattern: object, key: str) -> bool:
    try:
        return isinstance(pattern, str) and re.search(pattern, key) is not None
    except re.error:
        return False


def _natural(text: Bare) -> Json:
    if text in _LITERALS:
        return _LITERALS[text]
    return number(text) or str(text)


def _bare(text: Bare, types: frozenset[str]) -> Json:
    lowered = text.lower()
    if "null" in types and lowered in {"null", "none"}:
        return None
    if "boolean" in types and lowered in {"true", "false"}:
        return lowered == "true"
    value = number(text)
    if value is None and "string" not in types:
        value = _loose_number(text)
    if value is not None:
        if "number" in types or (value.integral and "integer" in types):
            return value
        if "integer" in types and "string" not in types:
            return _whole(value) or str(text)
    return str(text)


def _loose_number(text: str) -> Number | None:
    """A number as languages but JSON write it: `108.`, `.5`, `+5`, `007`."""
    match = _LOOSE_NUMBER.fullmatch(text)
    if match is None or not (match.group(2) or match.group(3)):
        return None
    sign, whole, fraction, exponent = match.groups()
    digits = whole.lstrip("0") or "0"
    if fraction is not None:
        digits += "." + (fraction or "0")
    return number(f"{'-' if sign == '-' else ''}{digits}{exponent}")


def _whole(value: Number) -> Number | None:
    """The integer that a number with a fraction or an exponent is, `3.0` or `1e3`; None when it is none."""
    exact = float(value)
    return Number(int(exact)) if exact.is_integer() and abs(exact) < 2**53 else None
