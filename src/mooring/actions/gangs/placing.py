"""One gang, placed whole or not at all.

Whatever is tried happens between a checkpoint and its commit or rollback: a gang that does not fit leaves nothing
behind.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mooring.actions.batches import Batches
from mooring.actions.gangs.located import Located
from mooring.actions.gangs.members import Group, all_members, grouped, needed_members
from mooring.actions.gangs.room import RoomColumns
from mooring.actions.gangs.search import Search, domain_keys, wants_others
from mooring.actions.gangs.steps import Reservations
from mooring.engine.answers import ShapeAnswers
from mooring.engine.plugin import Change
from mooring.engine.queue import Entry, GangEntry, Queue
from mooring.model.decisions import Bind, Decision
from mooring.model.meta import Resources
from mooring.model.requests import column_amounts
from mooring.state.cluster import Cluster
from mooring.state.shapes import Shape


@dataclass(frozen=True)
class GangOutcome:
    """The members that were placed, or why none was."""

    placed: Sequence[Entry] = ()
    message: str = ""
    helped_by: Change = Change.ANY
    moved_by: Callable[[Shape], bool] = lambda shape: True


@dataclass
class Refused:
    """The smallest number of members, of gangs that are otherwise alike, that found no room at some moment."""

    moment: tuple[Any, ...]
    smallest: dict[Any, tuple[int, str]] = field(default_factory=dict)


class GangPlacer:
    """Places gangs, one at a time."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self.rooms = RoomColumns(batches)
        self.located = Located(self.rooms)
        self._refused = Refused(())

    def place(self, cluster: Cluster, gang: GangEntry) -> GangOutcome:
        """Assume a place for every member that the gang needs, or for none."""
        table = cluster.gangs
        needed = needed_members(gang, table)
        # 1. What did not fit a moment ago, with nothing since, does not fit now either, nor does anything larger.
        alike = self._likeness(cluster, gang, needed)
        known = self._known_refusal(cluster, alike, len(needed)) or _lacks_resources(cluster, gang)
        if known:
            return self._outcome(cluster, gang, needed, known)
        # 2. Whoever wants a certain place tries it with all members first, so that the place has room for them.
        everybody = all_members(gang, table)
        takes_all = len(everybody) > len(needed) and wants_place(cluster, gang)
        if takes_all and self.try_together(cluster, gang, everybody) is None:
            return GangOutcome(everybody)
        # 3. All that it needs, or nothing.
        message = self.try_together(cluster, gang, needed)
        if message is None:
            return GangOutcome(needed)
        self._refused.smallest[alike] = (len(needed), message)
        return self._outcome(cluster, gang, needed, message)

    def place_message(self, cluster: Cluster, gang: GangEntry) -> str:
        """Why a gang would not be placed now; empty if it would. Nothing is left behind."""
        checkpoint = cluster.checkpoint()
        outcome = self.place(cluster, gang)
        cluster.rollback(checkpoint)
        return "" if outcome.placed else outcome.message

    def try_together(self, cluster: Cluster, gang: GangEntry, entries: Sequence[Entry]) -> str | None:
        """Assume a place for each of some members; None if that succeeded, else why not, with nothing left behind."""
        groups = grouped(list(entries), cluster.gangs)
        if wants_place(cluster, gang):
            return self.located.place(cluster, gang, groups)
        short = self._too_small(cluster, groups)
        if short:
            return short
        placed = self._greedily(cluster, groups)
        if placed is None:
            return None
        if len(groups) > 1 or any(domain_keys(group.shape) for group in groups):
            search = Search(cluster, self.rooms, groups)
            if not any(self._has_steps(cluster, group) for group in groups) and search.run():
                return None
            placed = max(placed, search.most_placed)
        return f"room for {placed} of {len(entries)} members"

    def _greedily(self, cluster: Cluster, groups: Sequence[Group]) -> int | None:
        """Place group by group, the scarcest first; None if all are placed, else how many were before it failed."""
        checkpoint = cluster.checkpoint()
        reservations = Reservations(cluster)
        count = 0
        stepping: list[Entry] = []
        for group in sorted(groups, key=lambda group: self._scarcity(cluster, group)):
            if self._has_steps(cluster, group):
                placed = self._step_by_step(cluster, group, reservations)
                stepping += group.entries
            else:
                placed = len(self.batches.place(cluster, list(group.entries)).placed)
            count += placed
            if placed < group.size:
                break
        else:
            if reservations.bind(stepping) is None:
                cluster.commit(checkpoint)
                return None
            count = 0
        reservations.undo()
        cluster.rollback(checkpoint)
        return count

    def _step_by_step(self, cluster: Cluster, group: Group, reservations: Reservations) -> int:
        """Place members for whom plugins have something to do once a node is chosen."""
        for index, entry in enumerate(group.entries):
            row = self.batches.choose(cluster, group.profile, group.shape)
            if row < 0:
                return index
            cluster.assume(entry.record.key, row)
            if reservations.add(entry) is not None:
                return index
        return group.size

    def _has_steps(self, cluster: Cluster, group: Group) -> bool:
        return self.rooms.of(group.profile, cluster, group.shape).answers.has_steps

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

    # What is known not to fit.

    def _likeness(self, cluster: Cluster, gang: GangEntry, needed: Sequence[Entry]) -> Any:
        """What gangs have in common if a smaller one's refusal is also the larger one's; None if nothing follows."""
        first = needed[0]
        is_uniform = all(entry.record.shape is first.record.shape for entry in needed)
        starts = not any(part.bound() for part in cluster.gangs.parts_of(gang.root))
        declared = gang.root.gang
        if not is_uniform or not starts or declared is None or declared.of_gangs or declared.role_groups:
            return None
        wishes = (declared.wish, tuple(role.wish for role in declared.roles))
        return first.profile.name, first.record.shape.id, wishes

    def _known_refusal(self, cluster: Cluster, alike: Any, size: int) -> str:
        moment = (id(cluster), cluster.pod_changes.position, cluster.description)
        if self._refused.moment != moment:
            self._refused = Refused(moment)
        if alike is None or not self.batches.cached:
            return ""
        smallest, message = self._refused.smallest.get(alike, (0, ""))
        return message if 0 < smallest == size else ""

    def _outcome(self, cluster: Cluster, gang: GangEntry, needed: Sequence[Entry], message: str) -> GangOutcome:
        answers = [self.rooms.of(entry.profile, cluster, entry.record.shape).answers for entry in _distinct(needed)]
        helped_by = Change.NODE | Change.POD_GONE | Change.RELATED
        for kept in answers:
            helped_by |= kept.helped_by()
        moved_by = _any_moved(answers)
        return GangOutcome((), f"gang {gang.name}: {message}", helped_by, moved_by)


def bind_all(queue: Queue, gang: GangEntry, placed: Sequence[Entry]) -> list[Decision]:
    """The decisions to bind members that have been placed, all at one moment."""
    binds: list[Decision] = []
    for entry in placed:
        binds.append(Bind(entry.record.key, entry.record.node_name))
        queue.remove(entry.record.key)
    queue.gang_started(gang)
    for shape in {entry.record.shape.id: entry.record.shape for entry in placed}.values():
        queue.note(Change.POD_BOUND, shape)
    return binds


def _any_moved(answers: Sequence[ShapeAnswers]) -> Callable[[Shape], bool]:
    return lambda shape: any(kept.is_moved_by(shape) for kept in answers)


def _distinct(entries: Sequence[Entry]) -> list[Entry]:
    return list({(entry.profile.name, entry.record.shape.id): entry for entry in entries}.values())


def wants_place(cluster: Cluster, gang: GangEntry) -> bool:
    """Whether anything in a gang asks for a place in the topology."""
    parts = cluster.gangs.parts_of(gang.root)
    declared = [gang.root.gang, *(part.gang for part in parts)]
    return any(found is not None and found.has_wish for found in declared)


def _lacks_resources(cluster: Cluster, gang: GangEntry) -> str:
    """Say so if less is free, in all, than the gang wants to see before it is tried."""
    wanted: Resources | None = gang.root.gang.min_resources if gang.root.gang is not None else None
    if not wanted or any(part.bound() for part in cluster.gangs.parts_of(gang.root)):
        return ""
    nodes = cluster.rows()
    for resource, amount in column_amounts(wanted).items():
        free = int(np.maximum(nodes.free(resource), 0).sum())
        if free < amount:
            return f"{free} {resource} free in all, it wants {amount}"
    return ""
