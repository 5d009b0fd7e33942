"""Quantities exactly as Kubernetes reads them, as integers of billionths: never through floats.

Kubernetes keeps nothing finer than a billionth (it rounds up), so one integer of nano-units holds every quantity
exactly, sums are exact, and rounding happens once, where a whole number of millis or units is asked for.
"""

import re
from functools import lru_cache
from typing import NewType

from mooring.model.api.meta import QuantityText

Nanos = NewType("Nanos", int)

NANO = 10**9
MAX_UNITS = 2**63 - 1
"""What does not fit an int64 is capped there, as in Kubernetes."""
LONGEST = 1000
"""Characters: a longer number is none, as turning it into one is quadratic."""

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FORM = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)((?:[numkMGTPE]|[KMGTPE]i)?|[eE][+-]?\d{1,4})", re.ASCII)


class QuantityError(ValueError):
    """The text is not a quantity."""


def parse_quantity(text: QuantityText) -> Nanos:
    """Read a quantity such as `500m`, `1.5`, `2Gi` or `1e3`; raise QuantityError for anything else."""
    return _parse(text if isinstance(text, str) else _as_text(text))


def _as_text(number: int | float) -> str:
    if isinstance(number, bool):
        raise QuantityError(str(number).lower())
    return repr(number)  # a float's shortest form: the digits that the user wrote


@lru_cache(maxsize=65536)
def _parse(text: str) -> Nanos:
    form = _FORM.fullmatch(text) if len(text) <= LONGEST else None
    if form is None:
        raise QuantityError(text)
    sign, digits, suffix = form.groups()
    whole, _, fraction = digits.partition(".")
    number = int(whole + fraction or "0")
    if suffix in _BINARY:
        exponent, factor = 9, 1 << _BINARY[suffix]
    elif suffix in _DECIMAL:
        exponent, factor = _DECIMAL[suffix] + 9, 1
    else:
        exponent, factor = int(suffix[1:]) + 9, 1
    exponent -= len(fraction)
    number *= factor
    # Finer than a billionth rounds away from zero, as Kubernetes does.
    nanos = number * 10**exponent if exponent >= 0 else -(-number // 10**-exponent)
    nanos = min(nanos, MAX_UNITS * NANO)
    return Nanos(-nanos if sign == "-" else nanos)


def to_units(nanos: int) -> int:
    """Round up to whole units (bytes, counts)."""
    return -(-nanos // NANO)


def to_millis(nanos: int) -> int:
    """Round up to thousandths (CPU)."""
    return -(-nanos // 10**6)
