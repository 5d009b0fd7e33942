"""Room that was being made before this scheduler saw it: the world says who is nominated where, and who is leaving.

So a scheduler that was started anew goes on where another stopped: nobody else takes the room, and nobody else must go.
"""

from collections.abc import Sequence

from mooring.actions.preempt.nominations import Leaving, Nomination, fits, seat_of
from mooring.actions.preempt.pods.search import Search
from mooring.engine.queue.queue import Entry


def resumed(search: Search, entries: Sequence[Entry], priority: int, gang: str = "") -> Nomination | None:
    """The seats that the world has nominated pods to, if they all fit there once those have left who are leaving."""
    cluster = search.cluster
    rows = [cluster.nodes.row_of.get(entry.record.pod.status.nominated_node_name) for entry in entries]
    seats = tuple(seat_of(entry, row, cluster) for entry, row in zip(entries, rows, strict=True) if row is not None)
    leaving = [
        other
        for row in sorted({seat.row for seat in seats})
        for other in cluster.pods.on(row)
        if other.priority < priority and other.shape.terminating
    ]
    if not seats or len(seats) < len(entries) or not leaving:
        return None
    nomination = Nomination(seats, tuple(Leaving.of(other) for other in leaving), gang)
    with search.running.supposing():
        for other in leaving:
            cluster.release(other.key)
        for seat in seats:
            cluster.assume(seat.key, seat.row)
        return nomination if fits(search, nomination) else None
