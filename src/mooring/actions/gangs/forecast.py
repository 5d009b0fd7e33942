"""What would be if others were gone: whether a gang could ever fit, where, and when at the earliest."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.domains import TooSmall, choose
from mooring.actions.gangs.members import Group, grouped, needed_members
from mooring.actions.gangs.placing import GangPlacer, wants_place
from mooring.actions.gangs.units import unit_of
from mooring.engine.plugin import Mask
from mooring.engine.queue import Entry, GangEntry
from mooring.model.durations import duration_seconds
from mooring.model.meta import timestamp_seconds
from mooring.model.pods import Pod
from mooring.state.cluster import Cluster
from mooring.state.nodes import MISSING
from mooring.state.pods import UNBOUND, PodRecord


class KnownEnd(NamedTuple):
    """What a pod that runs says about its end."""

    pod: Pod
    first_seen: float
    """Stands for its start while the world does not tell it."""
    end: float | None


class Forecast:
    """Looks at a cluster as it would be; leaves it as it is."""

    def __init__(self, placer: GangPlacer) -> None:
        self._placer = placer
        self._ends: dict[str, KnownEnd] = {}
        self._could_fit: dict[str, tuple[Any, bool]] = {}

    def could_ever_fit(self, cluster: Cluster, gang: GangEntry) -> bool:
        """Whether a gang would fit if nothing else ran: else room would be kept for it in vain."""
        moment = (cluster.description, cluster.gangs.version, tuple(gang.entries))
        known = self._could_fit.get(gang.root.key)
        if known is None or known[0] != moment:
            if len(self._could_fit) > 2 * len(cluster.gangs.records):
                self._could_fit.clear()
            known = self._could_fit[gang.root.key] = (moment, self._fits_alone(cluster, gang))
        return known[1]

    def _fits_alone(self, cluster: Cluster, gang: GangEntry) -> bool:
        needed = needed_members(gang, cluster.gangs)
        groups = grouped(needed, cluster.gangs)
        rooms = [self._empty_room(cluster, group) for group in groups]
        if any(int(room.sum()) < group.size for room, group in zip(rooms, groups, strict=True)):
            return False
        if len(groups) == 1 and self._placer.located.fits(cluster, groups[0]).is_exact:
            unit = unit_of(gang.root, groups, cluster.gangs)
            if not wants_place(cluster, gang):
                return True
            if not unit.parts and not unit.running:
                tree = self._placer.located.tree(cluster, unit.wish)
                return not isinstance(choose(tree, rooms[0], groups[0].size, unit.wish), TooSmall)
        mine = {member.key for part in cluster.gangs.parts_of(gang.root) for member in part.bound()}
        others = [found for found in cluster.pods.records.values() if found.row != UNBOUND and found.key not in mine]
        return self._rows_without(cluster, gang, needed, others) is not None

    def _empty_room(self, cluster: Cluster, group: Group) -> NDArray[np.int64]:
        """How many members of a group each row would take if it were empty."""
        settled = self._placer.rooms.of(group.profile, cluster, group.shape).answers.settled
        nodes = cluster.rows(settled.rows)
        counts = nodes.allowed_pods
        for resource, amount in group.shape.requests.items():
            if amount:
                counts = np.minimum(counts, nodes.allocatable(resource) // amount)
        room = np.zeros(cluster.nodes.end, np.int64)
        room[settled.rows] = counts
        return room

    # Where.

    def place_for(self, cluster: Cluster, gang: GangEntry, now: float) -> Mask | None:
        """The rows among which all members of a gang have to be, where it is likely to fit first; None: anywhere."""
        wish = gang.root.gang.wish if gang.root.gang is not None else None
        if wish is None or wish.required is None:
            return None
        tree = self._placer.located.tree(cluster, wish)
        if tree.depth_of(wish.required) is None:
            return None
        codes = tree.codes(wish.required)
        rows = [member.row for part in cluster.gangs.parts_of(gang.root) for member in part.bound()]
        rows = rows or self._earliest(cluster, gang, now)[1]
        code = int(codes[rows[0]]) if rows else self._roomiest(cluster, gang, codes)
        return None if code == MISSING else np.asarray(codes == code)

    def _roomiest(self, cluster: Cluster, gang: GangEntry, codes: NDArray[np.int32]) -> int:
        """Of the domains that would hold a gang if they were empty, the one where least has to go."""
        inside = codes != MISSING
        if not inside.any():
            return MISSING
        count = int(codes.max()) + 1
        share, can_hold = np.full(count, np.inf), np.ones(count, np.bool_)
        for group in grouped(needed_members(gang, cluster.gangs), cluster.gangs):
            empty, free = self._empty_room(cluster, group), self._placer.located.fits(cluster, group).counts
            where = inside[: len(empty)]
            domains = codes[: len(empty)][where]
            can_hold &= np.bincount(domains, np.minimum(empty[where], group.size), count) >= group.size
            share = np.minimum(share, np.bincount(domains, np.minimum(free[where], group.size), count) / group.size)
        return int(np.where(can_hold, share, -1.0).argmax()) if can_hold.any() else MISSING

    # When.

    def start(self, cluster: Cluster, gang: GangEntry, now: float) -> float:
        """The earliest moment at which a gang fits by what is known of the ends of those that run; inf if none is."""
        return self._earliest(cluster, gang, now)[0]

    def _earliest(self, cluster: Cluster, gang: GangEntry, now: float) -> tuple[float, list[int]]:
        """That moment, and where the members go then."""
        ends = self._known_ends(cluster, now)
        needed = needed_members(gang, cluster.gangs)

        def rows_after(count: int) -> list[int] | None:
            return self._rows_without(cluster, gang, needed, [record for _, record in ends[:count]])

        too_few, enough = 0, 1
        while (found := rows_after(min(enough, len(ends)))) is None:
            if enough >= len(ends):
                return math.inf, []
            too_few, enough = enough, 2 * enough
        enough = min(enough, len(ends))
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            rows = rows_after(middle)
            if rows is None:
                too_few = middle
            else:
                enough, found = middle, rows
        return (ends[enough - 1][0] if ends else now), found

    def _known_ends(self, cluster: Cluster, now: float) -> list[tuple[float, PodRecord]]:
        """The pods that run and say for how long, the first to end in front."""
        found: list[tuple[float, PodRecord]] = []
        ends: dict[str, KnownEnd] = {}
        for key, record in cluster.pods.records.items():
            if record.row == UNBOUND:
                continue
            known = self._ends.get(key)
            if known is None or known.pod is not record.pod:
                known = _known_end(record.pod, known, now)
            if known.end is not None:
                ends[key] = known
                found.append((max(now, known.end), record))
        self._ends = ends
        return sorted(found, key=lambda end: end[0])

    def _rows_without(
        self, cluster: Cluster, gang: GangEntry, needed: Sequence[Entry], gone: Sequence[PodRecord]
    ) -> list[int] | None:
        """Where the members would go if some pods were gone; None if they do not fit even then."""
        checkpoint = cluster.checkpoint()
        for record in gone:
            cluster.release(record.key)
        fits = self._placer.try_together(cluster, gang, needed) is None
        rows = [entry.record.row for entry in needed]
        cluster.rollback(checkpoint)
        return rows if fits else None


def _known_end(pod: Pod, before: KnownEnd | None, now: float) -> KnownEnd:
    is_same = before is not None and before.pod.metadata.uid == pod.metadata.uid
    first_seen = before.first_seen if before is not None and is_same else now
    duration = duration_seconds(pod)
    started = timestamp_seconds(pod.status.start_time)
    end = None if duration is None else (first_seen if started is None else started) + duration
    return KnownEnd(pod, first_seen, end)
