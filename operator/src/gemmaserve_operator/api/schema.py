"""Pydantic's JSON schema as a structural schema: what a CustomResourceDefinition accepts."""

from typing import Any, Final

from pydantic import BaseModel

Schema = dict[str, Any]

_DROPPED: Final = frozenset(
    {"title", "$defs", "description", "additionalProperties", "properties", "items", "anyOf", "default"}
)


def structural_schema(model: type[BaseModel]) -> Schema:
    """The schema of a type, whole (nothing is referred to), with defaults that the API server fills in.

    A part that may be left out and that has defaults inside gets the default `{}`, else the API server would not
    look inside. What defaults to None has no default: it stays absent.
    """
    schema = model.model_json_schema(by_alias=True)
    return _convert(schema, schema.get("$defs", {}))


def _convert(node: Schema, definitions: dict[str, Schema]) -> Schema:
    if reference := node.get("$ref"):
        target = definitions[reference.rpartition("/")[2]]
        return _convert(target | {key: value for key, value in node.items() if key != "$ref"}, definitions)
    if "anyOf" in node and not node.get("x-kubernetes-int-or-string"):
        return _convert_optional(node, definitions)
    converted: Schema = {}
    if "description" in node:
        converted["description"] = " ".join(node["description"].split())
    converted |= {key: value for key, value in node.items() if key not in _DROPPED}
    if "anyOf" in node:
        converted["anyOf"] = node["anyOf"]
    if "default" in node:
        converted["default"] = node["default"]
    if "properties" in node:
        required = node.get("required", [])
        converted["properties"] = {
            name: _with_inner_defaults(_convert(part, definitions), part, optional=name not in required)
            for name, part in node["properties"].items()
        }
    if "items" in node:
        converted["items"] = _convert(node["items"], definitions)
    if isinstance(node.get("additionalProperties"), dict):
        converted["additionalProperties"] = _convert(node["additionalProperties"], definitions)
    return converted


def _convert_optional(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """`X | None`: the field may be absent, and is never null."""
    (part,) = [part for part in node["anyOf"] if part.get("type") != "null"]
    outer = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
    return _convert(part | outer, definitions)


def _with_inner_defaults(converted: Schema, node: Schema, *, optional: bool) -> Schema:
    may_be_none = any(part.get("type") == "null" for part in node.get("anyOf", []))
    has_defaults = any("default" in part for part in converted.get("properties", {}).values())
    if optional and has_defaults and not may_be_none:
        return converted | {"default": {}}
    return converted
