"""What all types of spec and status share: camelCase names, and rules that the API server and Python both check."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule over several fields, said once for both places that check it.

    `cel` goes into the CRD, where `self` is the object; `check` is the same in Python, for `gemmaserve-operator plan`
    and for objects that an older CRD let in. `message` tells the user what to write instead.
    """

    cel: str
    check: Callable[[Any], bool]
    message: str


class ApiModel(BaseModel):
    """Base of all types; field names are camelCase in JSON."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, use_attribute_docstrings=True
    )

    RULES: ClassVar[tuple[Rule, ...]] = ()

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        if cls.RULES:
            schema["x-kubernetes-validations"] = [{"rule": r.cel, "message": r.message} for r in cls.RULES]
        return schema

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        broken = [rule.message for rule in self.RULES if not rule.check(self)]
        if broken:
            raise ValueError("; ".join(broken))
        return self


class SpecModel(ApiModel):
    """Base of the types under `spec`, where an unknown field is an error: it would silently do nothing."""

    model_config = ConfigDict(extra="forbid")
