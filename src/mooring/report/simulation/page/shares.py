"""Who had the cluster: the shares of queues, stacked over time, a chart for each policy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mooring.report.simulation.page.over_time import Moments
from mooring.report.simulation.page.section import (
    Number,
    Queues,
    Section,
    TimeUnit,
    first_runs,
    mean,
    numbers,
    seed_note,
)
from mooring.report.simulation.results import Floats, Run
from mooring.report.simulation.texts import TextTable, percent_text

COLUMNS = {"gpu": "gpus", "cpu": "cpus", "memory": "memory"}
"""Of QueueAmounts, by resource."""
SAYS = "What pods of each queue requested, as a share of what nodes that were up had; queues on top of each other."
NAMES = {"gpu": "GPUs", "cpu": "CPUs", "memory": "memory"}


@dataclass(frozen=True)
class QueueShares:
    policy: int
    label: str
    shares: list[list[list[Number]]]
    """By resource, queue and moment: percent of what there was of the resource."""


@dataclass(frozen=True)
class Shares:
    unit: str
    x: list[Number]
    resources: list[str]
    queues: list[str]
    panels: list[QueueShares]


def shares(runs: Sequence[Run], unit: TimeUnit, queues: Queues) -> Section:
    """The share of the cluster that each queue had over time."""
    drawn = first_runs(runs)
    moments = Moments(drawn)
    resources = [name for name in COLUMNS if any(_has(run, name) for run in drawn)]
    if not resources or not queues.names:
        return Section("shares", "Who had the cluster", SAYS, None, notes=("No queue had anything.",))
    matrices = [{name: _shares_by_queue(run, moments, name) for name in resources} for run in drawn]
    panels = [
        QueueShares(
            number,
            _label(run.policy, by_resource, resources, queues.own),
            [_series(by_resource[name], moments, queues) for name in resources],
        )
        for number, (run, by_resource) in enumerate(zip(drawn, matrices, strict=True))
    ]
    notes = moments.notes + seed_note(runs)
    if queues.others:
        notes += (
            f"The {len(queues.others)} queues with the smallest shares are drawn as one, and told apart in the table.",
        )
    return Section(
        "shares",
        "Who had the cluster",
        SAYS,
        Shares(unit.name, moments.axis(unit), [NAMES[name] for name in resources], queues.names, panels),
        tuple(_table(drawn, matrices, (*queues.own, *queues.others), name) for name in resources),
        notes,
    )


def _has(run: Run, resource: str) -> bool:
    rows = (run.amounts.resource == resource) & (run.amounts.model == "")
    return bool((run.amounts.capacity[rows] > 0).any())


def _shares_by_queue(run: Run, moments: Moments, resource: str) -> dict[str, Floats]:
    """Of a resource, by queue and moment; 0 before a queue is heard of."""
    rows = (run.amounts.resource == resource) & (run.amounts.model == "")
    capacity = moments.place(run.amounts.time[rows], run.amounts.capacity[rows])
    amounts = run.queues.columns()[COLUMNS[resource]].astype(np.float64)
    found = {}
    for queue in dict.fromkeys(run.queues.queue.tolist()):
        of_queue = run.queues.queue == queue
        placed = np.nan_to_num(moments.place(run.queues.time[of_queue], amounts[of_queue]))
        found[queue] = np.divide(placed, capacity, out=np.zeros_like(placed), where=capacity > 0)
    return found


def _series(by_queue: dict[str, Floats], moments: Moments, queues: Queues) -> list[list[Number]]:
    nothing = np.zeros(len(moments.all))
    series = [by_queue.get(queue, nothing) for queue in queues.own]
    if queues.others:
        series.append(np.sum([by_queue.get(queue, nothing) for queue in queues.others], axis=0))
    return [numbers(100 * moments.thin(values)) for values in series]


def _label(
    policy: str, by_resource: dict[str, dict[str, Floats]], resources: Sequence[str], queues: Sequence[str]
) -> str:
    by_queue = by_resource[resources[0]]
    told = (f"{queue} {percent_text(mean(by_queue.get(queue, np.zeros(1))))}" for queue in queues)
    return f"{policy}: shares of {NAMES[resources[0]]} by queue over time. On average: {', '.join(told)}."


def _table(
    runs: Sequence[Run], matrices: Sequence[dict[str, dict[str, Floats]]], queues: Sequence[str], resource: str
) -> TextTable:
    nothing = np.zeros(1)
    rows = [(queue, *(percent_text(mean(each[resource].get(queue, nothing))) for each in matrices)) for queue in queues]
    return TextTable(f"Mean share of {NAMES[resource]} by queue", ("Queue", *(run.policy for run in runs)), tuple(rows))
