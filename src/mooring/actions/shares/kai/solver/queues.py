"""KAI's queues with their quotas, limits and fair shares, as rows of a tree of queues."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.kai.queues import PARTS, SHARED
from mooring.actions.shares.kai.solver.jobs import NOTHING, ONE_GPU, Amount, Job
from mooring.actions.shares.kai.tree_shares import kai_shares
from mooring.actions.shares.resources import UNLIMITED, Columns, Floats, ResourceTable
from mooring.actions.shares.tree import QueueTree

NOT_ENTITLED = 1000.0
"""How many times one counts of something of which a queue may have nothing."""
IN_ONE = (float(ONE_GPU), 1.0, 1.0)
"""How many of our units KAI counts as one: of GPUs a thousand, of CPU and memory one."""


@dataclass(frozen=True, slots=True)
class Entitlement:
    """What a queue may have; each by the fields of `Amount`, and None for no bound."""

    quota: tuple[int | None, ...]
    limit: tuple[int | None, ...]
    fair: tuple[float, ...]
    priority: int
    created: float
    name: str

    @property
    def allocatable(self) -> tuple[float | None, ...]:
        """The most that it may hold by right: its limit, and of quota and fair share the larger."""
        found: list[float | None] = []
        for quota, limit, fair in zip(self.quota, self.limit, self.fair, strict=True):
            if quota is None:
                found.append(limit)
            else:
                most = max(quota, fair)
                found.append(most if limit is None else min(limit, most))
        return tuple(found)

    def is_within_quota(self, held: Amount) -> bool:
        return is_within(held, self.quota)

    def is_within_fair_share(self, held: Amount) -> bool:
        return is_within(held, self.fair)

    def dominant_share(self, held: Amount, total: Amount) -> float:
        """The largest part that it holds of what it may have."""
        share = 0.0
        for amount, most, in_all, unit in zip(held, self.allocatable, total, IN_ONE, strict=True):
            most = in_all if most is None else most
            share = max(share, amount / most if most else amount / unit * NOT_ENTITLED)
        return share


def is_within(held: Iterable[float], bounds: Iterable[float | None]) -> bool:
    return all(bound is None or amount <= bound for amount, bound in zip(held, bounds, strict=True))


@dataclass(frozen=True, slots=True)
class Queues:
    """All queues: the tree, what each may have, and what there is in all."""

    tree: QueueTree
    entitled: tuple[Entitlement, ...]
    """By row of the tree."""
    total: Amount

    def leaf(self, job: Job) -> int:
        return self.tree.row_of[job.queue]

    def way_up(self, row: int) -> tuple[int, ...]:
        """A queue and those above it, without the root."""
        return self.tree.paths[row][:-1]


def divide(specs: Iterable[QueueSpec], total: Amount, demand: Mapping[str, Amount]) -> Queues:
    """Compute the fair shares of all queues, by what the jobs of each leaf hold and ask for."""
    tree = QueueTree(specs, ResourceTable(SHARED, PARTS), dict(zip(SHARED, total, strict=True)))
    asked = np.zeros((len(tree), tree.resources.width), dtype=np.int64)
    for name, amount in demand.items():
        for row in tree.paths[tree.row_of[name]]:
            asked[row] += np.array(amount, dtype=np.int64)
    return entitle(tree, kai_shares(tree, asked))


def entitle(tree: QueueTree, shares: Floats) -> Queues:
    """Say what queues may have, by their specs and these fair shares."""
    fair = read_columns(tree, shares)
    entitled = [_entitlement(spec, fair[row]) for row, spec in enumerate(tree.specs)]
    total = read_columns(tree, tree.total[np.newaxis])[0]
    return Queues(tree, tuple(entitled), Amount(*map(int, total)))


def read_columns(tree: QueueTree, columns: Columns | Floats) -> list[tuple[float, ...]]:
    """By row, what KAI counts of some amounts, in the order of `Amount`."""
    found = [tree.resources.column_of.get(name) for name in SHARED]
    return [tuple(0 if at is None else row[at] for at in found) for row in columns.tolist()]


def _entitlement(spec: QueueSpec, fair: tuple[float, ...]) -> Entitlement:
    quotas = [spec.deserved.get(name, 0) for name in SHARED]
    return Entitlement(
        quota=tuple(None if quota >= UNLIMITED else quota for quota in quotas),
        limit=tuple(spec.capability.get(name) for name in SHARED),
        fair=fair,
        priority=spec.priority,
        created=spec.created,
        name=spec.name,
    )


@dataclass(frozen=True, slots=True)
class Holding:
    """What the jobs of a queue hold."""

    allocated: Amount = NOTHING
    not_preemptible: Amount = NOTHING
    """What of it is held by jobs that cannot be evicted."""

    def changed(self, job: Job, amount: Amount) -> "Holding":
        firm = self.not_preemptible if job.is_preemptible else self.not_preemptible.plus(amount)
        return Holding(self.allocated.plus(amount), firm)


def is_over_capacity(queues: Queues, holdings: Mapping[int, Holding], job: Job, amount: Amount) -> bool:
    """Whether a job would exceed the limit of a queue, or, if it cannot be evicted, a quota."""
    return any(
        _exceeds(holdings[row].allocated, amount, queues.entitled[row].limit) for row in queues.way_up(queues.leaf(job))
    ) or is_firm_over_quota(queues, holdings, job, amount)


def is_firm_over_quota(queues: Queues, holdings: Mapping[int, Holding], job: Job, amount: Amount) -> bool:
    """Whether a job that cannot be evicted would exceed a quota, together with others of its kind."""
    return not job.is_preemptible and any(
        _exceeds(holdings[row].not_preemptible, amount, queues.entitled[row].quota)
        for row in queues.way_up(queues.leaf(job))
    )


def _exceeds(held: Amount, more: Amount, bounds: tuple[int | None, ...]) -> bool:
    return any(
        bound is not None and added and bound < amount + added
        for amount, added, bound in zip(held, more, bounds, strict=True)
    )
