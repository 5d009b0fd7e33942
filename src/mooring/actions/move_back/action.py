"""The action: evict pods that spilled over from their pools, where there is room for them again.

It runs last of all that place pods, and only when nobody is left to be tried: whoever waits comes before those who
have a place. What is freed is nobody's in particular, as the one that comes back does not exist yet. So it asks what
the scheduler would do with it, scores and all, and tells a pod to go only if that is to put it into one of its pools.
"""

from collections.abc import Mapping

from mooring.actions.move_back.moves import Move, Moves, identity
from mooring.actions.move_back.spilled import Pools, is_settled, members, rows_of, workload_of
from mooring.actions.place.batches import Batches
from mooring.actions.preempt.action import Preemption
from mooring.actions.preempt.running import RunningPods
from mooring.config.node_pools import NodePool, NodePoolsArgs
from mooring.engine.action import Action, Cycle
from mooring.engine.evictions import evict
from mooring.engine.profile import Profile
from mooring.model.decisions import Decision
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord


class MoveBack(Action):
    """Moves pods back to the pools of one profile."""

    def __init__(self, profile: Profile, args: NodePoolsArgs, batches: Batches, preemption: Preemption) -> None:
        """`batches` knows where the scheduler would put a pod, `preemption` what budgets allow."""
        self._profile = profile
        self._most = args.most_moves_at_a_time
        self._pools = Pools(profile.name, args.pools)
        self._batches = batches
        self._preemption = preemption
        self._moves = Moves()
        self._looked_at: tuple[int, ...] = ()
        self._look_again_at: float | None = None

    def run(self, cycle: Cycle) -> list[Decision]:
        cluster, now = cycle.cluster, cycle.now
        self._moves.follow(cluster, now)
        # 1. One batch of moves after the other: what is on its way is not to be seen in the columns.
        if self._moves.open or len(cycle.queue):
            return []
        # 2. Nothing to look at if nothing has changed, and nobody's time has come.
        is_time = self._look_again_at is not None and now >= self._look_again_at
        if not is_time and self._looked_at == _versions(cluster):
            return []
        # 3. Whoever may go, as far as all of them find room together.
        decisions = self._move(cycle)
        self._looked_at, self._look_again_at = _versions(cluster), self._moves.next_wake(now)
        return decisions

    def next_wake(self, now: float) -> float | None:
        return self._moves.next_wake(now)

    def _move(self, cycle: Cycle) -> list[Decision]:
        cluster = cycle.cluster
        spilled = self._pools.spilled(cluster)
        if not spilled:
            return []
        running, of_workload = self._preemption.search(cycle).running, members(cluster)
        moves: dict[PodKey, tuple[PodRecord, int]] = {}
        in_vain: set[int] = set()
        decisions: list[Decision] = []
        for record in spilled:
            workload = workload_of(record.pod)
            if record.shape.id in in_vain:
                continue
            own = self._pools.own(record.shape)
            if not self._moves.may_try(workload, own, record.shape, cluster, cycle.now):
                continue
            others = [member for member in of_workload[workload] if member.key not in moves]
            if not is_settled(others) or not _may_be_disrupted(record, running):
                continue
            row = self._row_for(record, own, moves, cluster)
            if row < 0:
                in_vain.add(record.shape.id)
                continue
            moves[record.key] = record, row
            before = frozenset(map(identity, of_workload[workload]))
            self._moves.begin(Move(identity(record), workload, record.shape, own, before), cluster)
            decisions += self._evict(record, row, own, running, cycle)
            if len(moves) >= self._most:
                break
        return decisions

    def _row_for(
        self,
        record: PodRecord,
        own: tuple[NodePool, ...],
        moves: Mapping[PodKey, tuple[PodRecord, int]],
        cluster: Cluster,
    ) -> int:
        """Where the scheduler would put a pod had it no place, with those in theirs that go too; -1 if not in a pool
        that has it back."""
        back = rows_of([pool for pool in own if pool.moves_back], cluster)
        with cluster.what_if():
            for other, row in moves.values():
                cluster.release(other.key)
                cluster.assume(other.key, row)
            cluster.release(record.key)
            row = self._batches.choose(cluster, self._profile, record.shape)
        return row if row >= 0 and back[row] else -1

    def _evict(
        self, record: PodRecord, row: int, own: tuple[NodePool, ...], running: RunningPods, cycle: Cycle
    ) -> list[Decision]:
        node = cycle.cluster.nodes.name(row)
        names = " or ".join(pool.name for pool in own if pool.moves_back)
        reason = f"Moved back to node pool {names}: node {node} has room"
        running.budgets.spend(running.budgets.set_of(record.pod), record.key)
        return evict(cycle.cluster, cycle.queue, record, "", reason, moves_to=node)


def _may_be_disrupted(record: PodRecord, running: RunningPods) -> bool:
    """Whether every disruption budget of a pod has one to give."""
    running.refresh()
    budgets = running.budgets.sets.values[running.budgets.set_of(record.pod)]
    return not len(budgets) or bool((running.allowed_disruptions()[list(budgets)] > 0).all())


def _versions(cluster: Cluster) -> tuple[int, ...]:
    """A value that changes whenever anything does that a move could depend on."""
    return (*cluster.description, cluster.pod_changes.position, cluster.pod_updates.position)
