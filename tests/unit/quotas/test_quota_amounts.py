"""Quantities are printed as Kubernetes prints them: canonical, in the notation in which they were written."""

import pytest

from mooring.model.api.meta import QuantityText
from mooring.model.quotas.amounts import ZERO, Amount, read_amount, show_amounts


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        (4, "4"),
        ("0", "0"),
        ("0Mi", "0"),
        ("1.5", "1500m"),
        (0.5, "500m"),
        ("2000m", "2"),
        ("1000", "1k"),
        ("90000", "90k"),
        ("1024", "1024"),
        ("2Gi", "2Gi"),
        ("1.5Gi", "1536Mi"),
        ("2048Mi", "2Gi"),
        ("1000Mi", "1000Mi"),
        ("1Ki", "1Ki"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        ("1G", "1G"),
        ("1500M", "1500M"),
        ("1E", "1E"),
        ("1e3", "1e3"),
        ("12e2", "1200"),
        ("1E3", "1e3"),
        ("100n", "1m"),
    ],
)
def test_an_amount_is_printed_in_canonical_form(written: QuantityText, printed: str) -> None:
    assert str(read_amount(written)) == printed


@pytest.mark.parametrize(
    ("parts", "printed"),
    [
        (["1Gi", "1Gi"], "2Gi"),
        (["1Gi", "500M"], "1573741824"),
        (["500M", "1Gi"], "1573741824"),
        (["500M", "500M"], "1G"),
        (["0", "1Gi"], "1Gi"),
        (["1500m", "1500m"], "3"),
        (["1e3", "1e3"], "2e3"),
    ],
)
def test_a_sum_keeps_the_notation_of_the_first_part_that_is_not_zero(parts: list[str], printed: str) -> None:
    total = ZERO
    for part in parts:
        total = total + read_amount(part)

    assert str(total) == printed


def test_amounts_are_listed_by_name() -> None:
    amounts = {"requests.memory": read_amount("4Gi"), "limits.cpu": read_amount("2"), "pods": Amount(0)}

    assert show_amounts(amounts) == "limits.cpu=2,pods=0,requests.memory=4Gi"
