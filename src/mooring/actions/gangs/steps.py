"""The steps after the choice of nodes, for several pods at once: all of them may be bound, or what was reserved for any
of them is given back."""

from collections.abc import Sequence

from mooring.engine.binding import permit_and_bind, reserve
from mooring.engine.plugin import Reserve
from mooring.engine.queue import Entry
from mooring.engine.verdict import Verdict
from mooring.state.cluster import Cluster


class Reservations:
    """What plugins have reserved for pods that are assumed, to be given back in reverse."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made: list[tuple[Entry, int, list[Reserve]]] = []

    def add(self, entry: Entry) -> Verdict | None:
        """Reserve for an assumed pod; a refusal reserves nothing for it."""
        row = entry.record.row
        reserved: list[Reserve] = []
        refused = reserve(entry.profile, self._cluster, entry.record, row, reserved)
        self._made.append((entry, row, reserved))
        return refused

    def bind(self, entries: Sequence[Entry]) -> Verdict | None:
        """Take every pod through the remaining steps; the first refusal ends it."""
        for entry in entries:
            refused = permit_and_bind(entry.profile, self._cluster, entry.record, entry.record.row)
            if refused is not None:
                return refused
        return None

    def undo(self) -> None:
        for entry, row, reserved in reversed(self._made):
            for plugin in reversed(reserved):
                self._cluster.observe(*plugin.unreserve(entry.record, self._cluster, row))
        self._made.clear()
