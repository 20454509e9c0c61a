"""Field types that several parts of the spec share."""

from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from gemmaserve_operator.api.quantity import parse_quantity

OBJECT_NAME_PATTERN: Final = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"
QUALIFIED_NAME_PATTERN: Final = r"^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$"
LABEL_VALUE_PATTERN: Final = r"^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$"

QUANTITY_MESSAGE: Final = "must be a Kubernetes quantity that is not negative, such as 500m, 8 or 64Gi"

LIST_BY_NAME: Final = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
"""A list whose items are told apart by name: the API server refuses a name that stands twice."""

ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=OBJECT_NAME_PATTERN)]
QualifiedName = Annotated[str, Field(min_length=1, max_length=253, pattern=QUALIFIED_NAME_PATTERN)]
LabelValue = Annotated[str, Field(max_length=63, pattern=LABEL_VALUE_PATTERN)]


def _integer_to_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _require_quantity(text: str) -> str:
    try:
        valid = parse_quantity(text) >= 0
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(QUANTITY_MESSAGE)
    return text


Quantity = Annotated[
    str,
    BeforeValidator(_integer_to_text),
    AfterValidator(_require_quantity),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 32,
            "x-kubernetes-validations": [
                {
                    "rule": "isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0",
                    "message": QUANTITY_MESSAGE,
                }
            ],
        }
    ),
]
"""Kept as written (as text): two spellings of one amount are two different things to a revision."""
