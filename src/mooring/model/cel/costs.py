"""What calls cost, as cel-go and Kubernetes' libraries count: by the size of what they read or make."""

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

TRAVERSAL, PATTERN = 0.1, 0.25
"""Steps for each character of a string that is read, and of a regular expression."""
LARGEST = 2**20
"""Characters of a string, or items of a list, that an expression may make: more than any real one needs."""

Cost = Callable[[Sequence[Any]], int]


def size_of(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else 1


def _text(*which: int) -> Cost:
    return lambda values: sum(ceil(size_of(values[index]) * TRAVERSAL) for index in which)


def _pattern(values: Sequence[Any]) -> int:
    return ceil((1 + size_of(values[0])) * TRAVERSAL) * ceil(size_of(values[1]) * PATTERN)


def _within(values: Sequence[Any]) -> int:
    return ceil(size_of(values[0]) * TRAVERSAL) * ceil(size_of(values[1]) * TRAVERSAL)


def _traversal(value: Any) -> int:
    """Steps to look at all of a value once."""
    if isinstance(value, str | bytes):
        return ceil(len(value) * TRAVERSAL)
    return sum(map(_traversal, value)) if isinstance(value, list | tuple) else 1


def _all_of_first(values: Sequence[Any]) -> int:
    return _traversal(values[0])


def _product(values: Sequence[Any]) -> int:
    return size_of(values[0]) * size_of(values[1])


def compared(one: Any, other: Any) -> int:
    """What a comparison costs beside its one step."""
    if isinstance(one, str | bytes | list | tuple | dict) and isinstance(other, str | bytes | list | tuple | dict):
        return int(min(len(one), len(other)) * TRAVERSAL)
    return 0


def _sum(values: Sequence[Any]) -> int:
    """Of strings and bytes; a list is read as a whole here, unlike in Go, which joins lists without a copy."""
    if isinstance(values[0], str | bytes | list | tuple):
        return int((size_of(values[0]) + size_of(values[1])) * TRAVERSAL)
    return 0


COSTS: dict[str, Cost] = {
    "+": _sum,
    "in": lambda values: size_of(values[1]) if isinstance(values[1], list | tuple) else 0,
    "matches": _pattern,
    "find": _pattern,
    "findAll": _pattern,
    "contains": _within,
    "startsWith": _text(1),
    "endsWith": _text(1),
    "sets.contains": _product,
    "sets.intersects": _product,
    "sets.equivalent": _product,
    **dict.fromkeys(("isSorted", "sum", "min", "max"), _all_of_first),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim", "charAt", "format"), _text(0)),
    **dict.fromkeys(("replace", "split", "string", "bytes", "quantity", "isQuantity"), _text(0)),
    **dict.fromkeys(("semver", "isSemver", "int", "uint", "double", "duration", "timestamp"), _text(0)),
    "indexOf": lambda values: _traversal(values[0]) if isinstance(values[0], list | tuple) else _within(values),
    "lastIndexOf": lambda values: _traversal(values[0]) if isinstance(values[0], list | tuple) else _within(values),
    "join": lambda values: ceil(sum(map(size_of, values[0])) * TRAVERSAL),
}
"""By name: what a call costs beside its one step."""
