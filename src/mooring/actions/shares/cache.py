"""The jobs in their queues, and everything that follows when one of them gets or loses something.

A change runs along one path: the ledger, the queue's share and those above it, the job's share, its place in its
queue's line, and the queue's place among the others. Nothing is computed anew for all queues.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mooring.actions.shares.checks import Checks
from mooring.actions.shares.demands import JobDemand, QueueSpec
from mooring.actions.shares.drf import DominantShares
from mooring.actions.shares.hdrf import HierarchicalShares
from mooring.actions.shares.jobs import Job, Members
from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.order import HierarchicalOrder, QueueOrder, job_key
from mooring.actions.shares.queue_shares import Floats, QueueShares
from mooring.actions.shares.resources import Amount, ResourceTable
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.tree import QueueTree
from mooring.model.api.volcano_queue import HierarchyStep
from mooring.model.values.requests import CPU, MEMORY
from mooring.state.undo import UndoLog


class _Measured(NamedTuple):
    """What depends on how much the cluster has."""

    dominant: DominantShares
    hierarchical: HierarchicalShares | None
    order: QueueOrder


class ShareCache:
    """All that changes with a decision, for one set of queues and resources."""

    def __init__(
        self,
        queues: Sequence[QueueSpec],
        resources: ResourceTable,
        total: Mapping[str, int],
        settings: ShareSettings,
        log: UndoLog,
    ) -> None:
        self._settings = settings
        self.resources = resources
        self.tree = QueueTree(queues, resources, total)
        self.ledger = Ledger(self.tree, log)
        self.shares = QueueShares(self.ledger, settings)
        self.checks = Checks(self.ledger, self.shares, settings)
        self.jobs: dict[str, Job] = {}
        self.holders: dict[int, dict[str, Job]] = {leaf: {} for leaf in self.tree.leaves}
        """By queue, the jobs that hold something."""
        self.grouping = settings.division.make_grouping(self.ledger)
        self.heaps = {leaf: self.grouping.make_heap(self.jobs) for leaf in self.tree.leaves}
        """By queue, the jobs that want a turn."""
        self.aside: dict[int, str] = {}
        """Queues that are out of this cycle, and why."""
        self._parked: dict[str, Job] = {}
        self._limited: dict[str, Job] = {}
        """Those of which some members are out of this cycle."""
        self.outside: dict[str, Job] = {}
        """The jobs that wait to be let in."""
        self._measured = self._measure()

    def _measure(self) -> "_Measured":
        """What depends on how much the cluster has, without jobs."""
        dominant = DominantShares(self.resources, self.tree.total, self._settings.resource_weights)
        if self._settings.is_hierarchical:
            hierarchical = self.make_hierarchical_shares(dominant)
            return _Measured(dominant, hierarchical, HierarchicalOrder(self.tree, hierarchical))
        moves_parents = self._settings.moves_parent_shares
        return _Measured(dominant, None, self._settings.division.make_order(self, moves_parents=moves_parents))

    @property
    def dominant(self) -> DominantShares:
        return self._measured.dominant

    @property
    def hierarchical(self) -> HierarchicalShares | None:
        return self._measured.hierarchical

    @property
    def order(self) -> QueueOrder:
        return self._measured.order

    def next_amount(self, leaf: int) -> Amount:
        """What the next job of a queue asks for."""
        job = self.heaps[leaf].head()
        return {} if job is None else job.amount(job.wanted)

    def make_hierarchical_shares(self, dominant: DominantShares) -> HierarchicalShares:
        """The tree of parts, without jobs."""
        ways = {leaf: self._way(leaf) for leaf in self.tree.leaves}
        known = self.resources.column_of
        always = [known[name] for name in (CPU, MEMORY) if name in known]
        return HierarchicalShares(ways, self.tree.total, dominant, always)

    def _way(self, leaf: int) -> Sequence[HierarchyStep]:
        given = self.tree.specs[leaf].hierarchy
        if given:
            return given
        specs = [self.tree.specs[row] for row in reversed(self.tree.paths[leaf][:-1])]
        return [HierarchyStep(spec.name, max(1.0, spec.weight)) for spec in specs]

    def set_total(self, total: Mapping[str, int]) -> None:
        self.tree.set_total(total)
        self._measured = self._measure()
        for job in self.jobs.values():
            self._weigh(job)
        self.rebuild_order()

    def set_deserved(self, deserved: Floats) -> None:
        self.shares.set_deserved(deserved)
        self.rebuild_order()

    # Jobs

    def put(self, demand: JobDemand) -> None:
        """Take in a job, with what it holds."""
        job = Job(demand, self.tree.row_of[demand.queue], self.resources)
        self.jobs[job.key] = job
        self.ledger.add_demand(job.leaf, job.in_demand)
        if job.is_enqueued:
            self.ledger.add_minimum(job.leaf, job.minimum_amount)
        else:
            self.outside[job.key] = job
        with self.ledger.log.for_good():
            self.ledger.add(job.leaf, job.held_amount)
        if job.demand.is_firm:
            self.ledger.add_firm(job.leaf, job.held_amount)
        self.grouping.join(job)
        self._follow(job)

    def drop(self, key: str) -> None:
        """Forget a job, with what it holds."""
        job = self.jobs[key]
        if job.held_members:
            self.change(job, tuple(job.held), -1)
        del self.jobs[key]
        self.grouping.leave(job)
        self._parked.pop(key, None)
        self._limited.pop(key, None)
        self.outside.pop(key, None)
        self.ledger.add_demand(job.leaf, job.in_demand, -1)
        if job.is_enqueued:
            self.ledger.add_minimum(job.leaf, job.minimum_amount, -1)
        if self.hierarchical is not None and self.hierarchical.drop_job(key):
            self.rebuild_order()
        self._update_order(job.leaf)

    def change(self, job: Job, members: Members, sign: int) -> None:
        """So many members of the job have their place now (sign 1), or have it no longer (-1)."""
        amount = job.amount(members)
        job.add(members, sign)
        if job.demand.is_firm:
            self.ledger.add_firm(job.leaf, amount, sign)
        self.grouping.change(job, amount, sign)
        with self.ledger.log.for_good():
            if sign > 0:
                self.ledger.add(job.leaf, amount)
            else:
                self.ledger.remove(job.leaf, amount)
        self._follow(job)

    def _follow(self, job: Job) -> None:
        self.shares.update(job.leaf)
        if job.held_members:
            self.holders[job.leaf][job.key] = job
        else:
            self.holders[job.leaf].pop(job.key, None)
        if self._weigh(job):
            self.rebuild_order()
        self.heaps[job.leaf].moved(job)
        self._update_order(job.leaf)

    def _weigh(self, job: Job) -> bool:
        """Bring the job's share and its place in line up to date; tell whether all queues may have changed places."""
        held = job.held_amount
        job.share = self.dominant.share(held)
        if not self.is_parked(job.key):
            self._push(job)
        return self.hierarchical is not None and self.hierarchical.put_job(job.key, job.leaf, held, job.asked)

    # Lines

    def _push(self, job: Job) -> None:
        if not job.is_enqueued or not any(job.next_members()):
            job.heap_key = None
            return
        key = job_key(job, self._settings)
        if key != job.heap_key:
            self.heaps[job.leaf].put(job, key)

    def enqueue(self, job: Job) -> None:
        job.is_enqueued = True
        del self.outside[job.key]
        self.ledger.add_minimum(job.leaf, job.minimum_amount)
        self._push(job)
        self._update_order(job.leaf)

    def park(self, job: Job, why: str) -> None:
        """Out of line until the next cycle."""
        job.refusal = why
        job.heap_key = None
        self._parked[job.key] = job
        self._update_order(job.leaf)

    def limit(self, job: Job, most_held: Mapping[int, int], why: str) -> None:
        """Until the next cycle no more than so many members of these roles have a place."""
        job.refusal = why
        job.most_held.update(most_held)
        self._limited[job.key] = job
        self._push(job)
        self._update_order(job.leaf)

    def set_aside(self, leaf: int, why: str) -> None:
        """A whole queue is out until the next cycle."""
        self.aside[leaf] = why
        self._update_order(leaf)

    def bring_back(self) -> None:
        """Everybody in line again."""
        self.aside.clear()
        self.shares.settle()
        left_out = {**self._parked, **self._limited}
        self._parked, self._limited = {}, {}
        for job in left_out.values():
            job.refusal = ""
            job.most_held.clear()
            self._push(job)
        self.rebuild_order()

    def in_order(self, leaves: Iterable[int]) -> list[int]:
        """These queues in the order in which they would have their turns."""
        order = self.order
        order.rebuild(leaves)
        found = []
        while (leaf := order.best()) is not None:
            found.append(leaf)
            order.update(leaf, False)
        self.rebuild_order()
        return found

    def takes_part(self, leaf: int) -> bool:
        """Whether somebody of this queue can have a turn in this cycle."""
        return leaf not in self.aside and self.heaps[leaf].head() is not None

    def is_parked(self, key: str) -> bool:
        return key in self._parked

    def _update_order(self, leaf: int) -> None:
        self.order.update(leaf, self.takes_part(leaf))

    def rebuild_order(self) -> None:
        self.order.rebuild([leaf for leaf in self.tree.leaves if self.takes_part(leaf)])
