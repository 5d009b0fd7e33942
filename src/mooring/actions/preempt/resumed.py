"""Room that was being made before this scheduler saw it: the world says who is nominated where, and who is leaving.

So a scheduler that was started anew goes on where another stopped: nobody else takes the room, and nobody else must go.
"""

from collections.abc import Sequence

from mooring.actions.preempt.pods.search import VictimSearch
from mooring.engine.disruption import nominate
from mooring.engine.follow_up import all_fit
from mooring.engine.queue.queue import Entry, Queue
from mooring.model.keys import NO_GANG, GangKey
from mooring.state.plans import Plan


def resume(
    search: VictimSearch, queue: Queue, entries: Sequence[Entry], priority: int, gang: GangKey = NO_GANG
) -> Plan | None:
    """Nominate pods to where the world has nominated them, if all fit there once those have left who are leaving."""
    cluster = search.cluster
    found = [cluster.nodes.row_of.get(entry.record.pod.status.nominated_node_name) for entry in entries]
    rows = [row for row in found if row is not None]
    leaving = [
        other
        for row in sorted(set(rows))
        for other in cluster.pods.on(row)
        if other.priority < priority and other.shape.terminating
    ]
    if not rows or len(rows) < len(entries) or not leaving:
        return None
    with search.running.supposing():
        for other in leaving:
            cluster.release(other.key)
        for entry, row in zip(entries, rows, strict=True):
            cluster.assume(entry.record.key, row)
        if not all_fit(cluster, entries):
            return None
    for other in leaving:
        cluster.mark_leaving(other.key)
    return nominate(cluster, queue, entries, rows, leaving, gang)
