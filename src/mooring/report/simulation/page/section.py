"""What a part of the page is made of, and how its numbers are written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.report.simulation.results import Floats, Run
from mooring.report.simulation.texts import TextTable

Number = float | None
"""None: there is nothing at that point."""


@dataclass(frozen=True)
class Section:
    """One part of the page: what sections.js draws, and the same as tables for whoever does not see it drawn."""

    name: str
    """Of the element, and in sections.js of what draws it."""
    title: str
    says: str
    """What one sees."""
    data: object
    """None: there is nothing to draw, and a note says why."""
    tables: tuple[TextTable, ...] = ()
    notes: tuple[str, ...] = ()
    """What is left out, and how."""


@dataclass(frozen=True)
class TimeUnit:
    """What times are shown in."""

    name: str
    seconds: float

    def of(self, seconds: Floats) -> list[Number]:
        return numbers(seconds / self.seconds, 6)


def time_unit(horizon: float) -> TimeUnit:
    """The unit in which a horizon is a number that one can imagine."""
    if horizon <= 3 * 3600:
        return TimeUnit("minutes", 60.0)
    return TimeUnit("hours", 3600.0) if horizon <= 4 * 86400 else TimeUnit("days", 86400.0)


def by_policy(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each policy: one a seed."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.policy, []).append(run)
    return found


def first_runs(runs: Iterable[Run]) -> list[Run]:
    """The first run of each policy, for what cannot be averaged."""
    return [of_policy[0] for of_policy in by_policy(runs).values()]


def seed_note(runs: Sequence[Run]) -> tuple[str, ...]:
    """That only the first seed is drawn, if there are more."""
    seeds = list(dict.fromkeys(run.seed for run in runs))
    return (f"Drawn for seed {seeds[0]}, the first of {len(seeds)}.",) if len(seeds) > 1 else ()


MOST_QUEUES = 8
"""That have a colour of their own."""


@dataclass(frozen=True)
class Queues:
    """The queues in the order of their colours, which are the same all over the page."""

    own: tuple[str, ...]
    """Those with a colour of their own."""
    others: tuple[str, ...] = ()
    """Those that share the last one."""

    @property
    def names(self) -> list[str]:
        return [*self.own, f"{len(self.others)} other queues"] if self.others else list(self.own)

    def number(self, queue: str) -> int:
        return self.own.index(queue) if queue in self.own else len(self.own)


def queues_by_weight(runs: Sequence[Run]) -> Queues:
    """Queues by their dominant shares over time under all policies, the largest first."""
    weights: dict[str, float] = {}
    for run in runs:
        names, which = np.unique(run.queues.queue.astype(str), return_inverse=True)
        sums = np.bincount(which, weights=run.queues.dominant_share, minlength=len(names))
        for name, weight in zip(names.tolist(), sums.tolist(), strict=True):
            weights[name] = weights.get(name, 0.0) + weight
    order = sorted(weights, key=lambda queue: (-weights[queue], queue))
    # One more than there are colours gets the last colour, under its own name.
    own = len(order) if len(order) <= MOST_QUEUES + 1 else MOST_QUEUES
    return Queues(tuple(order[:own]), tuple(order[own:]))


def numbers(values: Floats, digits: int = 4) -> list[Number]:
    """Values with so many significant digits, as JSON can have them.

    >>> numbers(np.array([12.34567, float("nan"), 0.0]))
    [12.35, None, 0.0]
    """
    return [None if value != value else float(f"{value:.{digits}g}") for value in values.tolist()]


def mean(values: Floats) -> float:
    """The mean of those that there are; nan if there are none."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else float("nan")
