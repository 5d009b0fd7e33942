"""What a gang waits for: how many members fit where, which level of the topology is too small, who is ahead of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mooring.actions.gangs.domains import LevelRoom, fits_by_level
from mooring.actions.gangs.members import Group, all_members, grouped, needed_members
from mooring.actions.gangs.placing import GangPlacer
from mooring.actions.gangs.reservation import Reservation
from mooring.actions.gangs.units import unit_of
from mooring.engine.gang_entry import what_is_missing
from mooring.engine.queue import GangEntry, Queue
from mooring.state.cluster import Cluster


@dataclass(frozen=True)
class GroupRoom:
    """Members of one role and shape, and the room there is for them."""

    role: str
    requests: dict[str, int]
    waiting: int
    needed: int
    fitting: int
    """How many of those needed fit if no other group were there."""
    nodes: tuple[tuple[str, int], ...]
    """The nodes with room, and for how many, the roomiest first."""
    levels: tuple[LevelRoom, ...] = ()
    """What the largest domain of each level holds, coarse to fine."""


@dataclass(frozen=True)
class Ahead:
    """A gang that is before it in the queue."""

    name: str
    members: int
    message: str
    has_reservation: bool


@dataclass
class GangExplanation:
    """A gang that waits, or that waits for its members."""

    name: str
    minimum: int
    members: int
    running: int
    message: str
    wants: str
    """What it asks of the topology, in words."""
    groups: list[GroupRoom] = field(default_factory=list)
    ahead: list[Ahead] = field(default_factory=list)


def explain_gang(
    cluster: Cluster, queue: Queue, gang: GangEntry, placer: GangPlacer, reservation: Reservation | None = None
) -> GangExplanation:
    """Say what a gang waits for, as things stand."""
    declared = gang.root.gang
    parts = list(cluster.gangs.parts_of(gang.root))
    explanation = GangExplanation(
        name=gang.name,
        minimum=declared.minimum if declared is not None else 0,
        members=sum(len(part.members) for part in parts),
        running=sum(len(part.bound()) for part in parts),
        message=what_is_missing(gang, cluster.gangs),
        wants=_wants(gang),
        ahead=_ahead(queue, gang, reservation),
    )
    if declared is None or explanation.message:
        return explanation
    explanation.message = placer.place_message(cluster, gang)
    needed = {entry.record.key for entry in needed_members(gang, cluster.gangs)}
    groups = grouped(all_members(gang, cluster.gangs), cluster.gangs)
    explanation.groups = [_group_room(cluster, gang, group, groups, needed, placer) for group in groups]
    return explanation


def _group_room(
    cluster: Cluster, gang: GangEntry, group: Group, groups: Sequence[Group], needed: set[str], placer: GangPlacer
) -> GroupRoom:
    counts = placer.rooms.of(group.profile, cluster, group.shape).counts
    wanted = sum(entry.record.key in needed for entry in group.entries)
    rows = np.flatnonzero(counts)
    rows = rows[np.argsort(-counts[rows], kind="stable")]
    wish = unit_of(gang.root, groups, cluster.gangs).wish
    return GroupRoom(
        role=group.role,
        requests=dict(group.shape.requests),
        waiting=group.size,
        needed=wanted,
        fitting=int(np.minimum(counts, max(wanted, 1)).sum().clip(max=wanted)),
        nodes=tuple((cluster.nodes.name(row), int(min(counts[row], group.size))) for row in rows.tolist()),
        levels=fits_by_level(placer.located.tree(cluster, wish), counts, wish) if wish.levels else (),
    )


def _wants(gang: GangEntry) -> str:
    wish = gang.root.gang.wish if gang.root.gang is not None else None
    if wish is None:
        return ""
    words = []
    if wish.required:
        words.append(f"all in one {wish.required}")
    if wish.preferred:
        words.append(f"rather in one {wish.preferred}")
    if wish.has_slices:
        words.append(f"each {wish.slice_size} in one {wish.slice_level}")
    return ", ".join(words)


def _ahead(queue: Queue, gang: GangEntry, reservation: Reservation | None) -> list[Ahead]:
    """The gangs before it, in order."""
    messages = {
        parked.gang.root.key: "; ".join(parked.verdict.reasons)
        for parked in queue.parked()
        if parked.gang is not None and parked.verdict is not None
    }
    waiting = [found for found in queue.gangs if found is not gang and found.key is not None]
    if gang.key is not None:
        waiting = [found for found in waiting if (found.key, found.arrival) < (gang.key, gang.arrival)]
    holder = reservation.holder if reservation is not None else None
    return [
        Ahead(found.name, found.size, messages.get(found.root.key, ""), found is holder)
        for found in sorted(waiting, key=lambda found: (found.key, found.arrival))
    ]
