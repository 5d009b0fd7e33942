"""How full a node should be: kube-scheduler's three scoring strategies, in whole numbers."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE, Scores
from mooring.model.api.meta import KubeObject
from mooring.model.values.requests import CPU, MEMORY
from mooring.state.rows import whole_quotient

MAX_SHAPE_SCORE = 10
Problem = tuple[str, str, str]
"""(field, expected, found)"""


class ResourceSpec(KubeObject, forbid_unknown_fields=True):
    name: str
    weight: int = 1


class UtilizationPoint(KubeObject, forbid_unknown_fields=True):
    utilization: int = 0
    score: int = 0


class RequestedToCapacityRatio(KubeObject, forbid_unknown_fields=True):
    shape: list[UtilizationPoint] = []


class ScoringStrategy(KubeObject, forbid_unknown_fields=True):
    type: str = "LeastAllocated"
    resources: list[ResourceSpec] = msgspec.field(
        default_factory=lambda: [ResourceSpec(name=CPU), ResourceSpec(name=MEMORY)]
    )
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None

    def validate(self, field: str) -> Iterator[Problem]:
        if self.type not in STRATEGIES:
            yield f"{field}.type", f"one of {', '.join(STRATEGIES)}", f'"{self.type}"'
        yield from validate_weights(self.resources, f"{field}.resources", highest=100)
        if self.type == "RequestedToCapacityRatio":
            ratio = self.requested_to_capacity_ratio
            if ratio is None:
                yield f"{field}.requestedToCapacityRatio", "a shape, because the type is that", "none"
            else:
                yield from validate_shape(ratio.shape, f"{field}.requestedToCapacityRatio.shape")


def validate_weights(resources: Sequence[ResourceSpec], field: str, *, highest: int) -> Iterator[Problem]:
    seen = set[str]()
    for index, resource in enumerate(resources):
        at = f"{field}[{index}]"
        if not resource.name:
            yield f"{at}.name", "the name of a resource", '""'
        if resource.name in seen:
            yield f"{at}.name", "each resource once", f'"{resource.name}" again'
        seen.add(resource.name)
        if not 1 <= resource.weight <= highest:
            expected = f"a whole number from 1 to {highest}" if highest > 1 else "1, the only weight that is allowed"
            yield f"{at}.weight", expected, str(resource.weight)


def validate_shape(shape: Sequence[UtilizationPoint], field: str) -> Iterator[Problem]:
    if not shape:
        yield field, "at least one point", "none"
    for index, point in enumerate(shape):
        at = f"{field}[{index}]"
        if not 0 <= point.utilization <= 100:
            yield f"{at}.utilization", "a whole number from 0 to 100", str(point.utilization)
        if index and point.utilization <= shape[index - 1].utilization:
            expected = f"more than {shape[index - 1].utilization}, the point before"
            yield f"{at}.utilization", expected, str(point.utilization)
        if not 0 <= point.score <= MAX_SHAPE_SCORE:
            yield f"{at}.score", f"a whole number from 0 to {MAX_SHAPE_SCORE}", str(point.score)


Numbers = NDArray[Any]
"""Whole numbers, as integers or as floats: see NodeRows.stacked."""


class Asked:
    """What a pod asks of some resources: names, and amounts; as one column if somebody calculates with them."""

    def __init__(self, amounts: Mapping[str, int]) -> None:
        self.names = tuple(amounts)
        self.quantities = tuple(amounts.values())

    @cached_property
    def amounts(self) -> NDArray[np.int64]:
        return np.array(self.quantities, np.int64).reshape(-1, 1)

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        return self.amounts.astype(np.float64)

    def like(self, others: Numbers) -> Numbers:
        """The amounts as the kind of numbers that others are: to mix them costs a conversion."""
        return self.floats if others.dtype == np.float64 else self.amounts


# Arrays of one number each, of the kind that they are used with: NumPy would convert a plain number at every call.
_WHOLE = (np.array(0, np.int64), np.array(MAX_SCORE, np.int64))
_FLOAT = (np.array(0.0), np.array(float(MAX_SCORE)))


def least_allocated(spare: Numbers, capacity: Numbers) -> Numbers:
    """The percentage that is left; `spare` is below 0 where more is requested than there is, which counts as full."""
    nothing, most = _FLOAT if spare.dtype == np.float64 else _WHOLE
    score = whole_quotient(spare * most, capacity)
    np.maximum(score, nothing, out=score)
    return score


def most_allocated(spare: Numbers, capacity: Numbers) -> Numbers:
    """The percentage that is taken."""
    nothing, most = _FLOAT if spare.dtype == np.float64 else _WHOLE
    return whole_quotient((capacity - np.maximum(spare, nothing)) * most, capacity)


class ShapeFunction:
    """A piecewise linear function through whole points, with divisions that truncate toward zero."""

    def __init__(self, points: Sequence[UtilizationPoint]) -> None:
        factor = MAX_SCORE // MAX_SHAPE_SCORE
        # Utilisation is a whole percentage, so the function is a table of 101 values.
        self._table = np.array([self._at(points, factor, u) for u in range(101)], np.int64)

    @staticmethod
    def _at(points: Sequence[UtilizationPoint], factor: int, utilization: int) -> int:
        for index, point in enumerate(points):
            if utilization <= point.utilization:
                if index == 0:
                    return point.score * factor
                before = points[index - 1]
                rise = (point.score - before.score) * factor * (utilization - before.utilization)
                run = point.utilization - before.utilization
                return before.score * factor + (abs(rise) // run if rise >= 0 else -(abs(rise) // run))
        return points[-1].score * factor

    def __call__(self, utilization: Numbers) -> Scores:
        return self._table[utilization.astype(np.intp)]

    def of_ratio(self, requested: Numbers, capacity: Numbers) -> Scores:
        over = (capacity == 0) | (requested > capacity)
        return self(np.where(over, 100, whole_quotient(requested * 100, np.where(over, 1, capacity))))


def round_half_up(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round non-negative numbers as Go's math.Round does: half away from zero."""
    whole = np.trunc(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)


STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
