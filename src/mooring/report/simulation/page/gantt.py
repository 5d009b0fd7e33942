"""Jobs as bars: when each waited, when it was on nodes, when it lost them; the same jobs under each policy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.report.simulation.page.section import Number, Queues, Section, TimeUnit, first_runs, numbers, seed_note
from mooring.report.simulation.results import EVICTED, NODE_LOST, Floats, Run
from mooring.report.simulation.texts import TextTable, count_text, duration_text

SAYS = (
    "A row for each job, in the order of arrival: thin while it waits, thick while it has nodes, in the colour of its "
    "queue; a cross where pods lost their node. The same rows under each policy."
)
MOST_JOBS = 150
"""Rows that a screen has room for."""


@dataclass(frozen=True)
class Bars:
    """Pieces of rows, from x0 to x1."""

    row: list[int]
    x0: list[Number]
    x1: list[Number]


@dataclass(frozen=True)
class Timeline:
    """The jobs of one policy."""

    policy: int
    label: str
    ran: Bars
    waited: Bars
    lost_row: list[int]
    """Where pods were evicted, or lost with their node."""
    lost_x: list[Number]
    told: list[str]
    """By row, what became of it."""


@dataclass(frozen=True)
class Gantt:
    unit: str
    until: Number
    jobs: list[str]
    queue_of: list[int]
    """By row, which of the queues."""
    queues: list[str]
    timelines: list[Timeline]


def gantt(runs: Sequence[Run], unit: TimeUnit, queues: Queues) -> Section:
    """When each of some jobs waited and ran."""
    drawn = first_runs(runs)
    first = drawn[0]
    if not len(first.jobs):
        return Section("gantt", "Jobs from submission to end", SAYS, None, notes=("There were no jobs.",))
    rows = np.unique(np.linspace(0, len(first.jobs) - 1, min(len(first.jobs), MOST_JOBS)).round().astype(np.int64))
    names = [str(name) for name in first.jobs.job[rows]]
    row_of = {name: row for row, name in enumerate(names)}
    chosen = [{index: row_of[name] for index, name in enumerate(run.jobs.job) if name in row_of} for run in drawn]
    timelines = [_timeline(number, run, chosen[number], len(names), unit) for number, run in enumerate(drawn)]
    notes = seed_note(runs)
    if len(names) < len(first.jobs):
        notes += (
            f"{len(names)} of {len(first.jobs):,} jobs, taken evenly in the order of their arrival: "
            f"about one in {len(first.jobs) / len(names):,.0f}.",
        )
    return Section(
        "gantt",
        "Jobs from submission to end",
        SAYS,
        Gantt(
            unit.name,
            unit.of(np.array([max(run.horizon for run in drawn)]))[0],
            names,
            [queues.number(str(queue)) for queue in first.jobs.queue[rows]],
            queues.names,
            timelines,
        ),
        tuple(_table(run, found) for run, found in zip(drawn, chosen, strict=True)),
        notes,
    )


def _timeline(number: int, run: Run, jobs: Mapping[int, int], rows: int, unit: TimeUnit) -> Timeline:
    """Of the jobs of a run that are drawn, each with its row."""
    stays = np.flatnonzero(np.isin(run.stays.job, np.fromiter(jobs, np.int64)))
    by_job: dict[int, list[tuple[float, float]]] = {index: [] for index in jobs}
    lost: list[tuple[int, float]] = []
    for stay in stays.tolist():
        index, ended = int(run.stays.job[stay]), float(run.stays.ended[stay])
        by_job[index].append((float(run.stays.bound[stay]), run.horizon if ended != ended else ended))
        if run.stays.outcome[stay] in (EVICTED, NODE_LOST):
            lost.append((jobs[index], ended))
    ran, waited, told = [], [], [""] * rows
    for index, row in jobs.items():
        on_nodes = merged(by_job[index])
        ran += [(row, *piece) for piece in on_nodes]
        waited += [(row, *piece) for piece in _waits(run, index, on_nodes)]
        told[row] = _story(run, index)
    lost = sorted(set(lost))
    lost_x = numbers(np.array([at for _, at in lost], np.float64) / unit.seconds, 6)
    label = f"{run.policy}: {len(jobs)} jobs as bars over time, with {len(lost)} losses of nodes."
    return Timeline(number, label, _bars(ran, unit), _bars(waited, unit), [row for row, _ in lost], lost_x, told)


def merged(pieces: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Pieces of time without overlaps.

    >>> merged([(5, 7), (0, 2), (1, 3)])
    [(0, 3), (5, 7)]
    """
    found: list[tuple[float, float]] = []
    for begin, end in sorted(pieces):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _waits(run: Run, index: int, on_nodes: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The times between submission and end without nodes."""
    ended = float(run.jobs.ended[index])
    begins = [float(run.jobs.submitted[index]), *(end for _, end in on_nodes)]
    ends = [*(begin for begin, _ in on_nodes), run.horizon if ended != ended else ended]
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if end > begin]


def _story(run: Run, index: int) -> str:
    jobs = run.jobs
    waited = jobs.started[index] - jobs.submitted[index]
    words = [f"{_counted(jobs.pods[index], 'pod')}, {_counted(jobs.gpus[index], 'GPU')}", f"{jobs.state[index]}"]
    words.append("never started" if waited != waited else f"waited {duration_text(waited)}")
    if jobs.evictions[index]:
        words.append(_counted(jobs.evictions[index], "eviction"))
    return ", ".join(words)


def _counted(number: float, noun: str) -> str:
    return f"{count_text(number)} {noun}{'' if number == 1 else 's'}"


def _bars(pieces: Sequence[tuple[int, float, float]], unit: TimeUnit) -> Bars:
    times: Floats = np.array([piece[1:] for piece in pieces], np.float64).reshape(-1, 2) / unit.seconds
    return Bars([row for row, _, _ in pieces], numbers(times[:, 0], 6), numbers(times[:, 1], 6))


def _table(run: Run, chosen: Iterable[int]) -> TextTable:
    jobs = run.jobs
    rows = []
    for index in chosen:
        times = map(duration_text, (jobs.submitted[index], jobs.started[index], jobs.ended[index]))
        state, evictions = str(jobs.state[index]), f"{jobs.evictions[index]:,}"
        rows.append((str(jobs.job[index]), str(jobs.queue[index]), *times, state, evictions))
    headers = ("Job", "Queue", "Submitted", "Started", "Ended", "State", "Evictions")
    return TextTable(f"{run.policy}: times since the start", headers, tuple(rows))
