"""All functions and operators of CEL by name: those of the standard and of collections are here."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from mooring.model.cel.functions import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST,
    MAP,
    OPTIONAL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Functions,
    Overload,
)
from mooring.model.cel.kubernetes import kubernetes_functions
from mooring.model.cel.strings import bounded, string_functions, text_of
from mooring.model.cel.values import (
    MAX_INT,
    MIN_INT,
    NONE,
    NUMBERS,
    CelEvaluationError,
    Optional,
    TypeValue,
    WithDefault,
    compare,
    equal,
    type_of,
    whole,
)

# Arithmetic.


def _divide(one: int, other: int) -> int:
    if other == 0:
        raise CelEvaluationError("division by zero")
    quotient = abs(one) // abs(other)
    return whole(quotient if (one < 0) == (other < 0) else -quotient, type_of(one))


def _remainder(one: int, other: int) -> int:
    if other == 0:
        raise CelEvaluationError("modulus by zero")
    return whole(one - other * (-(abs(one) // abs(other)) if (one < 0) != (other < 0) else one // other), type_of(one))


def _float_divide(one: float, other: float) -> float:
    if other == 0:
        return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
    return one / other


def _concatenate(one: Any, other: Any) -> Any:
    bounded(len(one) + len(other))
    return one + other


def _arithmetic() -> dict[str, tuple[Overload, ...]]:
    def of(kind: str, operation: Callable[[Any, Any], Any]) -> Overload:
        return Overload((kind, kind), kind, operation)

    return {
        "+": (
            *(of(kind, lambda a, b: whole(a + b, type_of(a))) for kind in (INT, UINT)),
            of(DOUBLE, lambda a, b: a + b),
            of(STRING, _concatenate),
            of(BYTES, _concatenate),
            of(LIST, lambda a, b: _concatenate(list(a), list(b))),
            of(DURATION, lambda a, b: a + b),
            Overload((TIMESTAMP, DURATION), TIMESTAMP, lambda a, b: a + b),
            Overload((DURATION, TIMESTAMP), TIMESTAMP, lambda a, b: b + a),
        ),
        "-": (
            *(of(kind, lambda a, b: whole(a - b, type_of(a))) for kind in (INT, UINT)),
            of(DOUBLE, lambda a, b: a - b),
            of(DURATION, lambda a, b: a - b),
            Overload((TIMESTAMP, TIMESTAMP), DURATION, lambda a, b: a - b),
            Overload((TIMESTAMP, DURATION), TIMESTAMP, lambda a, b: a - b),
        ),
        "*": (
            *(of(kind, lambda a, b: whole(a * b, type_of(a))) for kind in (INT, UINT)),
            of(DOUBLE, lambda a, b: a * b),
        ),
        "/": (*(of(kind, _divide) for kind in (INT, UINT)), of(DOUBLE, _float_divide)),
        "%": tuple(of(kind, _remainder) for kind in (INT, UINT)),
        "neg": (Overload((INT,), INT, lambda a: whole(-a, INT)), Overload((DOUBLE,), DOUBLE, lambda a: -a)),
        "!": (Overload((BOOL,), BOOL, lambda a: not a),),
        "in": (
            Overload((DYN, LIST), BOOL, lambda a, b: any(equal(a, each) for each in b)),
            Overload((DYN, MAP), BOOL, lambda a, b: _has_key(b, a)),
        ),
    }


def find(found: Mapping[Any, Any], key: Any) -> Optional:
    """The value of a map's key, if it has one; numbers are keys by value, and never truths."""
    if _has_key(found, key):
        return Optional(found[key])
    return Optional({}) if isinstance(found, WithDefault) else NONE


def _has_key(found: Mapping[Any, Any], key: Any) -> bool:
    try:
        return key in found and (not isinstance(key, bool) or any(each is key for each in found))
    except TypeError as error:
        raise CelEvaluationError(f"unsupported key type: {type_of(key)}") from error


# Conversions.


def _to_int(value: Any) -> int:
    try:
        if isinstance(value, float):
            if not MIN_INT <= value <= MAX_INT:
                raise CelEvaluationError("integer overflow")
            return int(value)
        if isinstance(value, datetime):
            return int(value.timestamp())
        return whole(int(value), INT)
    except ValueError as error:
        raise CelEvaluationError(f'strconv.ParseInt: parsing "{value}": invalid syntax') from error


def _to_double(value: Any) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise CelEvaluationError(f'strconv.ParseFloat: parsing "{value}": invalid syntax') from error


def _to_bool(value: str) -> bool:
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise CelEvaluationError(f'strconv.ParseBool: parsing "{value}": invalid syntax')


_DURATION = re.compile(r"([+-]?)((?:\d+(?:\.\d*)?(?:h|ms|us|ns|m|s))+|0)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def _to_duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise CelEvaluationError(f'time: invalid duration "{text}"')
    parts = re.findall(r"(\d+(?:\.\d*)?)(h|ms|us|ns|m|s)", match.group(2))
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return timedelta(seconds=-seconds if match.group(1) == "-" else seconds)


def _to_timestamp(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as error:
        raise CelEvaluationError(f'invalid timestamp "{text}"') from error


def _conversions() -> dict[str, tuple[Overload, ...]]:
    scalars = (INT, UINT, DOUBLE, STRING)
    return {
        "int": tuple(Overload((kind,), INT, _to_int) for kind in (*scalars, TIMESTAMP)),
        "uint": tuple(Overload((kind,), UINT, lambda value: whole(_to_int(value), UINT)) for kind in scalars),
        "double": tuple(Overload((kind,), DOUBLE, _to_double) for kind in scalars),
        "string": tuple(Overload((kind,), STRING, text_of) for kind in (*scalars, BOOL, BYTES, DURATION, TIMESTAMP)),
        "bool": (Overload((BOOL,), BOOL, bool), Overload((STRING,), BOOL, _to_bool)),
        "bytes": (Overload((STRING,), BYTES, lambda text: text.encode()), Overload((BYTES,), BYTES, lambda each: each)),
        "dyn": (Overload((DYN,), DYN, lambda value: value),),
        "type": (Overload((DYN,), TYPE, lambda value: TypeValue(type_of(value))),),
        "duration": (Overload((STRING,), DURATION, _to_duration), Overload((DURATION,), DURATION, lambda each: each)),
        "timestamp": (Overload((STRING,), TIMESTAMP, _to_timestamp), Overload((TIMESTAMP,), TIMESTAMP, lambda e: e)),
    }


def _sorted_pairs(items: Sequence[Any]) -> bool:
    return all(compare(one, other) <= 0 for one, other in pairwise(items))


def _extreme(items: Sequence[Any], sign: int) -> Any:
    if not items:
        raise CelEvaluationError("min called on empty list" if sign < 0 else "max called on empty list")
    best = items[0]
    for each in items[1:]:
        if compare(each, best) * sign > 0:
            best = each
    return best


def _sum(items: Sequence[Any]) -> Any:
    if not items:
        return 0
    total = items[0]
    for each in items[1:]:
        total = total + each
    return whole(total, type_of(items[0])) if type_of(items[0]) in (INT, UINT) else total


def _first_index(items: Sequence[Any], value: Any) -> int:
    return next((index for index, each in enumerate(items) if equal(each, value)), -1)


def _last_index(items: Sequence[Any], value: Any) -> int:
    return next((len(items) - 1 - index for index, each in enumerate(reversed(items)) if equal(each, value)), -1)


def _contains(items: Sequence[Any], others: Sequence[Any]) -> bool:
    return all(any(equal(each, item) for item in items) for each in others)


def _collections() -> dict[str, tuple[Overload, ...]]:
    sized = tuple(Overload((kind,), INT, len) for kind in (STRING, BYTES, LIST, MAP))
    pairs = (LIST, LIST)
    return {
        "size": sized,
        ".size": sized,
        ".isSorted": (Overload((LIST,), BOOL, _sorted_pairs),),
        ".sum": (Overload((LIST,), DYN, _sum),),
        ".min": (Overload((LIST,), DYN, lambda items: _extreme(items, -1)),),
        ".max": (Overload((LIST,), DYN, lambda items: _extreme(items, 1)),),
        ".indexOf": (Overload((LIST, DYN), INT, _first_index),),
        ".lastIndexOf": (Overload((LIST, DYN), INT, _last_index),),
        "sets.contains": (Overload(pairs, BOOL, _contains),),
        "sets.intersects": (Overload(pairs, BOOL, lambda a, b: any(equal(x, y) for x in a for y in b)),),
        "sets.equivalent": (Overload(pairs, BOOL, lambda a, b: _contains(a, b) and _contains(b, a)),),
    }


def _present(value: Optional) -> Any:
    if not value.has_value:
        raise CelEvaluationError("optional.none() dereference")
    return value.value


def _is_zero(value: Any) -> bool:
    kind = type_of(value)
    if kind == "null_type" or kind in NUMBERS or kind == BOOL:
        return not value
    return kind in (STRING, BYTES, LIST, MAP) and len(value) == 0


def _optionals() -> dict[str, tuple[Overload, ...]]:
    def given(value: Any) -> Optional:
        return Optional(value)

    return {
        "optional.of": (Overload((DYN,), OPTIONAL, given),),
        "optional.none": (Overload((), OPTIONAL, lambda: NONE),),
        "optional.ofNonZeroValue": (Overload((DYN,), OPTIONAL, lambda v: NONE if _is_zero(v) else Optional(v)),),
        ".hasValue": (Overload((OPTIONAL,), BOOL, lambda value: value.has_value),),
        ".value": (Overload((OPTIONAL,), DYN, _present),),
        ".orValue": (Overload((OPTIONAL, DYN), DYN, lambda value, other: value.value if value.has_value else other),),
        ".or": (Overload((OPTIONAL, OPTIONAL), OPTIONAL, lambda value, other: value if value.has_value else other),),
    }


def _merged(*parts: Functions) -> dict[str, tuple[Overload, ...]]:
    merged: dict[str, tuple[Overload, ...]] = {}
    for part in parts:
        for name, overloads in part.items():
            merged[name] = (*merged.get(name, ()), *overloads)
    return merged


FUNCTIONS: Functions = _merged(
    _arithmetic(), _conversions(), string_functions(), _collections(), kubernetes_functions(), _optionals()
)
