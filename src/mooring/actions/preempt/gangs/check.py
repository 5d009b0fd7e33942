"""Whether a gang's members still fit where they are when others come back: asked in earnest, filter by filter."""

from collections.abc import Sequence, Set

from mooring.actions.preempt.gangs.demand import Want
from mooring.actions.preempt.pods.what_if import WhatIf
from mooring.engine.asking import ask_pre_filter
from mooring.state.cluster import Cluster
from mooring.state.placements import Released
from mooring.state.pods import PodRecord

MOST_CHECKS = 2_000
"""How many members are asked about at most; whoever has not been brought back by then has to go."""


class MembersInPlace:
    """The members of a gang on a cluster where they have their places, and those who might come back have not."""

    def __init__(self, cluster: Cluster, wants: Sequence[Want]) -> None:
        self._cluster = cluster
        self._left = MOST_CHECKS
        self._asked = [(want, self._what_if(want)) for want in wants]

    def _what_if(self, want: Want) -> WhatIf:
        filters = [
            (plugin, ask_pre_filter(plugin, want.shape, self._cluster))
            for plugin, _ in (*want.by_usage, *want.elsewhere)
        ]
        return WhatIf(self._cluster, want.shape, filters)

    def let_back(self, pods: Sequence[Released]) -> bool:
        """Bring pods back to their rows, with what they held there, if every member can keep its place."""
        moved = [(released.record, released.row) for released in pods]
        with self._cluster.what_if() as trial:
            # Which devices members get is not settled before they are bound: those of the pods are not among them.
            members = self._members_with_devices({released.row for released in pods})
            for record, _, _ in members:
                self._cluster.release(record.key)
            for released in pods:
                self._cluster.restore(released)
            self._count(moved, 1)
            if self._take_devices(members) and self._left > 0 and self.all_fit():
                trial.keep()
                return True
        self._count(moved, -1)
        return False

    def _members_with_devices(self, rows: Set[int]) -> list[tuple[PodRecord, int, WhatIf]]:
        return [
            (record, record.row, what_if)
            for want, what_if in self._asked
            for record in want.records
            if record.row in rows and self._cluster.takes_devices(record)
        ]

    def _take_devices(self, members: Sequence[tuple[PodRecord, int, WhatIf]]) -> bool:
        """Whether members can take devices one after the other: each may share what those before it opened, and with
        all of them in place none would be asked about the card that they share."""
        self._count([(record, row) for record, row, _ in members], -1)
        has_room = True
        for record, row, what_if in members:
            has_room = has_room and what_if.refusal(row) is None
            if has_room:
                self._cluster.assume(record.key, row)
            self._count([(record, row)], 1)
        return has_room

    def _count(self, pods: Sequence[tuple[PodRecord, int]], sign: int) -> None:
        for _, what_if in self._asked:
            what_if.count(pods, sign)

    def all_fit(self) -> bool:
        """Whether each member could come to its place, with all others in theirs; one for each row and shape."""
        for want, what_if in self._asked:
            one_a_row = {record.row: record for record in want.records if record.row >= 0}
            for row, record in one_a_row.items():
                self._left -= 1
                released = self._cluster.release(record.key)
                self._count([(record, row)], -1)
                refused = what_if.refusal(row)
                self._cluster.restore(released)
                self._count([(record, row)], 1)
                if refused is not None:
                    return False
        return True
