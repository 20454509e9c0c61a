"""Kubernetes quantities: read and compared as the API server does, without floating point."""

import re
from decimal import Decimal

_SUFFIXES = {"": Decimal(1), "n": Decimal(10) ** -9, "u": Decimal(10) ** -6, "m": Decimal(10) ** -3}
_SUFFIXES |= {unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)}
_SUFFIXES |= {f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}
_QUANTITY = re.compile(r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?P<suffix>[eE][+-]?[0-9]{1,3}|[a-zA-Z]*)")


def parse_quantity(text: str | int) -> Decimal:
    """The value of a quantity such as `500m`, `8`, `64Gi` or `1e3`.

    Raises:
        ValueError: the text is not a quantity.
    """
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, suffix = Decimal(match["number"]), match["suffix"]
    if suffix in _SUFFIXES:
        return number * _SUFFIXES[suffix]
    if suffix[0] in "eE" and len(suffix) > 1:
        return number.scaleb(int(suffix[1:]))
    raise ValueError(f"{text!r} is not a quantity: unknown suffix {suffix!r}")
