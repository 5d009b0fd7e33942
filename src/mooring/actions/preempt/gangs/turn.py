"""The turn of a gang that does not fit: may it evict others, whom, and where do its members then go?"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.members import needed_members
from mooring.actions.gangs.placing import GangPlacer, wants_place
from mooring.actions.preempt.gangs.search import BEFORE, Assignment, GangFound, Placing, find_for_gang
from mooring.actions.preempt.pods.eligible import ALREADY, NEVER, is_making_room
from mooring.actions.preempt.pods.search import InVain, VictimSearch
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.engine.binding import needs_steps
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.state.cluster import Cluster


def make_room_for_gang(
    search: VictimSearch, placer: GangPlacer, gang: GangEntry, now: float, costs: PreemptionCostArgs | None
) -> GangFound | InVain:
    """Find room for the members without which the gang is not whole."""
    cluster = search.cluster
    if not gang.may_preempt:
        return InVain(BEFORE + NEVER)
    if is_being_made_room_for(cluster, gang):
        return InVain(BEFORE + ALREADY)
    needed = needed_members(gang, cluster.gangs)
    if not needed:
        return InVain(BEFORE + ALREADY)  # its members are leaving since another's turn in this cycle
    return find_for_gang(
        search,
        [(entry.record, entry.profile) for entry in needed],
        gang.priority,
        _placing(placer, gang, needed),
        domains=_domains(cluster, placer, gang),
        only_filters=not wants_place(cluster, gang),
        now=now,
        costs=costs,
    )


def is_being_made_room_for(cluster: Cluster, gang: GangEntry) -> bool:
    """Whether pods that were preempted are still leaving a node that the world says a member is nominated to."""
    names = {entry.record.pod.status.nominated_node_name for entry in gang.entries.values()} - {""}
    rows = [cluster.nodes.row_of[name] for name in names if name in cluster.nodes.row_of]
    priority = gang.priority
    return any(
        other.priority < priority and is_making_room(other) for row in sorted(rows) for other in cluster.pods.on(row)
    )


def _placing(placer: GangPlacer, gang: GangEntry, needed: Sequence[Entry]) -> Placing:
    """Place the gang as it is placed otherwise; the steps after the choice are for when its room is there."""
    kinds = {(entry.profile.name, entry.record.shape.id): entry for entry in needed}.values()
    has_steps = any(needs_steps(entry.profile, entry.record.shape) for entry in kinds)

    def place(cluster: Cluster) -> Assignment | None:
        if has_steps and not wants_place(cluster, gang):
            return _one_by_one(placer, cluster, needed)
        if placer.try_together(cluster, gang, needed) is not None:
            return None
        return [(entry.record, entry.record.row) for entry in needed]

    return place


def _one_by_one(placer: GangPlacer, cluster: Cluster, needed: Sequence[Entry]) -> Assignment | None:
    with cluster.what_if() as trial:
        for entry in needed:
            row = placer.batches.choose(cluster, entry.profile, entry.record.shape)
            if row < 0:
                return None
            cluster.assume(entry.record.key, row)
        trial.keep()
    return [(entry.record, entry.record.row) for entry in needed]


def _domains(cluster: Cluster, placer: GangPlacer, gang: GangEntry) -> NDArray[np.int32] | None:
    """By row: the domain that all members have to share; only that in which some run already."""
    topology_request = gang.root.gang.topology_request if gang.root.gang is not None else None
    if topology_request is None or topology_request.required is None:
        return None
    tree = placer.located.tree(cluster, topology_request)
    if tree.depth_of(topology_request.required) is None:
        return None
    codes = tree.codes(topology_request.required)
    running = [record.row for part in cluster.gangs.parts_of(gang.root) for record in part.bound()]
    return np.where(codes == codes[running[0]], codes, -1) if running else codes
