"""How long jobs waited and took, as distributions: of all jobs, and by queue, size and priority."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mooring.report.simulation.metrics import Times, completion_times, queueing_times, spread
from mooring.report.simulation.page.section import Number, Section, by_policy, numbers
from mooring.report.simulation.results import SIZE_CLASSES, Run
from mooring.report.simulation.texts import TextTable, at_least, duration_text

MOST_STEPS = 250
"""Of a curve; one that has more cannot be told from it."""
MOST_GROUPS = 10
SHORTEST = 1.0
"""Second: what is shorter stands at the left end of a logarithmic axis."""
SAYS = (
    "A curve further to the left and higher is better: it says how many of all jobs had started (or finished) within a "
    "time. One that stays under 100 % is of a policy under which some jobs did not by the end. In figures these jobs "
    "count with the time until then, which is the least that theirs will be."
)
COLUMNS = {"queue": "queue", "GPUs": "size_class", "priority": "priority"}
"""Of Jobs, by what it says."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Curve:
    """How many percent of all jobs had got so far within so many seconds."""

    policy: int
    seconds: list[Number]
    percent: list[Number]


@dataclass(frozen=True)
class Distribution:
    title: str
    axis: str
    label: str
    curves: list[Curve]


@dataclass(frozen=True)
class Box:
    """The waiting times of some jobs of one policy: seconds at the quantiles, empty if there are none.

    A job that never started counts with the time until the end.
    """

    jobs: int
    started: int
    quantiles: list[Number]


@dataclass(frozen=True)
class Groups:
    """Waiting times by what jobs have in common."""

    title: str
    label: str
    names: list[str]
    boxes: list[list[Box]]
    """By policy and group."""


@dataclass(frozen=True)
class Waiting:
    distributions: list[Distribution]
    groups: list[Groups]


def waiting(runs: Sequence[Run]) -> Section:
    """Distributions of the times that jobs waited, and took from submission to end; of all seeds together."""
    if not any(len(run.jobs) for run in runs):
        return Section("waiting", "How long jobs waited", SAYS, None, notes=("There were no jobs.",))
    policies = by_policy(runs)
    waited = [joined([queueing_times(run) for run in found]) for found in policies.values()]
    took = [joined([completion_times(run) for run in found]) for found in policies.values()]
    names = list(policies)
    distributions = [
        _distribution("Waiting time", "jobs that started within that time (%)", names, waited),
        _distribution("Completion time", "jobs that finished within that time (%)", names, took),
    ]
    groups = [_groups(runs, waited, title, column) for title, column in COLUMNS.items()]
    compared = [found for found, _ in groups if len(found.names) > 1]
    notes: tuple[str, ...] = ("Times under a second are drawn as one second.",)
    cut = [found.title for found, total in groups if total > MOST_GROUPS]
    if cut:
        notes += (f"By {' and '.join(cut)}: the {MOST_GROUPS} with the most jobs.",)
    return Section(
        "waiting",
        "How long jobs waited",
        SAYS,
        Waiting(distributions, compared),
        (
            _quantiles_table("Waiting time", names, waited),
            _quantiles_table("Completion time", names, took),
            *(_group_table(names, found) for found in compared),
        ),
        notes,
    )


def joined(found: Sequence[Times]) -> Times:
    return Times(np.concatenate([each.values for each in found]), np.concatenate([each.is_censored for each in found]))


def _distribution(title: str, axis: str, policies: Sequence[str], times: Sequence[Times]) -> Distribution:
    curves = [_curve(number, of_policy) for number, of_policy in enumerate(times)]
    told = [f"{name} {_told(each, 0.5)}" for name, each in zip(policies, times, strict=True)]
    return Distribution(title, axis, f"{title}, cumulative. Medians: {', '.join(told)}.", curves)


def _curve(policy: int, times: Times) -> Curve:
    there = np.sort(times.values[~times.is_censored])
    if not len(there):
        return Curve(policy, [], [])
    rows = np.unique(np.linspace(0, len(there) - 1, min(len(there), MOST_STEPS)).round().astype(np.int64))
    return Curve(policy, numbers(np.maximum(there[rows], SHORTEST)), numbers(100 * (rows + 1) / len(times.values)))


def _told(times: Times, of: float) -> str:
    """A quantile in words; one that a job sets which was not over is the least possible."""
    order = np.argsort(times.values, kind="stable")
    order = order[~np.isnan(times.values[order])]
    if not len(order):
        return duration_text(float("nan"))
    row = order[max(0, math.ceil(of * len(order)) - 1)]
    text = duration_text(float(times.values[row]))
    return f"≥ {text}" if times.is_censored[row] else text


def _groups(runs: Sequence[Run], waited: Sequence[Times], title: str, column: str) -> tuple[Groups, int]:
    """Boxes by the values of a column of Jobs, and how many values there are."""
    keys = [
        np.concatenate([run.jobs.columns()[column].astype(str) for run in found]) for found in by_policy(runs).values()
    ]
    values, counts = np.unique(np.concatenate(keys), return_counts=True)
    most = sorted(zip(values.tolist(), counts.tolist(), strict=True), key=lambda each: (-each[1], each[0]))
    names = _in_order(column, [name for name, _ in most[:MOST_GROUPS]])
    boxes = [
        [_box(times.of(of_policy == name)) for name in names] for of_policy, times in zip(keys, waited, strict=True)
    ]
    label = f"Waiting times by {title}: quantiles for {', '.join(names)}; the table has the figures."
    return Groups(title, label, names, boxes), len(values)


def _in_order(column: str, names: list[str]) -> list[str]:
    if column == "priority":
        return sorted(names, key=int, reverse=True)
    if column == "size_class":
        order = [text for _, text in SIZE_CLASSES]
        return sorted(names, key=order.index)
    return names


def _box(times: Times) -> Box:
    quantiles = np.quantile(times.values, QUANTILES, method="inverted_cdf") if len(times.values) else np.empty(0)
    return Box(len(times.values), int((~times.is_censored).sum()), numbers(np.maximum(quantiles, SHORTEST)))


def _quantiles_table(title: str, policies: Sequence[str], times: Sequence[Times]) -> TextTable:
    spreads = [spread(each) for each in times]
    means = (at_least(duration_text(each.mean), each.censored) if each.count else "-" for each in spreads)
    rows: list[tuple[str, ...]] = [("mean", *means)]
    for name, of in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("longest", 1.0)):
        rows.append((name, *(_told(each, of) for each in times)))
    rows.append(("open", *(f"{each.censored:,} of {each.count:,}" for each in spreads)))
    return TextTable(title, ("", *policies), tuple(rows))


def _group_table(policies: Sequence[str], found: Groups) -> TextTable:
    rows = []
    for number, name in enumerate(found.names):
        cells = []
        for of_policy in found.boxes:
            box = of_policy[number]
            cells.append(f"{_seconds(box, 2)} / {_seconds(box, 4)} ({box.started:,} of {box.jobs:,})")
        rows.append((name, *cells))
    return TextTable(
        f"Waiting time by {found.title}: median / p95 (jobs that started)",
        (found.title, *policies),
        tuple(rows),
    )


def _seconds(box: Box, which: int) -> str:
    value = box.quantiles[which] if box.quantiles else None
    return "-" if value is None else duration_text(value)
