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


@lru_cache(maxsize=65536)
def approximate_quantity(text: QuantityText) -> float:
    """A quantity as a float, rounded as Kubernetes rounds it: its digits times a power of ten, not the nearest float.

    >>> approximate_quantity("700m"), approximate_quantity("0.5"), approximate_quantity("2Ki")
    (0.7000000000000001, 0.5, 2048.0)
    """
    written = text if isinstance(text, str) else _as_text(text)
    form = _FORM.fullmatch(written) if len(written) <= LONGEST else None
    if form is None:
        raise QuantityError(written)
    sign, digits, suffix = form.groups()
    whole, _, fraction = digits.partition(".")
    if suffix in _BINARY:
        return _parse(written) / NANO
    exponent = (_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])) - len(fraction)
    number = float(int(sign + (whole + fraction or "0")))
    return number * float(f"1e{exponent}") if exponent else number


def quantity_text(nanos: int) -> str:
    """A quantity as one would write it: with a binary suffix where that is exact, else in decimals."""
    for suffix, bits in reversed(_BINARY.items()):
        if nanos and nanos % (NANO << bits) == 0:
            return f"{nanos // (NANO << bits)}{suffix}"
    for suffix, exponent in (("", 9), ("m", 6), ("u", 3)):
        if nanos % 10**exponent == 0:
            return f"{nanos // 10**exponent}{suffix}"
    return f"{nanos}n"


def to_units(nanos: int) -> int:
    """Round up to whole units (bytes, counts)."""
    return -(-nanos // NANO)


def to_millis(nanos: int) -> int:
    """Round up to thousandths (CPU)."""
    return -(-nanos // 10**6)


@lru_cache(maxsize=65536)
def canonical_quantity(text: QuantityText) -> str:
    """Write a quantity as Kubernetes does: the largest suffix of its family that leaves a whole number.

    >>> [canonical_quantity(text) for text in ("1000m", "0.5", "1.5Gi", "2048", "512Ki", "1000Ki", "1e3", "0Gi")]
    ['1', '500m', '1536Mi', '2048', '512Ki', '1000Ki', '1e3', '0']
    """
    written = text if isinstance(text, str) else _as_text(text)
    form = _FORM.fullmatch(written) if len(written) <= LONGEST else None
    if form is None:
        raise QuantityError(written)
    return format_quantity(_parse(written), like=form.group(3))


def format_quantity(nanos: int, *, like: str = "") -> str:
    """Write an amount in the family of a suffix: binary (`Gi`), an exponent (`e3`), or decimal."""
    if like in _BINARY and abs(nanos) >= 1024 * NANO:
        units = -(-nanos // NANO)
        power = 0
        while units % 1024 == 0 and power < len(_BINARY):
            units, power = units // 1024, power + 1
        return f"{units}{('', *_BINARY)[power]}"
    if nanos == 0:
        return "0"
    exponent = -9
    while nanos % 1000 == 0 and exponent < _DECIMAL["E"]:
        nanos, exponent = nanos // 1000, exponent + 3
    if like[:1] in ("e", "E") and like != "E":
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{next(suffix for suffix, power in _DECIMAL.items() if power == exponent)}"
