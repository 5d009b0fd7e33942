"""What waited, what ran and what that took, over time, a line for each policy."""

from collections.abc import Sequence

import numpy as np

from mooring.report.simulation.metrics import over_time
from mooring.report.simulation.page.over_time import (
    Moments,
    OverTime,
    Panel,
    band_note,
    line_of_seeds,
    means_of_seeds,
)
from mooring.report.simulation.page.section import Section, TimeUnit, by_policy
from mooring.report.simulation.results import Floats, Run
from mooring.report.simulation.texts import TextTable, count_text

MEASURES = {
    "jobs_waiting": ("Jobs waiting", "jobs waiting", "jobs"),
    "jobs_running": ("Jobs running", "jobs running", "jobs"),
    "nodes_used": ("Nodes in use", "nodes in use", "nodes"),
    "nodes_up": ("Nodes that were up", "nodes up", "nodes"),
    "fragmentation": ("Idle GPUs of no use to typical pods", "fragmented GPUs", "GPUs"),
    "cost": ("Cost so far", "cost", ""),
}
"""By column of Samples: the title, the y axis, and the unit."""
SAYS = (
    "Jobs that waited and ran at each moment, the nodes that they were on, and GPUs that idled in pieces too small to "
    "be of use."
)


def backlog(runs: Sequence[Run], unit: TimeUnit) -> Section:
    """How many jobs waited and ran, how many nodes that took, and what it cost."""
    moments = Moments(runs)
    values = {column: [_by_seed(found, moments, column) for found in by_policy(runs).values()] for column in MEASURES}
    columns = [column for column, found in values.items() if _tells_something(column, found)]
    panels = [_panel(list(by_policy(runs)), moments, column, values[column]) for column in columns]
    rows = [
        (MEASURES[column][0], *(_mean_and_most(moments, each) for each in values[column]))
        for column in columns
        if column != "cost"
    ]
    return Section(
        "backlog",
        "What waited, what ran, and what it took",
        SAYS,
        OverTime(unit.name, moments.axis(unit), panels) if panels else None,
        (TextTable("Means over time and maxima", ("", *by_policy(runs)), tuple(rows)),),
        moments.notes + band_note(runs) if panels else ("Nothing ran, and nothing waited.",),
    )


def _by_seed(runs: Sequence[Run], moments: Moments, column: str) -> Floats:
    """By seed and moment."""
    return np.stack([moments.place(run.samples.time, run.samples.columns()[column].astype(np.float64)) for run in runs])


def _tells_something(column: str, values: Sequence[Floats]) -> bool:
    """Whether there was any of it; of nodes, if their number changed; of costs, if policies do not cost the same."""
    known = [np.nan_to_num(each) for each in values]
    if column == "nodes_up":
        return any(bool((each != each[:, :1]).any()) for each in known)
    if column == "cost":
        ends = [float(each[:, -1].mean()) for each in known]
        return max(ends) > 1.005 * min(ends)
    return any(bool(each.any()) for each in known)


def _panel(policies: Sequence[str], moments: Moments, column: str, values: Sequence[Floats]) -> Panel:
    title, axis, unit = MEASURES[column]
    lines = [line_of_seeds(number, moments, of_policy) for number, of_policy in enumerate(values)]
    told = [f"{name} {_mean_and_most(moments, each)}" for name, each in zip(policies, values, strict=True)]
    return Panel(title, axis, unit, False, f"{title}, means over time: {'; '.join(told)}.", lines)


def _mean_and_most(moments: Moments, values: Floats) -> str:
    means = means_of_seeds(values)
    most = float(np.nan_to_num(means).max(initial=0.0))
    return f"{count_text(over_time(moments.all, np.nan_to_num(means)))}, at most {count_text(most)}"
