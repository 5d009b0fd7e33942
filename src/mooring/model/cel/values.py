"""CEL's values: how they are called, compared and ordered, and what can go wrong with them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, total_ordering
from typing import Any

from mooring.model.values.quantity import NANO, Nanos

MIN_INT, MAX_INT = -(2**63), 2**63 - 1


class CelCompileError(ValueError):
    """The text is no expression, or one that cannot have a value."""

    def __init__(self, what: str, column: int = 0) -> None:
        super().__init__(f"{what} (column {column})" if column else what)


class CelEvaluationError(Exception):
    """An expression has no value for what it was asked about."""


class Uint(int):
    """An unsigned integer: a type of its own in CEL."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity of Kubernetes."""

    nanos: Nanos

    @property
    def is_integer(self) -> bool:
        return self.nanos % NANO == 0 and MIN_INT <= self.nanos // NANO <= MAX_INT


_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """A semantic version; what is built from is of no matter to its order."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> "Semver | None":
        match = _SEMVER.fullmatch(text)
        if match is None:
            return None
        pre = tuple(match.group(4).split(".")) if match.group(4) else ()
        if any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in pre):
            return None
        numbers = [int(part) for part in match.groups()[:3]]
        return cls(numbers[0], numbers[1], numbers[2], pre) if max(numbers) < 2**64 else None

    @property
    def order(self) -> tuple[object, ...]:
        """A release comes after its pre-releases; numbers come before words."""
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return self.major, self.minor, self.patch, not self.pre, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.order == other.order

    def __hash__(self) -> int:
        return hash(self.order)

    def __lt__(self, other: "Semver") -> bool:
        return self.order < other.order


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent."""

    value: Any
    has_value: bool = True


NONE = Optional(None, has_value=False)


class WithDefault(dict[str, Any]):
    """A map that has a value for every key that is looked up: an empty map for those that it does not list."""


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value."""

    name: str


def type_of(value: Any) -> str:
    """The name of a value's type."""
    if value is None:
        return "null_type"
    known = _TYPES.get(type(value))
    if known is not None:
        return known
    if isinstance(value, Mapping):
        return "map"
    if isinstance(value, Sequence):
        return "list"
    raise CelEvaluationError(f"a value of an unknown type, {type(value).__name__}")


_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    tuple: "list",
    dict: "map",
    WithDefault: "map",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    Optional: "optional_type",
    TypeValue: "type",
    timedelta: "google.protobuf.Duration",
    datetime: "google.protobuf.Timestamp",
}
NUMBERS = frozenset({"int", "uint", "double"})


def equal(one: Any, other: Any) -> bool:
    """CEL's equality: numbers by value whatever their type, everything else only within its type."""
    kind, other_kind = type_of(one), type_of(other)
    if kind in NUMBERS and other_kind in NUMBERS:
        return bool(one == other)
    if kind != other_kind:
        return False
    if kind == "list":
        return len(one) == len(other) and all(equal(a, b) for a, b in zip(one, other, strict=True))
    if kind == "map":
        return len(one) == len(other) and all(key in other and equal(value, other[key]) for key, value in one.items())
    if kind == "optional_type":
        return bool(one.has_value == other.has_value and (not one.has_value or equal(one.value, other.value)))
    return bool(one == other)


def compare(one: Any, other: Any) -> int:
    """Less, equal or greater, for values that have an order."""
    kind, other_kind = type_of(one), type_of(other)
    if not (kind in NUMBERS and other_kind in NUMBERS) and (kind != other_kind or kind not in ORDERED):
        raise CelEvaluationError(f"no such overload: {kind} < {other_kind}")
    return int(one > other) - int(one < other)


ORDERED = NUMBERS | {"bool", "string", "bytes", "google.protobuf.Duration", "google.protobuf.Timestamp"}


def whole(number: int, kind: str) -> int:
    """A result of arithmetic, if it fits 64 bits."""
    if kind == "uint":
        if not 0 <= number < 2**64:
            raise CelEvaluationError("unsigned integer overflow")
        return Uint(number)
    if not MIN_INT <= number <= MAX_INT:
        raise CelEvaluationError("integer overflow")
    return number
