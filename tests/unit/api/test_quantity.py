from decimal import Decimal

import pytest

from gemmaserve_operator.api.quantity import parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", Decimal("0.5")),
        (8, 8),
        ("1.5", Decimal("1.5")),
        (".5", Decimal("0.5")),
        ("64Gi", 64 * 1024**3),
        ("1k", 1000),
        ("1Ki", 1024),
        ("2E", 2 * 10**18),
        ("1e3", 1000),
        ("1E-2", Decimal("0.01")),
        ("100n", Decimal("1e-7")),
        ("-1", -1),
    ],
)
def test_values(text, value):
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", "abc", "1 Gi", "1GiB", "1K", "--1", "1e", "1e9999", "٣", "1,5", "Gi", "0x10"])
def test_what_is_no_quantity(text):
    with pytest.raises(ValueError, match="not a quantity"):
        parse_quantity(text)
