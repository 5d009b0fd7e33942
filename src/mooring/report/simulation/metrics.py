"""Metrics of a run, each worked out from its tables: what a policy is judged by.

Queueing time is from submission until all pods of a job run for the first time, completion time until it has finished.
Slowdown is completion time over what it would have been without waiting or interruption. A job that has not got so far
by the end counts with the time until then, which is the least that it will be; how many of these there are (they are
called censored) stands beside every figure. A job that failed, or never ends, has no completion time, and one of which
nobody knows how long it takes no slowdown.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from mooring.report.simulation.results import FAILED, FINISHED, RUNNING, WAITING, Floats, Run, Texts

Mask = NDArray[np.bool_]


class Spread(Struct, rename="camel"):
    """How some values are distributed; all 0 if there are none."""

    count: int
    """All of them, the censored ones included."""
    censored: int
    """Those that were not over by the end, and count with what they had come to: the figures are the least possible."""
    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class Times:
    """Seconds, or ratios, one for each of some jobs."""

    values: Floats
    is_censored: Mask
    """Those that were not over by the end: the values are the least possible."""

    def of(self, mask: Mask) -> "Times":
        return Times(self.values[mask], self.is_censored[mask])


class ResourceUse(Struct, rename="camel", omit_defaults=True):
    """Over the whole time, of what the nodes that were up had."""

    resource: str
    model: str = ""
    """Of GPUs; empty for all together."""
    allocation: float = 0.0
    """The share that was requested by pods on nodes."""
    utilisation: float = 0.0
    """The share that was requested by pods whose containers ran."""


class JobTimes(Struct, rename="camel", omit_defaults=True):
    """The jobs of one queue, size class or priority."""

    name: str
    jobs: int
    finished: int
    waiting: int
    queueing: Spread
    completion: Spread
    slowdown: Spread
    share: float = 0.0
    """Of queues: the largest of its shares of CPU, memory and GPUs, over the whole time."""


class Metrics(Struct, rename="camel"):
    """What a run comes to."""

    policy: str
    seed: int
    jobs: int
    finished: int
    failed: int
    running: int
    waiting: int
    resources: list[ResourceUse]
    queueing: Spread
    completion: Spread
    slowdown: Spread
    queues: list[JobTimes]
    size_classes: list[JobTimes]
    priorities: list[JobTimes]
    fairness: float
    """Jain's index of the queues' dominant shares: 1 if all are equal, 1/n if one has everything."""
    fragmentation: float
    """GPUs that were idle and of no use to typical pods, on average."""
    preemptions: int
    evictions: int
    work_lost_hours: float
    """Pod-hours of work that were done and lost."""
    gpu_hours_lost: float
    cost: float
    nodes_needed: int
    """The most nodes that were used at one moment."""
    nodes_used: float
    """On average."""
    nodes_up: float
    cycles: int


def metrics_of(run: Run) -> Metrics:
    jobs, totals = run.jobs, run.totals
    shares = queue_shares(run)
    return Metrics(
        policy=run.policy,
        seed=run.seed,
        jobs=len(jobs),
        finished=_count(run, FINISHED),
        failed=_count(run, FAILED),
        running=_count(run, RUNNING),
        waiting=_count(run, WAITING),
        resources=list(_resources(run)),
        queueing=spread(queueing_times(run)),
        completion=spread(completion_times(run)),
        slowdown=spread(slowdowns(run)),
        queues=[_times(run, name, jobs.queue == name, shares.get(name, 0.0)) for name in _distinct(jobs.queue)],
        size_classes=[_times(run, name, jobs.size_class == name) for name in _distinct(jobs.size_class)],
        priorities=[_times(run, str(value), jobs.priority == value) for value in np.unique(jobs.priority)],
        fairness=jain(list(shares.values())),
        fragmentation=over_time(run.samples.time, run.samples.fragmentation),
        preemptions=totals.preemptions,
        evictions=int(jobs.evictions.sum()),
        work_lost_hours=float(jobs.lost.sum()) / 3600,
        gpu_hours_lost=float(jobs.lost_gpu_seconds.sum()) / 3600,
        cost=totals.cost,
        nodes_needed=totals.most_nodes_used,
        nodes_used=totals.node_seconds_used / run.horizon,
        nodes_up=totals.node_seconds_up / run.horizon,
        cycles=totals.cycles,
    )


def spread(times: Times) -> Spread:
    """The mean, and the least value that so many percent do not exceed."""
    values = times.values[~np.isnan(times.values)]
    if not len(values):
        return Spread(0, 0, 0.0, 0.0, 0.0, 0.0)
    p50, p95, p99 = np.quantile(values, (0.5, 0.95, 0.99), method="inverted_cdf")
    censored = int(times.is_censored[~np.isnan(times.values)].sum())
    return Spread(len(values), censored, float(values.mean()), float(p50), float(p95), float(p99))


def jain(shares: list[float]) -> float:
    """(sum of shares)² / (n · sum of their squares); 1 where nobody has anything.

    >>> jain([0.5, 0.5]), jain([1.0, 0.0])
    (1.0, 0.5)
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def queue_shares(run: Run) -> dict[str, float]:
    """By queue: the largest of its shares of the cluster's CPU, memory and GPUs, over the whole time."""
    stays, totals = run.stays, run.totals
    seconds = np.clip(run.held_until(), 0, run.horizon) - np.clip(stays.bound, 0, run.horizon)
    queues = _distinct(run.jobs.queue)
    number = {name: index for index, name in enumerate(queues)}
    of_job = np.array([number[name] for name in run.jobs.queue], np.int64)
    of_stay = of_job[stays.job] if len(stays) else np.zeros(0, np.int64)
    best = np.zeros(len(queues))
    for resource, amounts in (("cpu", stays.cpus), ("memory", stays.memory), ("gpu", stays.gpus)):
        capacity = sum(
            amount
            for name, model, amount in zip(totals.resource, totals.model, totals.capacity, strict=True)
            if name == resource and not model
        )
        if capacity > 0:
            taken = np.bincount(of_stay, weights=amounts * seconds, minlength=len(queues))
            best = np.maximum(best, taken / capacity)
    return dict(zip(queues, best.tolist(), strict=True))


def queueing_times(run: Run) -> Times:
    """By job: until it started; of one that never did, until it ended, or until the end."""
    jobs = run.jobs
    never = np.isnan(jobs.started)
    last = np.where(np.isnan(jobs.ended), run.horizon, jobs.ended)
    return Times(np.where(never, last, jobs.started) - jobs.submitted, never)


def completion_times(run: Run) -> Times:
    """By job: until it finished, or until the end; nan if it failed, or works without end."""
    jobs = run.jobs
    is_done = jobs.state == FINISHED
    times = np.where(is_done, jobs.ended, run.horizon) - jobs.submitted
    return Times(np.where((jobs.state == FAILED) | np.isinf(jobs.ideal), np.nan, times), ~is_done)


def slowdowns(run: Run) -> Times:
    """By job: completion time over ideal time, which is at least a second; nan where there is one of them only."""
    completion = completion_times(run)
    return Times(np.maximum(1.0, completion.values / np.maximum(run.jobs.ideal, 1.0)), completion.is_censored)


def _times(run: Run, name: str, mask: Mask, share: float = 0.0) -> JobTimes:
    return JobTimes(
        name=name,
        jobs=int(mask.sum()),
        finished=int((mask & (run.jobs.state == FINISHED)).sum()),
        waiting=int((mask & (run.jobs.state == WAITING)).sum()),
        queueing=spread(queueing_times(run).of(mask)),
        completion=spread(completion_times(run).of(mask)),
        slowdown=spread(slowdowns(run).of(mask)),
        share=share,
    )


def _resources(run: Run) -> Iterator[ResourceUse]:
    totals = run.totals
    rows = zip(totals.resource, totals.model, totals.capacity, totals.allocated, totals.used, strict=True)
    for resource, model, capacity, allocated, used in rows:
        yield ResourceUse(resource, model, allocated / capacity, used / capacity)


def over_time(time: Floats, values: Floats) -> float:
    """The mean of values that hold until the next one."""
    if len(time) < 2 or time[-1] <= time[0]:
        return float(values.mean()) if len(values) else 0.0
    return float((values[:-1] * np.diff(time)).sum() / (time[-1] - time[0]))


def _count(run: Run, state: str) -> int:
    return int((run.jobs.state == state).sum())


def _distinct(texts: Texts) -> list[str]:
    return sorted(set(texts))


class Comparison(Struct, rename="camel"):
    """One policy over all its seeds: means, and how far seeds differ."""

    policy: str
    seeds: int
    values: dict[str, float]
    """By metric."""
    deviations: dict[str, float]
    """The standard deviation over seeds."""
    censored: dict[str, float]
    """By metric of times: how many jobs were not over by the end, and count with what they had come to."""


SHOWN: dict[str, Callable[[Metrics], float]] = {
    "finished": lambda found: found.finished,
    "waiting": lambda found: found.waiting,
    "cpu allocation": lambda found: _allocation(found, "cpu"),
    "gpu allocation": lambda found: _allocation(found, "gpu"),
    "gpus fragmented": lambda found: found.fragmentation,
    "queueing mean": lambda found: found.queueing.mean,
    "queueing p95": lambda found: found.queueing.p95,
    "completion mean": lambda found: found.completion.mean,
    "completion p95": lambda found: found.completion.p95,
    "slowdown mean": lambda found: found.slowdown.mean,
    "fairness": lambda found: found.fairness,
    "preemptions": lambda found: found.preemptions,
    "evictions": lambda found: found.evictions,
    "work lost hours": lambda found: found.work_lost_hours,
    "nodes needed": lambda found: found.nodes_needed,
    "cost": lambda found: found.cost,
}
"""What policies are compared by, in this order."""


TIMES: dict[str, Callable[[Metrics], Spread]] = {
    "queueing mean": lambda found: found.queueing,
    "queueing p95": lambda found: found.queueing,
    "completion mean": lambda found: found.completion,
    "completion p95": lambda found: found.completion,
    "slowdown mean": lambda found: found.slowdown,
}
"""Those of them that are about times of jobs, some of which may not be over."""


def _allocation(found: Metrics, resource: str) -> float:
    return next((use.allocation for use in found.resources if use.resource == resource and not use.model), 0.0)


def compare(found: list[Metrics]) -> list[Comparison]:
    """One row a policy, in the order in which they come."""
    policies = dict.fromkeys(each.policy for each in found)
    return [_compared(policy, [each for each in found if each.policy == policy]) for policy in policies]


def _compared(policy: str, runs: list[Metrics]) -> Comparison:
    columns = {name: np.array([value(run) for run in runs], np.float64) for name, value in SHOWN.items()}
    return Comparison(
        policy,
        len(runs),
        {name: float(column.mean()) for name, column in columns.items()},
        {name: float(column.std()) for name, column in columns.items()},
        {name: float(np.mean([spread_of(run).censored for run in runs])) for name, spread_of in TIMES.items()},
    )
