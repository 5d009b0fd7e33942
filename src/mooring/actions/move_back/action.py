"""The action: evict pods that spilled over from their pools, where there is room for them again.

It runs last of all that place pods, and only when no pod is left to be tried: pods that wait come before pods that have
a place. A pod is told to go only if the scheduler would put it into one of its pools, scores and all, had it no place.
Each move is a plan: the pod leaves, and its successor, the pod that its controller makes in its place, holds the room.
"""

from collections.abc import Sequence

from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.actions.move_back.spilled import Pools, is_settled, members, room_in, rows_of, workload_of
from mooring.config.node_pools import NodePool, NodePoolsArgs
from mooring.engine.action import Action, Cycle
from mooring.engine.disruption import Refusal, Voluntary, again_at, as_created, disrupt, successor_of
from mooring.engine.queue.shared import SharedQueues
from mooring.model.decisions import Decision
from mooring.state.cluster import Cluster
from mooring.state.plans import Held, Plan, Reason
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.remembered import Seen

GO_ON_SECONDS = 1.0
"""So long after a run that had to come to an end the next one goes on."""


class MoveBack(Action):
    """Moves pods back to the pools of one profile."""

    def __init__(
        self, scheduler: str, args: NodePoolsArgs, rehearsal: Rehearsal, shared: SharedQueues | None = None
    ) -> None:
        """`scheduler` is the name by which pods ask for the profile; `rehearsal` knows where the scheduler would put a
        pod; pods of `shared` queues stay where they are."""
        self._scheduler = scheduler
        self._most = args.most_moves_at_a_time
        self._pools = Pools(scheduler, args.pools, shared or SharedQueues())
        self._rehearsal = rehearsal
        self._looked_at = Seen()
        """What decided when nothing could be moved: nothing can be, as long as that is the same."""

    @property
    def name(self) -> str:
        return f"{super().name} {self._scheduler}"

    def is_idle(self, cycle: Cycle) -> bool:
        return not cycle.cluster.setbacks and self._looked_at.is_at(_what_decides(cycle.cluster, cycle.now))

    def run(self, cycle: Cycle) -> list[Decision]:
        cluster, now = cycle.cluster, cycle.now
        self._learn(cluster)
        # 1. One batch of moves after the other.
        if len(cycle.queue) or any(plan.reason is Reason.MOVE for _, plan in cluster.plans()):
            return []
        # 2. Nothing to look at if nothing has changed, and no backoff has ended.
        if self._looked_at.is_at(_what_decides(cluster, now)):
            return []
        # 3. The pods that may go, as far as all of them find room together.
        decisions = self._move(cycle)
        self._looked_at.forget()
        if not cluster.stopped_at.get(self.name):
            self._looked_at.is_news(_what_decides(cluster, now))
        return decisions

    def next_wake(self, cluster: Cluster, now: float) -> float | None:
        """When a run that had to come to an end goes on, or else the first backoff of a workload ends."""
        if cluster.stopped_at.get(self.name):
            return now + GO_ON_SECONDS
        return min((time for time in _ends_of_backoffs(cluster) if time > now), default=None)

    def _learn(self, cluster: Cluster) -> None:
        """Note what the pools of a workload had free when its move failed; forget workloads that are gone."""
        if not any(setback.reason is Reason.MOVE for setback in cluster.setbacks.values()):
            return
        there = members(cluster)
        for workload, setback in list(cluster.setbacks.items()):
            if setback.reason is not Reason.MOVE:
                continue
            if workload not in there:
                cluster.forget_setback(workload)
                continue
            if not setback.seen:
                shape = there[workload][0].shape
                cluster.note_seen(workload, room_in(self._pools.own(shape), shape, cluster))

    def _move(self, cycle: Cycle) -> list[Decision]:
        cluster = cycle.cluster
        spilled = self._pools.spilled(cluster)
        of_workload = members(cluster) if spilled else {}
        moved = set[str]()
        in_vain = set[int]()
        decisions: list[Decision] = []
        for record in self._from_where_it_stopped(cluster, spilled):
            if cycle.is_over() and not moved:
                cluster.note_stopped(self.name, record.key)
                break
            own = self._pools.own(record.shape)
            workload = workload_of(record.pod)
            others = [member for member in of_workload[workload] if member.key not in moved]
            if record.shape.id in in_vain or not is_settled(others) or not self._may_try(record, own, cycle):
                continue
            row = self._row_for(record, own, cluster)
            if row == UNBOUND:
                in_vain.add(record.shape.id)
                continue
            names = " or ".join(pool.name for pool in own if pool.moves_back)
            reason = f"Moved back to node pool {names}: node {cluster.nodes.name(row)} has room"
            plan = Plan(Reason.MOVE, (Held(successor_of(cluster, record), row),), subject=workload)
            made = disrupt(cluster, cycle.queue, [record], Voluntary(reason), plan)
            if isinstance(made, Refusal):
                continue
            decisions += made.decisions
            moved.add(record.key)
            if len(moved) >= self._most:
                break
        return decisions

    def _from_where_it_stopped(self, cluster: Cluster, spilled: Sequence[PodRecord]) -> Sequence[PodRecord]:
        """The pods in their order, from the one at which the last run ended."""
        stopped_at = cluster.stopped_at.get(self.name)
        if stopped_at is not None:
            cluster.note_stopped(self.name, None)
        first = next((index for index, record in enumerate(spilled) if record.key == stopped_at), 0)
        return [*spilled[first:], *spilled[:first]]

    def _may_try(self, record: PodRecord, own: tuple[NodePool, ...], cycle: Cycle) -> bool:
        """Whether no move of a workload failed, or long enough ago, and its pools have other room than then."""
        setback = cycle.cluster.setbacks.get(workload_of(record.pod))
        if setback is None:
            return True
        return cycle.now >= again_at(setback) and room_in(own, record.shape, cycle.cluster) != setback.seen

    def _row_for(self, record: PodRecord, own: tuple[NodePool, ...], cluster: Cluster) -> int:
        """Where the scheduler would put a pod had it no place; UNBOUND if no pool that takes pods back is there."""
        back = rows_of([pool for pool in own if pool.moves_back], cluster)
        with cluster.what_if():
            cluster.release(record.key)
            row = self._rehearsal.place(cluster, [as_created(record.pod)]).rows.get(record.key, UNBOUND)
        return row if row != UNBOUND and back[row] else UNBOUND


def _ends_of_backoffs(cluster: Cluster) -> list[float]:
    return [again_at(setback) for setback in cluster.setbacks.values() if setback.reason is Reason.MOVE]


def _what_decides(cluster: Cluster, now: float) -> tuple[object, ...]:
    """A value that changes whenever anything does that a move could depend on."""
    over = sum(time <= now for time in _ends_of_backoffs(cluster))
    return (*cluster.description, cluster.pod_changes.position, cluster.pod_updates.position, over)
