"""How full the cluster was over time, by resource and GPU model, a line for each policy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mooring.report.simulation.page.section import Number, Section, TimeUnit, by_policy, mean, numbers
from mooring.report.simulation.results import Floats, Run
from mooring.report.simulation.texts import TextTable, percent_text

MOST_POINTS = 600
"""Of a line; a chart has not many more columns."""
MOST_PANELS = 16
GIB = float(1 << 30)


class Moments:
    """The moments at which runs were sampled, and what is drawn of them: if they are many, means of neighbours."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.all: Floats = max((run.samples.time for run in runs), key=len)
        self.each = max(1, -(-len(self.all) // MOST_POINTS))

    def place(self, time: Floats, values: Floats) -> Floats:
        """Values by their times; nan at moments that have none."""
        placed = np.full(len(self.all), np.nan)
        placed[np.searchsorted(self.all, time)] = values
        return placed

    def thin(self, values: Floats) -> Floats:
        """Means of so many values each that few enough are left; nan only where there are nothing but nan."""
        groups = -(-len(values) // self.each)
        padded = np.full(groups * self.each, np.nan)
        padded[: len(values)] = values
        return _means(padded.reshape(groups, self.each), axis=1)

    def axis(self, unit: TimeUnit) -> list[Number]:
        return unit.of(self.thin(self.all))

    @property
    def notes(self) -> tuple[str, ...]:
        if self.each == 1:
            return ()
        return (f"Each point is the mean of {self.each} samples: there are {len(self.all):,} of them.",)


def _means(values: Floats, axis: int) -> Floats:
    there = ~np.isnan(values)
    found = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    return np.where(found, sums / np.maximum(found, 1), np.nan)


@dataclass(frozen=True)
class Series:
    """One policy in one chart: the mean of its seeds, and how far they lie apart if there are several."""

    policy: int
    y: list[Number]
    low: list[Number]
    high: list[Number]
    amount: list[Number]
    """What is behind a share: the amount and the capacity; empty where y is an amount itself."""
    capacity: list[Number]


@dataclass(frozen=True)
class Panel:
    """One chart."""

    title: str
    axis: str
    """The title of its y axis, with the unit."""
    unit: str
    is_share: bool
    label: str
    """What somebody is told who cannot see it."""
    lines: list[Series]


@dataclass(frozen=True)
class OverTime:
    unit: str
    x: list[Number]
    panels: list[Panel]


def allocation(runs: Sequence[Run], unit: TimeUnit) -> Section:
    """How much of each resource was allocated over time."""
    says = "Requested by pods on nodes, as a share of what nodes that were up had."
    moments, kinds = Moments(runs), _kinds(runs)
    if not kinds:
        return Section("allocation", "How full the cluster was", says, None, notes=("There were no nodes.",))
    panels = [_allocation_panel(runs, moments, resource, model) for resource, model in kinds[:MOST_PANELS]]
    notes = moments.notes + band_note(runs)
    if len(kinds) > MOST_PANELS:
        notes += (f"{len(kinds) - MOST_PANELS} more resources are in the table alone.",)
    return Section(
        "allocation",
        "How full the cluster was",
        says,
        OverTime(unit.name, moments.axis(unit), panels),
        (_allocation_table(runs, kinds),),
        notes,
    )


def _kinds(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Resources and GPU models of which there ever was any: GPUs first, then by model, then the others."""
    found: dict[tuple[str, str], float] = {}
    for run in runs:
        for resource, model, total in zip(run.totals.resource, run.totals.model, run.totals.capacity, strict=True):
            if total > 0:
                found[resource, model] = max(total, found.get((resource, model), 0.0))
    models = [kind for kind in found if kind[0] == "gpu" and kind[1]]
    if len(models) == 1 and found[models[0]] == found.get(("gpu", "")):
        found.pop(models[0])
    order = ["gpu", "cpu", "memory"]
    return sorted(
        found,
        key=lambda kind: (order.index(kind[0]) if kind[0] in order else 3, kind[0], bool(kind[1]), -found[kind], kind),
    )


def _kind_text(resource: str, model: str) -> str:
    names = {"gpu": "GPUs", "cpu": "CPUs", "memory": "Memory"}
    return f"{model} GPUs" if model else names.get(resource, resource)


def _allocation_panel(runs: Sequence[Run], moments: Moments, resource: str, model: str) -> Panel:
    name = _kind_text(resource, model)
    unit = {"gpu": "GPUs", "cpu": "CPUs", "memory": "GiB"}.get(resource, resource)
    size = GIB if resource == "memory" else 1.0
    lines, told = [], []
    for number, (policy, of_policy) in enumerate(by_policy(runs).items()):
        amounts, capacities = (
            np.stack([moments.place(*_amounts(run, resource, model, which)) for run in of_policy])
            for which in ("allocated", "capacity")
        )
        shares = np.divide(amounts, capacities, out=np.full(amounts.shape, np.nan), where=capacities > 0)
        lines.append(line_of_seeds(number, moments, 100 * shares, amounts / size, capacities / size))
        told.append(f"{policy} {percent_text(_total_share(of_policy, resource, model, 'allocated'))}")
    label = f"{name} allocated over time. On average: {', '.join(told)}."
    return Panel(name, "allocated (%)", unit, True, label, lines)


def _amounts(run: Run, resource: str, model: str, which: str) -> tuple[Floats, Floats]:
    table = run.amounts
    rows = (table.resource == resource) & (table.model == model)
    return table.time[rows], table.columns()[which][rows].astype(np.float64)


def line_of_seeds(
    policy: int, moments: Moments, values: Floats, amounts: Floats | None = None, capacities: Floats | None = None
) -> Series:
    """Of values by seed and moment, and of what is behind them."""
    thin = np.stack([moments.thin(of_seed) for of_seed in values])
    several = len(thin) > 1
    low, high = np.where(np.isnan(thin), np.inf, thin).min(0), np.where(np.isnan(thin), -np.inf, thin).max(0)
    return Series(
        policy,
        numbers(means_of_seeds(thin)),
        numbers(np.where(np.isinf(low), np.nan, low)) if several else [],
        numbers(np.where(np.isinf(high), np.nan, high)) if several else [],
        [] if amounts is None else numbers(moments.thin(means_of_seeds(amounts))),
        [] if capacities is None else numbers(moments.thin(means_of_seeds(capacities))),
    )


def _total_share(runs: Sequence[Run], resource: str, model: str, which: str) -> float:
    """Of all amount-seconds that there were, those allocated or used; the mean of the seeds."""
    shares = []
    for run in runs:
        totals = run.totals
        kinds = list(zip(totals.resource, totals.model, strict=True))
        if (resource, model) in kinds and totals.capacity[row := kinds.index((resource, model))] > 0:
            shares.append(getattr(totals, which)[row] / totals.capacity[row])
    return mean(np.array(shares, np.float64))


def _allocation_table(runs: Sequence[Run], kinds: Sequence[tuple[str, str]]) -> TextTable:
    policies = by_policy(runs)
    rows = [
        (
            f"{_kind_text(*kind)}, {which}",
            *(percent_text(_total_share(of_policy, *kind, which)) for of_policy in policies.values()),
        )
        for kind in kinds
        for which in ("allocated", "used")
    ]
    return TextTable(
        "Mean over time; used is what belongs to containers that run", ("Resource", *policies), tuple(rows)
    )


def band_note(runs: Sequence[Run]) -> tuple[str, ...]:
    seeds = len({run.seed for run in runs})
    return (f"Lines are means of {seeds} seeds, bands reach from the least of them to the most.",) if seeds > 1 else ()


def means_of_seeds(values: Floats) -> Floats:
    """By moment, of values by seed and moment."""
    return _means(values, axis=0)
