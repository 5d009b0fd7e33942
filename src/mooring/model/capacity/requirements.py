"""The algebra of requirements on labels: sets of values, their complements, and numeric bounds.

A requirement says which values a label may have. Requirements of a NodePool, of pods and of an instance type are
intersected; what is left says which nodes can be launched. All values here are frozen, so that they can be shared and
used as keys.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from mooring.model.capacity.labels import current_name
from mooring.model.values.selectors import parse_int64

_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Requirement:
    """The values that one label may have."""

    values: frozenset[str] = frozenset()
    excludes: bool = False
    """Every value but these, within the bounds."""
    at_least: int | None = None
    at_most: int | None = None
    min_values: int | None = None
    """How many different values the instance types must offer."""

    def has(self, value: str) -> bool:
        return (value in self.values) != self.excludes and _is_within(value, self.at_least, self.at_most)

    @property
    def operator(self) -> str:
        """What remains, as an operator of node selectors; bounds alone are Exists."""
        if self.excludes:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    @property
    def may_be_absent(self) -> bool:
        """Tell whether a node without the label satisfies this."""
        return self.excludes == bool(self.values)

    @property
    def only_value(self) -> str | None:
        if self.excludes or len(self.values) != 1:
            return None
        (value,) = self.values
        return value

    def intersection(self, other: "Requirement") -> "Requirement":
        at_least, at_most = _largest(self.at_least, other.at_least), _smallest(self.at_most, other.at_most)
        min_values = _largest(self.min_values, other.min_values)
        if at_least is not None and at_most is not None and at_least > at_most:
            return Requirement(min_values=min_values)
        excludes = self.excludes and other.excludes
        if excludes:
            values = self.values | other.values
        elif self.excludes:
            values = other.values - self.values
        elif other.excludes:
            values = self.values - other.values
        else:
            values = self.values & other.values
        if at_least is not None or at_most is not None:
            values = frozenset(value for value in values if _is_within(value, at_least, at_most))
        if not excludes:
            at_least = at_most = None
        return Requirement(values, excludes, at_least, at_most, min_values)

    def intersects(self, other: "Requirement") -> bool:
        at_least, at_most = _largest(self.at_least, other.at_least), _smallest(self.at_most, other.at_most)
        if at_least is not None and at_most is not None and at_least > at_most:
            return False
        if self.excludes and other.excludes:
            return True
        if self.excludes:
            left = other.values - self.values
        elif other.excludes:
            left = self.values - other.values
        else:
            left = self.values & other.values
        if at_least is None and at_most is None:
            return bool(left)
        return any(_is_within(value, at_least, at_most) for value in left)


ANY = Requirement(excludes=True)
"""The label exists, with whatever value."""
ABSENT = Requirement()


def is_in(*values: str) -> Requirement:
    return Requirement(frozenset(values))


def _is_within(value: str, at_least: int | None, at_most: int | None) -> bool:
    if at_least is None and at_most is None:
        return True
    number = parse_int64(value)
    if number is None:
        return False
    return (at_least is None or number >= at_least) and (at_most is None or number <= at_most)


def _largest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _smallest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def make_requirement(operator: str, values: Iterable[str] = (), min_values: int | None = None) -> Requirement:
    """A requirement as node selectors and NodePools write it; bounds are inclusive from here on."""
    given = tuple(values)
    match operator:
        case "In":
            return Requirement(frozenset(given), min_values=min_values)
        case "NotIn":
            return Requirement(frozenset(given), excludes=True, min_values=min_values)
        case "Exists":
            return Requirement(excludes=True, min_values=min_values)
        case "Gt" | "Gte" | "Lt" | "Lte":
            bound = parse_int64(given[0]) if given else None
            number = bound if bound is not None else 0
            if operator == "Gt" and number == _LARGEST:
                return ABSENT
            if operator in ("Gt", "Gte"):
                at_least = number + (operator == "Gt")
                return Requirement(excludes=True, at_least=at_least, min_values=min_values)
            return Requirement(excludes=True, at_most=number - (operator == "Lt"), min_values=min_values)
        case _:
            return Requirement(min_values=min_values)


class SelectorRequirement(Protocol):
    """What requirements of node selectors and of NodePools have in common."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> list[str] | None: ...


class Requirements(Mapping[str, Requirement]):
    """Requirements by label key; frozen, with a hash."""

    __slots__ = ("_by_key", "_hash")

    def __init__(self, by_key: Mapping[str, Requirement] | None = None) -> None:
        self._by_key = dict(by_key or {})
        self._hash = hash(frozenset(self._by_key.items()))

    def __getitem__(self, key: str) -> Requirement:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirements) and self._hash == other._hash and self._by_key == other._by_key

    def __repr__(self) -> str:
        return f"Requirements({self._by_key!r})"

    def allowed(self, key: str) -> Requirement:
        """What a label may be; anything, if nothing is said of it."""
        return self._by_key.get(key, ANY)

    def merged(self, other: Mapping[str, Requirement]) -> "Requirements":
        """Require both."""
        by_key = dict(self._by_key)
        for key, requirement in other.items():
            mine = by_key.get(key)
            by_key[key] = requirement if mine is None else requirement.intersection(mine)
        return Requirements(by_key)

    def without(self, *keys: str) -> "Requirements":
        return Requirements({key: value for key, value in self._by_key.items() if key not in keys})

    def replaced(self, key: str, requirement: Requirement) -> "Requirements":
        return Requirements({**self._by_key, key: requirement})

    def overlaps(self, other: Mapping[str, Requirement]) -> bool:
        """Tell whether every key that both name has a value in common; two that may both be absent do, too."""
        mine = self._by_key
        for key, incoming in other.items():
            existing = mine.get(key)
            if existing is None or existing.intersects(incoming):
                continue
            if not (incoming.may_be_absent and existing.may_be_absent):
                return False
        return True

    def accepts(self, other: Mapping[str, Requirement], undefined: frozenset[str] = frozenset()) -> bool:
        """Tell whether nodes like these can satisfy `other`.

        A label that is asked for has to be named here, unless it is among those that may be undefined.
        """
        mine = self._by_key
        for key, requirement in other.items():
            if key not in mine and key not in undefined and not requirement.may_be_absent:
                return False
        return self.overlaps(other)

    @property
    def with_min_values(self) -> list[tuple[str, int]]:
        return [(key, found.min_values) for key, found in self._by_key.items() if found.min_values is not None]

    def relaxed(self, counts: Mapping[str, int]) -> "Requirements":
        """Lower minValues to what there is."""
        lowered = {key: replace(self._by_key[key], min_values=count) for key, count in counts.items()}
        return Requirements({**self._by_key, **lowered})


def collect(found: Iterable[tuple[str, Requirement]]) -> Requirements:
    """Intersect requirements, several of which may be on one key; deprecated keys are translated."""
    by_key: dict[str, Requirement] = {}
    for key, requirement in found:
        key = current_name(key)
        mine = by_key.get(key)
        by_key[key] = requirement if mine is None else requirement.intersection(mine)
    return Requirements(by_key)


def from_labels(labels: Mapping[str, str] | None) -> Requirements:
    return collect((key, is_in(value)) for key, value in (labels or {}).items())


def from_selector(expressions: Iterable[SelectorRequirement] | None) -> Requirements:
    return collect(
        (one.key, make_requirement(one.operator, one.values or (), getattr(one, "min_values", None)))
        for one in expressions or ()
    )
