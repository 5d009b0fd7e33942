"""What would be if others were gone: whether a gang could ever fit, where, and when."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.members import Group, grouped, needed_members, unit_of
from mooring.actions.gangs.placing import GangPlacer, wants_place
from mooring.actions.gangs.topology.domains import TooSmall, choose
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.model.values.durations import duration_seconds
from mooring.state.cluster import Cluster
from mooring.state.forecasts import GangForecast, Going, KnownEnd
from mooring.state.nodes import MISSING
from mooring.state.pods import UNBOUND
from mooring.state.remembered import Derived

MOST_KEPT = 4096
"""Of so many gangs it is known whether they could fit."""


class Forecast:
    """Looks at a cluster as it would be; leaves it as it is."""

    def __init__(self, placer: GangPlacer) -> None:
        self._placer = placer
        self._could_fit: Derived[str, tuple[Any, bool]] = Derived(MOST_KEPT)

    def could_ever_fit(self, cluster: Cluster, gang: GangEntry) -> bool:
        """Whether a gang would fit if nothing else ran: else room would be kept for it in vain."""
        declared = [gang.root.gang, *(part.gang for part in cluster.gangs.parts_of(gang.root))]
        moment = (cluster.description, declared, tuple(gang.entries))
        known = self._could_fit.get(gang.root.key)
        if known is None or known[0] != moment:
            known = self._could_fit.put(gang.root.key, (moment, self._fits_alone(cluster, gang)))
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
                tree = self._placer.located.tree(cluster, unit.topology_request)
                return not isinstance(choose(tree, rooms[0], groups[0].size, unit.topology_request), TooSmall)
        mine = {member.key for part in cluster.gangs.parts_of(gang.root) for member in part.bound()}
        records = cluster.pods.records.values()
        others = [(math.inf, found) for found in records if found.row != UNBOUND and found.key not in mine]
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

    def saw_start(self, cluster: Cluster, pods: Iterable[Pod], now: float) -> None:
        """Pods are bound now: they end in time after this, whenever the world tells of their start."""
        for pod in pods:
            said = _known_end(pod, None, now)
            if said.end is not None:
                cluster.forecasts.expect_end(pod.key, said)

    # Where and when.

    def plan(self, cluster: Cluster, gang: GangEntry, now: float) -> GangForecast | None:
        """Where a gang's members go once others have ended, and when that is; None if they do not fit even then.

        A plan is kept as long as it holds: those that have to go become fewer, and nobody comes to where they were.
        """
        needed = needed_members(gang, cluster.gangs)
        plan = self._as_it_still_holds(cluster, gang, needed) or self._new_plan(cluster, gang, needed, now)
        cluster.forecasts.expect(plan)
        return plan

    def _as_it_still_holds(self, cluster: Cluster, gang: GangEntry, needed: Sequence[Entry]) -> GangForecast | None:
        plan, records = cluster.forecasts.of_gang, cluster.pods.records
        if plan is None or plan.members != tuple(entry.record.key for entry in needed):
            return None
        gone = [going for going in plan.gone if records.get(going[1].key) is going[1] and going[1].row != UNBOUND]
        rows = self._rows_without(cluster, gang, needed, gone)
        return None if rows is None else GangForecast(gang.root.key, plan.members, tuple(rows), tuple(gone))

    def _new_plan(self, cluster: Cluster, gang: GangEntry, needed: Sequence[Entry], now: float) -> GangForecast | None:
        """The fewest that have to go, in the order in which they are likely to."""
        going = self._in_order_of_going(cluster, gang, now)
        found: list[int] | None = None
        too_few, enough = 0, 1
        while found is None and too_few < len(going):
            enough = min(enough, len(going))
            found = self._rows_without(cluster, gang, needed, going[:enough])
            if found is None:
                too_few, enough = enough, 2 * enough
        while found is not None and enough - too_few > 1:
            middle = (too_few + enough) // 2
            rows = self._rows_without(cluster, gang, needed, going[:middle])
            too_few, enough, found = (middle, enough, found) if rows is None else (too_few, middle, rows)
        if found is None:
            return None
        members = tuple(entry.record.key for entry in needed)
        taken = set(found)
        in_the_way = [(end, record) for end, record in going[:enough] if record.row in taken]
        rows = self._rows_without(cluster, gang, needed, in_the_way)
        if rows is None:
            rows, in_the_way = found, going[:enough]
        return GangForecast(gang.root.key, members, tuple(rows), tuple(in_the_way))

    def _in_order_of_going(self, cluster: Cluster, gang: GangEntry, now: float) -> list[Going]:
        """Those that run: by their ends, as far as they are known; then the others, where there is least to go."""
        mine = {key for part in cluster.gangs.parts_of(gang.root) for key in part.members}
        below = gang.priority if gang.may_preempt else -math.inf
        known: list[Going] = []
        unknown: list[Going] = []
        before, ends = cluster.forecasts.ends, dict[PodKey, KnownEnd]()
        for key, record in cluster.pods.records.items():
            if record.row == UNBOUND or key in mine:
                continue
            said = before.get(key)
            if said is None or said.pod is not record.pod:
                said = _known_end(record.pod, said, now)
            if said.end is not None:
                ends[key] = said
            if record.priority < below:
                known.append((now, record))  # it makes way as soon as that is of use
            elif said.end is not None:
                known.append((max(now, said.end), record))
            else:
                unknown.append((math.inf, record))
        cluster.forecasts.expect_ends(ends)
        if unknown:
            load = self._load(cluster, gang)
            unknown.sort(key=lambda going: (load[going[1].row], going[1].row))
        return sorted(known, key=lambda going: going[0]) + unknown

    def _load(self, cluster: Cluster, gang: GangEntry) -> list[float]:
        """How full each row is of what a gang asks for; those outside the place where it fits first count as fuller."""
        groups = grouped(needed_members(gang, cluster.gangs), cluster.gangs)
        nodes = cluster.rows(np.arange(cluster.nodes.end))
        load = np.zeros(len(nodes))
        for resource in {name for group in groups for name, amount in group.shape.requests.items() if amount}:
            load = np.maximum(load, nodes.requested(resource) / np.maximum(nodes.allocatable(resource), 1))
        topology_request = gang.root.gang.topology_request if gang.root.gang is not None else None
        if topology_request is not None and topology_request.required is not None:
            tree = self._placer.located.tree(cluster, topology_request)
            if tree.depth_of(topology_request.required) is not None:
                codes = tree.codes(topology_request.required)[: len(load)]
                load += 2.0 * (codes != self._roomiest(cluster, groups, codes))
        found: list[float] = load.tolist()
        return found

    def _roomiest(self, cluster: Cluster, groups: Sequence[Group], codes: NDArray[np.int32]) -> int:
        """Of the domains that would hold a gang if they were empty, the one where least has to go."""
        inside = codes != MISSING
        count = int(codes.max(initial=MISSING)) + 1
        share, can_hold = np.full(count, np.inf), np.ones(count, np.bool_)
        for group in groups:
            empty, free = self._empty_room(cluster, group), self._placer.located.fits(cluster, group).counts
            for column, is_empty in ((empty, True), (free, False)):
                held = np.bincount(codes[inside], np.minimum(column[inside], group.size), count) / group.size
                if is_empty:
                    can_hold &= held >= 1.0
                else:
                    share = np.minimum(share, held)
        return int(np.where(can_hold, share, -1.0).argmax()) if count else MISSING

    def _rows_without(
        self, cluster: Cluster, gang: GangEntry, needed: Sequence[Entry], gone: Sequence[Going]
    ) -> list[int] | None:
        """Where the members would go if some pods were gone; None if they do not fit even then."""
        with cluster.what_if():
            for _, record in gone:
                cluster.release(record.key)
            fits = self._placer.try_together(cluster, gang, needed) is None
            return [entry.record.row for entry in needed] if fits else None


def _known_end(pod: Pod, before: KnownEnd | None, now: float) -> KnownEnd:
    is_same = before is not None and before.pod.metadata.uid == pod.metadata.uid
    first_seen = before.first_seen if before is not None and is_same else now
    duration = duration_seconds(pod)
    started = timestamp_seconds(pod.status.start_time)
    end = None if duration is None else (first_seen if started is None else started) + duration
    return KnownEnd(pod, first_seen, end)
