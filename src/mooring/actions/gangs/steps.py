"""The steps after the choice of nodes, for several pods at once: all of them may be bound, or what was reserved for any
of them is given back."""

from collections.abc import Sequence

from mooring.engine.binding import AFTER_RESERVE, reserve, unreserve
from mooring.engine.plugin import Reserve
from mooring.engine.queue.queue import Entry
from mooring.engine.verdict import Verdict
from mooring.state.cluster import Cluster
from mooring.state.placements import Checkpoint


class Reservations:
    """What plugins have reserved for pods that are assumed, to be given back in reverse.

    In a rehearsal, which only asks whether there is room, nothing is reserved.
    """

    def __init__(self, cluster: Cluster, *, is_rehearsal: bool = False) -> None:
        self._cluster = cluster
        self._is_rehearsal = is_rehearsal
        self._made: list[tuple[Entry, int, list[Reserve]]] = []

    # A checkpoint of the cluster and of what is reserved in it.

    def checkpoint(self) -> tuple[Checkpoint, int]:
        return self._cluster.checkpoint(), len(self._made)

    def commit(self, moment: tuple[Checkpoint, int]) -> None:
        self._cluster.commit(moment[0])

    def rollback(self, moment: tuple[Checkpoint, int]) -> None:
        self._undo_to(moment[1])
        self._cluster.rollback(moment[0])

    # The steps.

    def add(self, entry: Entry) -> Verdict | None:
        """Reserve for an assumed pod; a refusal reserves nothing for it."""
        if self._is_rehearsal:
            return None
        row = entry.record.row
        reserved: list[Reserve] = []
        refused = reserve(entry.profile, self._cluster, entry.record, row, reserved)
        self._made.append((entry, row, reserved))
        return refused

    def bind(self, entries: Sequence[Entry]) -> Verdict | None:
        """Take the pods through the remaining steps, each step with all of them; the first refusal ends it."""
        for step in AFTER_RESERVE if not self._is_rehearsal else ():
            for entry in entries:
                refused = step(entry.profile, self._cluster, entry.record, entry.record.row)
                if refused is not None:
                    return refused
        return None

    def undo(self) -> None:
        """Give back all that was reserved."""
        self._undo_to(0)

    def _undo_to(self, count: int) -> None:
        while len(self._made) > count:
            entry, row, reserved = self._made.pop()
            unreserve(self._cluster, entry.record, row, reserved)
