"""Quantities that remember their notation, because the API server's messages do: what was written as 2Gi stays 2Gi."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from mooring.model.api.meta import QuantityText, Resources
from mooring.model.values.quantity import NANO, parse_quantity

MILLI = 10**6
"""Nano-units in the thousandth to which the API rounds every amount up."""


class Notation(enum.Enum):
    """How a quantity was written, and is to be printed."""

    DECIMAL = "1500m"
    BINARY = "2Gi"
    EXPONENT = "1e3"


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity in nano-units, and its notation."""

    nanos: int
    notation: Notation = Notation.DECIMAL

    def __add__(self, other: "Amount") -> "Amount":
        """Add up; the first that is not zero decides how the sum is printed."""
        return Amount(self.nanos + other.nanos, self.notation if self.nanos else other.notation)

    def __str__(self) -> str:
        return _to_text(self)

    @property
    def millis(self) -> int:
        return -(-self.nanos // MILLI)


Amounts: TypeAlias = dict[str, Amount]
"""Amounts by resource name."""

ZERO = Amount(0)
ONE = Amount(NANO)


def count(number: int) -> Amount:
    return Amount(number * NANO)


@lru_cache(maxsize=65536)
def read_amount(text: QuantityText) -> Amount:
    """Read a valid quantity as the API keeps it: rounded up to thousandths."""
    nanos = -(-parse_quantity(text) // MILLI) * MILLI
    notation = _notation(str(text))
    if notation is Notation.BINARY and 0 < nanos < NANO:
        notation = Notation.DECIMAL
    return Amount(nanos, notation)


def read_amounts(resources: Resources | None) -> Amounts:
    return {name: read_amount(text) for name, text in resources.items()} if resources else {}


def show_amounts(amounts: Mapping[str, Amount]) -> str:
    """List amounts by name, as in `requests.cpu=2,requests.memory=4Gi`."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def _notation(text: str) -> Notation:
    if text.endswith("i"):
        return Notation.BINARY
    return Notation.EXPONENT if text[-1].isdigit() and "e" in text.lower() else Notation.DECIMAL


_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_SUFFIXES = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_LARGEST_EXPONENT = 18


@lru_cache(maxsize=4096)
def _to_text(amount: Amount) -> str:
    """Print in Kubernetes' canonical form: no fraction, the largest suffix that loses nothing."""
    nanos, notation = amount.nanos, amount.notation
    if not nanos:
        return "0"
    if notation is Notation.BINARY:
        if abs(nanos) >= 1024 * NANO and nanos % NANO == 0:
            return _to_binary(nanos // NANO)
        notation = Notation.DECIMAL
    mantissa, exponent = nanos, -9
    while mantissa % 1000 == 0 and (exponent < _LARGEST_EXPONENT or notation is Notation.EXPONENT):
        mantissa //= 1000
        exponent += 3
    if notation is Notation.EXPONENT:
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIXES[exponent]}"


def _to_binary(units: int) -> str:
    power = 0
    while units % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        units //= 1024
        power += 1
    return f"{units}{_BINARY_SUFFIXES[power]}"
