"""What the LimitRanges of a namespace mean for right-sizing: one set of bounds for containers, one for pods."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mooring.model.quotas.objects import LimitRange
from mooring.model.rightsizing.amounts import CONTROLLED, Amounts, read_amounts


@dataclass(slots=True)
class Bounds:
    """Minimum, maximum and default limit; None where no LimitRange names any."""

    min: Amounts | None = None
    max: Amounts | None = None
    default: Amounts = field(default_factory=dict)


def bounds_of(limit_ranges: Iterable[LimitRange], kind: str) -> Bounds | None:
    """The strictest bounds of a kind (`Container` or `Pod`); None where there are none."""
    bounds, has_any = Bounds(), False
    for limit_range in limit_ranges:
        for item in limit_range.spec.limits:
            if item.type != kind or (item.max is None and item.min is None and item.default is None):
                continue
            has_any = True
            if item.default is not None:
                bounds.default = read_amounts(item.default)
            if item.max is not None:
                bounds.max = _strictest(bounds.max, read_amounts(item.max), min)
            if item.min is not None:
                bounds.min = _strictest(bounds.min, read_amounts(item.min), max)
    return bounds if has_any else None


def _strictest(before: Amounts | None, new: Amounts, pick: Callable[[int, int], int]) -> Amounts:
    if before is None:
        return dict(new)
    merged = dict(before)
    for name in CONTROLLED:
        if name in new:
            merged[name] = pick(merged[name], new[name]) if name in merged else new[name]
    return merged
