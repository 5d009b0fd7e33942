"""Room for a pod that grows where it runs, by moving others: each finds another place, which is held for it.

A move costs what a preemption costs, a restart, and leaves nothing without a place. So it is preferred, unless more
pods would have to move than a preemption would evict. Pods of queues and gangs, of higher priority, and those that are
there for their node stay.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.actions.preempt.pods.search import refusals
from mooring.engine.disruption import Refusal, Voluntary, as_created, disrupt, successor_of
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Queue
from mooring.model.decisions import Decision
from mooring.model.jobs.expansion import controller_of
from mooring.state.cluster import Cluster
from mooring.state.plans import Held, Plan, Reason, owner_of
from mooring.state.pods import PodRecord

FOR_THEIR_NODE = frozenset(("DaemonSet", "Node"))
MOST_MOVED = 4
"""So many pods move for one at the most."""


class Move(NamedTuple):
    """A pod that leaves, and the row that is held for its successor."""

    record: PodRecord
    row: int


def find_moves(
    cluster: Cluster, rehearsal: Rehearsal, profile: Profile, record: PodRecord, most: int
) -> list[Move] | None:
    """The pods to move for one to fit on its own node with what it asks for now; None if no few would do."""
    home = record.row
    shape = cluster.shape_for(as_created(record.pod))
    elsewhere = [int(row) for row in cluster.nodes.live_rows() if row != home]

    def fits() -> bool:
        with cluster.what_if():
            cluster.release(record.key)
            return bool(len(refusals(profile, cluster, shape, np.array([home], np.intp)).feasible))

    def move(one: PodRecord) -> Move | None:
        cluster.release(one.key)
        placed = rehearsal.place(cluster, [as_created(one.pod)], elsewhere)
        return None if placed.problem or one.key not in placed.rows else Move(one, placed.rows[one.key])

    candidates = sorted(
        (one for one in cluster.pods.on(home) if _may_move(cluster, one, record)),
        key=lambda one: (one.priority, one.key),
    )
    for one in candidates if most else ():
        with cluster.what_if():
            found = move(one)
            if found is not None and fits():
                return [found]
    moves: list[Move] = []
    with cluster.what_if():
        for one in candidates:
            if len(moves) == min(most, MOST_MOVED):
                return None
            with cluster.what_if() as trial:
                found = move(one)
                if found is None:
                    continue
                trial.keep()
            moves.append(found)
            if fits():
                return moves
    return None


def _may_move(cluster: Cluster, one: PodRecord, grower: PodRecord) -> bool:
    owner = controller_of(one.pod.metadata)
    is_settled = not one.nominated and not one.assumed and one.leaving is None
    return (
        one.key != grower.key
        and is_settled
        and owner is not None
        and owner.kind not in FOR_THEIR_NODE
        and one.priority <= grower.priority
        and one.key not in cluster.tenants.workload_of
        and cluster.gangs.of(one.key) is None
    )


def adopt_moves(cluster: Cluster, queue: Queue, moves: Sequence[Move], grower: PodRecord) -> list[Decision] | None:
    """Let pods leave for the rows that are held for their successors; None if something protects one of them."""
    message = f"Moved for {grower.key}, which grows in place on node {grower.node_name}"
    decisions: list[Decision] = []
    with cluster.what_if() as trial:
        for one, row in moves:
            held = Held(successor_of(cluster, one), row)
            plan = Plan(Reason.MOVE, (held,), subject=owner_of(one.pod), message=message)
            made = disrupt(cluster, queue, [one], Voluntary(message), plan)
            if isinstance(made, Refusal):
                return None
            decisions += made.decisions
        trial.keep()
    return decisions
