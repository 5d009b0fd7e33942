"""The cluster as a map: a cell for each node, coloured by how full it is, at moments that a slider goes through."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.report.simulation.page.section import Number, Section, TimeUnit, first_runs, mean, seed_note
from mooring.report.simulation.results import Floats, Ints, Run
from mooring.report.simulation.texts import TextTable, percent_text

MOST_FRAMES = 120
MOST_CELLS = 10_000
"""Of one map; where there are more nodes, a cell stands for several."""
MOST_BYTES = 4_500_000
"""Of all maps together: what makes a page of some 15 MB at most, with everything else."""
FULL = 200
"""A cell's byte counts half percents."""
DOWN = 255
SAYS = (
    "Each cell is a node, and the stronger its colour, the more of its GPUs are allocated (of its CPUs, if it has no "
    "GPUs). Move the slider to see it over time."
)
NO_GPUS = "no GPUs"


@dataclass(frozen=True)
class Block:
    """Cells of one GPU model."""

    title: str
    cells: int


@dataclass(frozen=True)
class ClusterMap:
    policy: int
    label: str
    blocks: list[Block]
    names: list[str]
    """Of the nodes by cell; of the first of several, with how many it stands for."""
    cells: str
    """By moment and cell, a byte each in base64: half percents, or 255 for a node that is down."""


@dataclass(frozen=True)
class ClusterMaps:
    unit: str
    x: list[Number]
    maps: list[ClusterMap]


def cluster(runs: Sequence[Run], unit: TimeUnit) -> Section:
    """How full each node was at moments over time."""
    drawn = first_runs(runs)
    if not any(len(run.nodes) for run in drawn):
        return Section("cluster", "The cluster, node by node", SAYS, None, notes=("There were no nodes.",))
    cells = [-(-len(run.nodes) // _nodes_a_cell(run)) for run in drawn]
    frames = max(2, min(MOST_FRAMES, MOST_BYTES // max(1, sum(cells))))
    times = np.linspace(0.0, max(run.horizon for run in drawn), frames)
    found = [_map(number, run, times) for number, run in enumerate(drawn)]
    notes = [f"The slider goes through {frames} moments; what happened in between is not drawn.", *seed_note(runs)]
    most = max(map(_nodes_a_cell, drawn))
    if most > 1:
        notes.append(f"Each cell is the mean of up to {most} nodes of one model that are up.")
    return Section(
        "cluster",
        "The cluster, node by node",
        SAYS,
        ClusterMaps(unit.name, unit.of(times), [each for each, _ in found]),
        (_table(drawn, [full for _, full in found], times, unit),),
        tuple(notes),
    )


def _nodes_a_cell(run: Run) -> int:
    return max(1, -(-len(run.nodes) // MOST_CELLS))


def _map(number: int, run: Run, times: Floats) -> tuple[ClusterMap, Floats]:
    """The map of one run, and how full the nodes that are up are on average at each moment."""
    full = node_fullness(run, times)
    titles = [(model or "GPUs") if gpus else NO_GPUS for model, gpus in _models(run)]
    blocks, names, columns = [], [], []
    for title in sorted(set(titles), key=lambda title: (title == NO_GPUS, -titles.count(title), title)):
        rows = [row for row, of_node in enumerate(titles) if of_node == title]
        together = _nodes_a_cell(run)
        groups = [rows[start : start + together] for start in range(0, len(rows), together)]
        names += [_name(run, group) for group in groups]
        columns += [_mean_of_up(full[:, group]) for group in groups]
        blocks.append(Block(title, len(groups)))
    matrix = np.stack(columns, axis=1) if columns else np.empty((len(times), 0))
    encoded = b64encode(_bytes(matrix).tobytes()).decode()
    over_time = _mean_of_up(full) if len(run.nodes) else np.full(len(times), np.nan)
    label = f"{run.policy}: {len(run.nodes):,} nodes, {percent_text(mean(over_time))} full on average."
    return ClusterMap(number, label, blocks, names, encoded), over_time


def _models(run: Run) -> list[tuple[str, float]]:
    return list(zip(run.nodes.gpu_model.tolist(), run.nodes.gpus.tolist(), strict=True))


def _name(run: Run, rows: Sequence[int]) -> str:
    first = str(run.nodes.node[rows[0]])
    return first if len(rows) == 1 else f"{first} and {len(rows) - 1} more"


def _mean_of_up(full: Floats) -> Floats:
    """By moment; nan where all are down."""
    there = ~np.isnan(full)
    found = there.sum(axis=1)
    return np.where(found, np.where(there, full, 0.0).sum(axis=1) / np.maximum(found, 1), np.nan)


def _bytes(matrix: Floats) -> NDArray[np.uint8]:
    half_percents = np.clip(np.nan_to_num(matrix) * FULL, 0, FULL).round()
    return np.where(np.isnan(matrix), DOWN, half_percents).astype(np.uint8)


def node_fullness(run: Run, times: Floats) -> Floats:
    """By moment and node, the allocated share of its GPUs, or of its CPUs if it has none; nan while it is down."""
    has_gpus = run.nodes.gpus > 0
    whole = np.where(has_gpus, run.nodes.gpus, run.nodes.cpus)
    stays = run.stays
    asked = np.where(has_gpus[stays.node], stays.gpus, stays.cpus) if len(stays) else np.empty(0)
    ended = np.where(np.isnan(stays.ended), np.inf, stays.ended)
    begins, ends = np.searchsorted(times, stays.bound), np.searchsorted(times, ended)
    changes = _sums(begins, stays.node, asked, run, times) - _sums(ends, stays.node, asked, run, times)
    full = np.cumsum(changes, axis=0)[:-1] / np.where(whole > 0, whole, 1.0)
    return np.where(_is_down(run, times), np.nan, full)


def _sums(moments: Ints, nodes: Ints, asked: Floats, run: Run, times: Floats) -> Floats:
    """What begins or ends, by the moment from which on it counts and by node; the last row is after all moments."""
    shape = (len(times) + 1, len(run.nodes))
    flat = np.bincount(moments * shape[1] + nodes, weights=asked, minlength=shape[0] * shape[1])
    return flat[: shape[0] * shape[1]].reshape(shape).astype(np.float64)


def _is_down(run: Run, times: Floats) -> NDArray[np.bool_]:
    """By moment and node. A node that comes up later is down until then."""
    down = np.zeros((len(times), len(run.nodes)), np.bool_)
    known = np.zeros(len(run.nodes), np.bool_)
    changes = run.node_changes
    for time, node, state in zip(changes.time.tolist(), changes.node.tolist(), changes.state.tolist(), strict=True):
        since = np.searchsorted(times, time)
        if not known[node]:
            down[:since, node] = state != "Down"
            known[node] = True
        down[since:, node] = state == "Down"
    return down


def _table(runs: Sequence[Run], full: Sequence[Floats], times: Floats, unit: TimeUnit) -> TextTable:
    """A dozen of the moments."""
    moments = np.unique(np.linspace(0, len(times) - 1, 12).round().astype(np.int64))
    rows = tuple(
        (f"{times[moment] / unit.seconds:.1f}", *(percent_text(float(each[moment])) for each in full))
        for moment in moments
    )
    return TextTable(
        f"Mean over the nodes that were up, after so many {unit.name}",
        (unit.name.capitalize(), *(run.policy for run in runs)),
        rows,
    )
