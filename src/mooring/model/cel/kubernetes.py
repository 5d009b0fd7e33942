"""Kubernetes' own functions: quantities and semantic versions."""

import re
from collections.abc import Callable
from typing import Any

from mooring.model.cel.functions import BOOL, DOUBLE, INT, QUANTITY, SEMVER, STRING, Overload
from mooring.model.cel.values import CelEvaluationError, Quantity, Semver
from mooring.model.values.quantity import NANO, Nanos, QuantityError, parse_quantity


def quantity(text: str) -> Quantity:
    try:
        return Quantity(parse_quantity(text))
    except QuantityError as error:
        raise CelEvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from error


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _as_integer(value: Quantity) -> int:
    if not value.is_integer:
        raise CelEvaluationError("cannot convert value to integer")
    return value.nanos // NANO


def semver(text: str, normalize: bool = False) -> Semver:
    found = Semver.parse(_normal(text) if normalize else text)
    if found is None:
        raise CelEvaluationError(f"'{text}' is no semantic version")
    return found


def _normal(text: str) -> str:
    """As Kubernetes forgives: a v in front, missing parts, zeros in front."""
    head, mark, rest = re.match(r"v?([^+-]*)([+-]?)(.*)", text.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    parts = [part.lstrip("0") or "0" for part in head.split(".")]
    return ".".join((*parts, *["0"] * (3 - len(parts)))) + mark + rest


def kubernetes_functions() -> dict[str, tuple[Overload, ...]]:
    def ordered(kind: str, key: Callable[[Any], Any]) -> dict[str, Overload]:
        return {
            ".isGreaterThan": Overload((kind, kind), BOOL, lambda a, b: key(a) > key(b)),
            ".isLessThan": Overload((kind, kind), BOOL, lambda a, b: key(a) < key(b)),
            ".compareTo": Overload((kind, kind), INT, lambda a, b: (key(a) > key(b)) - (key(a) < key(b))),
        }

    orders = ordered(QUANTITY, lambda value: value.nanos), ordered(SEMVER, lambda value: value)
    return {
        "quantity": (Overload((STRING,), QUANTITY, quantity),),
        "isQuantity": (Overload((STRING,), BOOL, _is_quantity),),
        ".sign": (Overload((QUANTITY,), INT, lambda each: (each.nanos > 0) - (each.nanos < 0)),),
        ".isInteger": (Overload((QUANTITY,), BOOL, lambda each: each.is_integer),),
        ".asInteger": (Overload((QUANTITY,), INT, _as_integer),),
        ".asApproximateFloat": (Overload((QUANTITY,), DOUBLE, lambda each: each.nanos / NANO),),
        ".add": (
            Overload((QUANTITY, QUANTITY), QUANTITY, lambda a, b: Quantity(Nanos(a.nanos + b.nanos))),
            Overload((QUANTITY, INT), QUANTITY, lambda a, b: Quantity(Nanos(a.nanos + b * NANO))),
        ),
        ".sub": (
            Overload((QUANTITY, QUANTITY), QUANTITY, lambda a, b: Quantity(Nanos(a.nanos - b.nanos))),
            Overload((QUANTITY, INT), QUANTITY, lambda a, b: Quantity(Nanos(a.nanos - b * NANO))),
        ),
        "semver": (Overload((STRING,), SEMVER, semver), Overload((STRING, BOOL), SEMVER, semver)),
        "isSemver": (
            Overload((STRING,), BOOL, lambda text: Semver.parse(text) is not None),
            Overload((STRING, BOOL), BOOL, lambda text, n: Semver.parse(_normal(text) if n else text) is not None),
        ),
        ".major": (Overload((SEMVER,), INT, lambda each: each.major),),
        ".minor": (Overload((SEMVER,), INT, lambda each: each.minor),),
        ".patch": (Overload((SEMVER,), INT, lambda each: each.patch),),
        **{name: tuple(order[name] for order in orders) for name in orders[0]},
    }
