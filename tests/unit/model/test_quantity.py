"""Quantities are exact, as Kubernetes reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.model.values.quantity import NANO, QuantityError, parse_quantity, to_millis, to_units

AMOUNTS = st.integers(min_value=0, max_value=10**12)


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        pytest.param("500m", NANO // 2, id="millis"),
        pytest.param("1.5", 3 * NANO // 2, id="decimal point"),
        pytest.param(".5", NANO // 2, id="no digit before the point"),
        pytest.param("2.", 2 * NANO, id="no digit after the point"),
        pytest.param("1Ki", 1024 * NANO, id="binary suffix"),
        pytest.param("1.5Gi", 3 * 2**29 * NANO, id="binary suffix after a fraction"),
        pytest.param("1k", 1000 * NANO, id="decimal suffix"),
        pytest.param("1e3", 1000 * NANO, id="exponent"),
        pytest.param("1E", 10**18 * NANO, id="exa is not an exponent"),
        pytest.param("-1", -NANO, id="negative"),
        pytest.param("0.1n", 1, id="finer than a billionth rounds up"),
        pytest.param("100E", (2**63 - 1) * NANO, id="more than an int64 is capped"),
        pytest.param(2, 2 * NANO, id="an integer"),
        pytest.param(0.5, NANO // 2, id="a float"),
    ],
)
def test_a_quantity_is_read_exactly(text: str | float, nanos: int) -> None:
    assert parse_quantity(text) == nanos


@pytest.mark.parametrize("text", ["", "1.5.2", "1 Gi", "Gi", "1gi", "0x10", "1e", "--1"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


@given(AMOUNTS)
def test_a_printed_number_of_millis_reads_back(millis: int) -> None:
    assert to_millis(parse_quantity(f"{millis}m")) == millis


@given(AMOUNTS, st.sampled_from([("Ki", 10), ("Mi", 20), ("k", 0)]))
def test_a_printed_number_of_units_reads_back(count: int, suffix: tuple[str, int]) -> None:
    name, bits = suffix
    factor = 1 << bits if bits else 1000
    assert to_units(parse_quantity(f"{count}{name}")) == count * factor


@given(AMOUNTS, AMOUNTS)
def test_a_sum_of_parsed_quantities_is_the_parsed_sum(first: int, second: int) -> None:
    assert parse_quantity(f"{first}u") + parse_quantity(f"{second}u") == parse_quantity(f"{first + second}u")


@given(AMOUNTS, AMOUNTS)
def test_a_larger_number_is_a_larger_quantity(first: int, second: int) -> None:
    assert (parse_quantity(f"{first}m") <= parse_quantity(f"{second}m")) == (first <= second)


@given(st.integers(min_value=0, max_value=10**18))
def test_rounding_is_up_and_by_less_than_one(nanos: int) -> None:
    assert 0 <= to_units(nanos) * NANO - nanos < NANO
    assert 0 <= to_millis(nanos) * 10**6 - nanos < 10**6
