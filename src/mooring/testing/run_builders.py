"""Results of simulations for tests of what is shown of them: said by jobs and nodes, the rest follows.

make_run(jobs=[SimulatedJob("a", "research", submitted=0, stays=[Stay(0, 10, 30)])], nodes=[SimulatedNode("n")])
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mooring.report.simulation.results import (
    FINISHED,
    RUNNING,
    WAITING,
    Amounts,
    Floats,
    Jobs,
    NodeChanges,
    Nodes,
    QueueAmounts,
    Run,
    Samples,
    Stays,
    Texts,
    Totals,
    size_class,
)

NEVER = float("nan")


@dataclass(frozen=True)
class SimulatedNode:
    name: str
    gpus: float = 8.0
    gpu_model: str = ""
    cpus: float = 64.0
    memory: float = float(256 << 30)
    price: float = 0.0


@dataclass(frozen=True)
class Stay:
    """One pod of a job on a node, which it holds all of the job's requests of."""

    node: int
    bound: float
    ended: float = NEVER
    outcome: str = FINISHED


@dataclass(frozen=True)
class SimulatedJob:
    name: str
    queue: str = "queue"
    submitted: float = 0.0
    stays: Sequence[Stay] = ()
    gpus: float = 1.0
    cpus: float = 4.0
    memory: float = float(16 << 30)
    priority: int = 0


def make_run(
    policy: str = "policy",
    *,
    seed: int = 0,
    horizon: float = 100.0,
    every: float = 10.0,
    nodes: Sequence[SimulatedNode] = (),
    jobs: Sequence[SimulatedJob] = (),
    changes: Sequence[tuple[float, int, str]] = (),
    fragmentation: float = 0.0,
) -> Run:
    """What a simulation gives in which these things happened.

    Changes of nodes are times, rows and states; amounts and samples count all nodes as up.
    """
    times = np.arange(0.0, horizon + every / 2, every)
    table = _nodes(nodes)
    job_table, stays = _jobs(jobs), _stays(jobs)
    return Run(
        policy,
        seed,
        horizon,
        job_table,
        stays,
        table,
        _changes(changes),
        _samples(times, job_table, stays, table, fragmentation),
        _amounts(times, stays, table),
        _queues(times, job_table, stays, table),
        _totals(stays, table, horizon),
    )


def texts(values: Sequence[str]) -> Texts:
    made: Texts = np.empty(len(values), np.object_)
    made[:] = values
    return made


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, np.float64)


def _nodes(nodes: Sequence[SimulatedNode]) -> Nodes:
    return Nodes(
        texts([node.name for node in nodes]),
        texts([node.gpu_model for node in nodes]),
        *(_floats([getattr(node, name) for node in nodes]) for name in ("gpus", "cpus", "memory", "price")),
    )


def _changes(changes: Sequence[tuple[float, int, str]]) -> NodeChanges:
    return NodeChanges(
        _floats([at for at, _, _ in changes]),
        np.array([node for _, node, _ in changes], np.int64),
        texts([state for _, _, state in changes]),
    )


def _jobs(jobs: Sequence[SimulatedJob]) -> Jobs:
    last = [job.stays[-1] if job.stays else Stay(0, NEVER, NEVER, WAITING) for job in jobs]
    states = [
        WAITING if stay.outcome not in (FINISHED, "Failed") else RUNNING if stay.ended != stay.ended else stay.outcome
        for stay in last
    ]
    done = [state not in (WAITING, RUNNING) for state in states]
    started = _floats([job.stays[0].bound if job.stays else NEVER for job in jobs])
    return Jobs(
        texts([job.name for job in jobs]),
        texts([job.queue for job in jobs]),
        np.array([job.priority for job in jobs], np.int64),
        texts([size_class(job.gpus) for job in jobs]),
        np.ones(len(jobs), np.int64),
        _floats([job.gpus for job in jobs]),
        _floats([job.cpus for job in jobs]),
        _floats([job.memory for job in jobs]),
        _floats([job.submitted for job in jobs]),
        started,
        _floats([stay.ended if over else NEVER for stay, over in zip(last, done, strict=True)]),
        texts(states),
        _floats([stay.ended - stay.bound for stay in last]),
        np.array([max(0, len(job.stays) - 1) for job in jobs], np.int64),
        np.zeros(len(jobs)),
        np.zeros(len(jobs)),
    )


def _stays(jobs: Sequence[SimulatedJob]) -> Stays:
    found = [(row, job, stay) for row, job in enumerate(jobs) for stay in job.stays]
    bound = _floats([stay.bound for _, _, stay in found])
    return Stays(
        np.array([row for row, _, _ in found], np.int64),
        np.zeros(len(found), np.int64),
        np.array([stay.node for _, _, stay in found], np.int64),
        bound,
        bound,
        _floats([stay.ended for _, _, stay in found]),
        texts([RUNNING if stay.ended != stay.ended else stay.outcome for _, _, stay in found]),
        *(_floats([getattr(job, name) for _, job, _ in found]) for name in ("gpus", "cpus", "memory")),
    )


def held(times: Floats, begins: Floats, ends: Floats, amounts: Floats) -> Floats:
    """How much is held at each of the times, of amounts that are held from begin to end; nan: without end."""
    changes = np.zeros(len(times) + 1)
    np.add.at(changes, np.searchsorted(times, begins), amounts)
    np.add.at(changes, np.searchsorted(times, np.where(np.isnan(ends), np.inf, ends)), -amounts)
    return np.cumsum(changes)[:-1]


def _samples(times: Floats, jobs: Jobs, stays: Stays, nodes: Nodes, fragmentation: float) -> Samples:
    pods = held(times, stays.bound, stays.ended, np.ones(len(stays))).round().astype(np.int64)
    there = held(times, jobs.submitted, jobs.ended, np.ones(len(jobs))).round().astype(np.int64)
    used = np.zeros((len(times), len(nodes)))
    for node in np.unique(stays.node):
        rows = stays.node == node
        used[:, node] = held(times, stays.bound[rows], stays.ended[rows], np.ones(int(rows.sum())))
    return Samples(
        times,
        np.full(len(times), len(nodes), np.int64),
        (used > 0).sum(axis=1),
        pods,
        there - pods,
        pods,
        there - pods,
        np.full(len(times), fragmentation),
        times * float(nodes.price.sum()) / 3600,
    )


def _kinds(nodes: Nodes) -> list[tuple[str, str, Floats]]:
    """Resources and GPU models, and what each node has of them."""
    models = sorted({model for model in nodes.gpu_model.tolist() if model})
    kinds = [("cpu", "", nodes.cpus), ("memory", "", nodes.memory), ("gpu", "", nodes.gpus)]
    kinds += [("gpu", model, np.where(nodes.gpu_model == model, nodes.gpus, 0.0)) for model in models]
    return [kind for kind in kinds if kind[2].sum() > 0]


def _amounts(times: Floats, stays: Stays, nodes: Nodes) -> Amounts:
    columns: list[tuple[Floats, str, str, float, Floats]] = []
    for resource, model, whole in _kinds(nodes):
        rows = whole[stays.node] > 0 if len(stays) else np.zeros(0, np.bool_)
        asked = getattr(stays, {"gpu": "gpus", "cpu": "cpus"}.get(resource, resource))
        columns.append(
            (times, resource, model, whole.sum(), held(times, stays.bound[rows], stays.ended[rows], asked[rows]))
        )
    if not columns:
        return Amounts(np.empty(0), texts([]), texts([]), np.empty(0), np.empty(0), np.empty(0))
    allocated = np.concatenate([amounts for *_, amounts in columns])
    return Amounts(
        np.concatenate([moments for moments, *_ in columns]),
        texts([resource for _, resource, *_ in columns for _ in times]),
        texts([model for _, _, model, *_ in columns for _ in times]),
        np.concatenate([np.full(len(times), whole) for _, _, _, whole, _ in columns]),
        allocated,
        allocated,
    )


def _queues(times: Floats, jobs: Jobs, stays: Stays, nodes: Nodes) -> QueueAmounts:
    names = list(dict.fromkeys(jobs.queue.tolist()))
    of_stay = jobs.queue[stays.job]
    columns: dict[str, list[Floats]] = {"gpus": [], "cpus": [], "memory": []}
    shares, running = [], []
    for name in names:
        rows = of_stay == name
        begins, ends = stays.bound[rows], stays.ended[rows]
        for column, found in columns.items():
            found.append(held(times, begins, ends, getattr(stays, column)[rows]))
        wholes = {column: float(getattr(nodes, column).sum()) for column in columns}
        shares.append(
            np.max([found[-1] / wholes[column] for column, found in columns.items() if wholes[column]], axis=0)
        )
        running.append(held(times, begins, ends, np.ones(int(rows.sum()))).round().astype(np.int64))
    if not names:
        nothing = np.empty(0)
        return QueueAmounts(nothing, texts([]), nothing.astype(int), nothing.astype(int), *([nothing] * 4))
    runs = np.concatenate(running)
    return QueueAmounts(
        np.tile(times, len(names)),
        texts([name for name in names for _ in times]),
        runs,
        np.zeros_like(runs),
        np.concatenate(shares),
        *(np.concatenate(found) for found in columns.values()),
    )


def _totals(stays: Stays, nodes: Nodes, horizon: float) -> Totals:
    kinds = _kinds(nodes)
    seconds = np.where(np.isnan(stays.ended), horizon, stays.ended) - stays.bound
    allocated = []
    for resource, _, whole in kinds:
        asked = getattr(stays, {"gpu": "gpus", "cpu": "cpus"}.get(resource, resource))
        allocated.append(float((asked * seconds)[whole[stays.node] > 0].sum()) if len(stays) else 0.0)
    return Totals(
        resource=tuple(resource for resource, _, _ in kinds),
        model=tuple(model for _, model, _ in kinds),
        capacity=tuple(float(whole.sum()) * horizon for _, _, whole in kinds),
        allocated=tuple(allocated),
        used=tuple(allocated),
        node_seconds_up=len(nodes) * horizon,
        node_seconds_used=0.0,
        most_nodes_used=len(set(stays.node.tolist())),
        cost=float(nodes.price.sum()) * horizon / 3600,
        preemptions=0,
        cycles=0,
        decisions=0,
    )
