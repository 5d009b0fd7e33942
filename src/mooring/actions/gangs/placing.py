"""One gang, placed whole or not at all.

Whatever is tried happens in a trial: a gang that does not fit leaves nothing behind.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mooring.actions.batches import Batches
from mooring.actions.gangs.members import (
    Group,
    KnownRefusals,
    all_members,
    grouped,
    likeness,
    members_to_start,
    needed_members,
)
from mooring.actions.gangs.room import RoomColumns
from mooring.actions.gangs.search import PlacementSearch, domain_keys, wants_others
from mooring.actions.gangs.topology.located import Located
from mooring.engine.answers.answers import ShapeAnswers
from mooring.engine.binding import Steps, decisions_to_bind, needs_steps
from mooring.engine.permits import PermitHold
from mooring.engine.plugin import Change
from mooring.engine.queue.queue import Entry, GangEntry, Queue
from mooring.engine.queue.shared import SharedQueues
from mooring.model.api.meta import Resources
from mooring.model.decisions import Decision
from mooring.model.keys import NO_GANG, GangKey
from mooring.model.values.requests import column_amounts
from mooring.state.amounts import exact_sum
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord, GangTable
from mooring.state.shapes import Shape

MOST_LEFT_OUT = 8
"""How many gangs inside a gang are left out in turn, where it takes only some of them."""


@dataclass(frozen=True)
class GangOutcome:
    """The members that were placed, or why none was."""

    placed: Sequence[Entry] = ()
    message: str = ""
    helped_by: Change = Change.ANY
    moved_by: Callable[[Shape], bool] = lambda shape: True
    hold: PermitHold | None = None
    """Set if there is room for them, and a permit plugin lets them wait in it."""


class GangPlacer:
    """Places gangs, one at a time."""

    def __init__(self, batches: Batches, shared: SharedQueues | None = None) -> None:
        self.batches = batches
        self._shared = shared or SharedQueues()
        self.rooms = RoomColumns(batches)
        self.located = Located(self.rooms)
        self._refusals = KnownRefusals()

    def place(self, cluster: Cluster, gang: GangEntry) -> GangOutcome:
        """Assume a place for every member that the gang needs, or for none."""
        needed = needed_members(gang, cluster.gangs)
        if not needed:
            return GangOutcome((), f"gang {gang.name}: its members are on their way out")
        groups = grouped(needed, cluster.gangs)
        # 1. What did not fit a moment ago, with nothing since, does not fit now either.
        alike = likeness(cluster, gang, groups)
        known = self._refusals.get(cluster, alike) if self.batches.cached else ""
        message = known or _lacks_resources(cluster, gang)
        if not message:
            # 2. Whoever wants a certain place tries it with all members first, so that the place has room for them.
            steps = Steps(cluster)
            more = self._as_many_as_fit(cluster, gang, needed)
            if more and self._try(cluster, gang, grouped(more, cluster.gangs), steps) is None:
                return GangOutcome(more)
            # 3. All that it needs, or nothing.
            if not steps.holds:
                message = self._try(cluster, gang, groups, steps) or ""
                if not message:
                    return GangOutcome(needed)
            if steps.holds:
                return GangOutcome(hold=steps.holds[-1])
            # 4. Of gangs of which it takes only some, perhaps others.
            others = self._other_parts(cluster, gang, needed)
            if others:
                return GangOutcome(others)
            self._refusals.note(cluster, alike, message)
        return self._outcome(cluster, gang, groups, message)

    def _other_parts(self, cluster: Cluster, gang: GangEntry, needed: list[Entry]) -> list[Entry]:
        """Members of other gangs inside a gang that would do as well, and fit; who has no room alone is left out."""
        table = cluster.gangs
        is_choosy = gang.root.gang is not None and gang.root.gang.of_gangs
        besides = set[GangKey]()
        for _ in range(MOST_LEFT_OUT if is_choosy else 0):
            inside: dict[GangKey, list[Entry]] = {}
            for entry in needed:
                inside.setdefault(_child_of(gang.root, entry, table), []).append(entry)
            too_large = (key for key, entries in inside.items() if self._too_small(cluster, grouped(entries, table)))
            besides.add(next(too_large, NO_GANG))
            needed = needed_members(gang, table, besides) if NO_GANG not in besides else []
            if not needed:
                break
            if self._try(cluster, gang, grouped(needed, table), Steps(cluster)) is None:
                return needed
        return []

    def _as_many_as_fit(self, cluster: Cluster, gang: GangEntry, needed: Sequence[Entry]) -> list[Entry]:
        """The members that a gang which wants a place needs, with as many more as fit there; nothing if none do."""
        if not wants_place(cluster, gang):
            return []
        everybody = all_members(gang, cluster.gangs)
        must = {entry.record.key for entry in needed}
        spare = [entry.record.key for entry in everybody if entry.record.key not in must]
        fitting, too_many = 0, len(spare) + 1
        trying = len(spare)
        while trying > fitting:
            chosen = must.union(spare[:trying])
            members = [entry for entry in everybody if entry.record.key in chosen]
            with cluster.what_if():
                fits = self.try_together(cluster, gang, members) is None
            fitting, too_many = (trying, too_many) if fits else (fitting, trying)
            if gang.root.gang is not None and gang.root.gang.of_gangs:
                break  # some of them might be half a gang
            trying = (fitting + too_many) // 2
        chosen = must.union(spare[:fitting])
        return [entry for entry in everybody if entry.record.key in chosen] if fitting else []

    def likeness(self, cluster: Cluster, gang: GangEntry) -> Any:
        """What a gang has in common with others that fit if it does, and only then; None if nothing follows from it."""
        return likeness(cluster, gang, grouped(needed_members(gang, cluster.gangs), cluster.gangs))

    def place_message(self, cluster: Cluster, gang: GangEntry) -> str:
        """Why a gang would not be placed now; empty if it would. Nothing is left behind."""
        message = _lacks_resources(cluster, gang)
        if not message:
            with cluster.what_if():
                message = self.try_together(cluster, gang, self.members_to_start(cluster, gang)) or ""
        return message and f"gang {gang.name}: {message}"

    def members_to_start(self, cluster: Cluster, gang: GangEntry) -> list[Entry]:
        """What has to fit for a gang to start."""
        queue = self._shared.of_gang(cluster, gang.root)
        is_first = queue is not None and queue.family.counts_best_effort_first
        return members_to_start(gang, cluster.gangs, best_effort_first=is_first)

    def try_together(self, cluster: Cluster, gang: GangEntry, entries: Sequence[Entry]) -> str | None:
        """Assume a place for each of some members; None if that succeeded, else why not, with nothing left behind."""
        return self._try(cluster, gang, grouped(list(entries), cluster.gangs), Steps(cluster, is_rehearsal=True))

    def place_members(self, cluster: Cluster, gang: GangEntry, entries: Sequence[Entry]) -> GangOutcome:
        """Assume a place for each of some members, to be bound there: plugins get what they do then."""
        steps = Steps(cluster)
        message = self._try(cluster, gang, grouped(list(entries), cluster.gangs), steps)
        if message is None:
            return GangOutcome(entries)
        return GangOutcome((), message, hold=steps.holds[-1] if steps.holds else None)

    def _try(self, cluster: Cluster, gang: GangEntry, groups: Sequence[Group], steps: Steps) -> str | None:
        with cluster.what_if() as trial, cluster.claims.rearranging():
            if wants_place(cluster, gang):
                message = self.located.place(cluster, gang, groups, steps)
            else:
                message = self._anywhere(cluster, groups, steps)
            if message is not None:
                return message
            stepping = [entry for group in groups if _has_steps(group) for entry in group.entries]
            refused = steps.bind(stepping)
            if refused is not None and refused.hold_seconds is not None:
                members = [entry for group in groups for entry in group.entries]
                steps.holds.append(PermitHold(tuple(members), tuple(entry.record.row for entry in members), refused))
                return f"one of them {'; '.join(refused.reasons)}"
            if refused is not None:
                return f"{refused.plugin} refuses one of them: {'; '.join(refused.reasons)}"
            trial.keep()
        return None

    def _anywhere(self, cluster: Cluster, groups: Sequence[Group], steps: Steps) -> str | None:
        short = self._too_small(cluster, groups)
        if short:
            return short
        placed = self._greedily(cluster, groups, steps)
        total = sum(group.size for group in groups)
        if placed == total:
            return None
        if (len(groups) > 1 or domain_keys(groups[0].shape)) and not any(map(_has_steps, groups)):
            search = PlacementSearch(cluster, self.rooms, groups)
            if search.run():
                return None
            placed = max(placed, search.most_placed)
        return f"room for {placed} of {total} members"

    def _greedily(self, cluster: Cluster, groups: Sequence[Group], steps: Steps) -> int:
        """Place group by group, the scarcest first; say how many had a place. Nothing is left behind but all."""
        count = 0
        with cluster.what_if() as trial:
            for group in sorted(groups, key=lambda group: self._scarcity(cluster, group)):
                if _has_steps(group):
                    placed = self._step_by_step(cluster, group, steps)
                else:
                    placed = len(self.batches.place(cluster, list(group.entries), all_at_once=True).placed)
                count += placed
                if placed < group.size:
                    return count
            trial.keep()
        return count

    def _step_by_step(self, cluster: Cluster, group: Group, steps: Steps) -> int:
        """Place members for whom plugins have something to do once a node is chosen."""
        for index, entry in enumerate(group.entries):
            row = self.batches.choose(cluster, group.profile, group.shape)
            if row < 0:
                return index
            cluster.assume(entry.record.key, row)
            if steps.reserve(entry) is not None:
                return index
        return group.size

    def _scarcity(self, cluster: Cluster, group: Group) -> tuple[bool, float]:
        """Whoever wants to be near others comes behind them; of the rest, who has least room for its number first."""
        counts = self.rooms.of(group.profile, cluster, group.shape).counts
        return wants_others(group.shape), float(np.minimum(counts, group.size).sum()) / group.size

    def _too_small(self, cluster: Cluster, groups: Sequence[Group]) -> str:
        """Say so if some group does not even fit by itself."""
        for group in groups:
            room = self.rooms.of(group.profile, cluster, group.shape)
            if room.answers.refused and wants_others(group.shape):
                continue  # those others may be in the gang
            fitting = int(np.minimum(room.counts, group.size).sum())
            if fitting < group.size:
                total = sum(other.size for other in groups)
                if len(groups) == 1:
                    return f"room for {fitting} of {total} members"
                which = f" {group.role}" if group.role else ""
                return f"room for {fitting} of {group.size}{which} members, of {total} in all"
        return ""

    def _outcome(self, cluster: Cluster, gang: GangEntry, groups: Sequence[Group], message: str) -> GangOutcome:
        distinct = {(group.profile.name, group.shape.id): group for group in groups}.values()
        answers = [self.rooms.of(group.profile, cluster, group.shape).answers for group in distinct]
        helped_by = Change.NODE | Change.POD_GONE | Change.RELATED
        for kept in answers:
            helped_by |= kept.helped_by()
        return GangOutcome((), f"gang {gang.name}: {message}", helped_by, _any_moved(answers))


def _child_of(root: GangRecord, entry: Entry, table: GangTable) -> GangKey:
    """The key of the gang right inside a gang that a member belongs to."""
    part = table.of(entry.record.key)
    assert part is not None
    lineage = table.lineage(part)
    return lineage[-2].key if len(lineage) > 1 else root.key


def _has_steps(group: Group) -> bool:
    return needs_steps(group.profile, group.shape)


def bind_all(cluster: Cluster, queue: Queue, gang: GangEntry, placed: Sequence[Entry]) -> list[Decision]:
    """The decisions to bind members that have been placed, all at one moment."""
    binds: list[Decision] = [*decisions_to_bind(cluster, [entry.record for entry in placed])]
    for entry in placed:
        queue.remove(entry.record.key)
    queue.gang_started(gang)
    for shape in {entry.record.shape.id: entry.record.shape for entry in placed}.values():
        queue.note(Change.POD_BOUND, shape)
    return binds


def _any_moved(answers: Sequence[ShapeAnswers]) -> Callable[[Shape], bool]:
    return lambda shape: any(kept.is_moved_by(shape) for kept in answers)


def wants_place(cluster: Cluster, gang: GangEntry) -> bool:
    """Whether anything in a gang asks for a place in the topology, and was not assigned one with its quota."""
    parts = list(cluster.gangs.parts_of(gang.root))
    declared = [gang.root.gang, *(part.gang for part in parts)]
    if not any(found is not None and found.has_topology_request for found in declared):
        return False
    return not all(record.key in part.assigned for part in parts for record in part.waiting())


def _lacks_resources(cluster: Cluster, gang: GangEntry) -> str:
    """Say so if less is free, in all, than the gang wants to see before it is tried."""
    wanted: Resources | None = gang.root.gang.min_resources if gang.root.gang is not None else None
    if not wanted or any(part.bound() for part in cluster.gangs.parts_of(gang.root)):
        return ""
    nodes = cluster.rows()
    for resource, amount in column_amounts(wanted).items():
        free = exact_sum(np.maximum(nodes.free(resource), 0))
        if free < amount:
            return f"{free} {resource} free in all, it wants {amount}"
    return ""
