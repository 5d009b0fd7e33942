"""Where a topology request lets its members be: the depths to try, in order; and what to say when none holds them."""

from dataclasses import dataclass, replace

from mooring.actions.gangs.topology.room import LevelRoom, Rooms
from mooring.model.topology.requests import TopologyRequest, tier_of
from mooring.state.topology import CLUSTER, TopologyTree


@dataclass(frozen=True, slots=True)
class Home:
    """The domain in which members run already, and which the others may not leave."""

    level: str
    title: str
    domain: str
    """Its path; empty if they run outside all domains of the level."""

    def __str__(self) -> str:
        return f"{self.title} {self.domain}"


@dataclass(frozen=True, slots=True)
class TooSmall:
    """No place holds the members: what the largest domain of each level holds, coarse to fine, the whole in front."""

    need: int
    rooms: tuple[LevelRoom, ...] = ()
    decisive: int = 0
    """Which of `rooms` is the one that had to hold them all."""
    slice_size: int = 1
    missing_topology: str = ""
    """The topology that was asked for and that nobody has described."""
    missing_level: str = ""
    """The level that was asked for and that the topology does not have."""
    no_leader_place: bool = False
    """No row at all takes the leader."""
    kinds: int = 1
    """How many kinds of members it is about."""
    are_refused: bool = False
    """There is room for each of the kinds, but no place takes all of them."""
    tried: int = 0
    """How many places hold each of them, alone."""
    role: str = ""
    """Whose the members are, where they are not all."""
    total: int = 0
    """How many members there are in all, where `need` is only some of them."""
    home: Home | None = None

    @property
    def message(self) -> str:
        """One sentence for people: `largest rack holds 12 of 16 members`."""
        if self.missing_topology:
            return f"topology {self.missing_topology} does not exist"
        if self.missing_level:
            tier = tier_of(self.missing_level)
            return (
                f"the topology has no level {self.missing_level}" if tier is None else f"no HyperNode has tier {tier}"
            )
        room = self.rooms[self.decisive]
        if not room.domains:
            return self._nobody_is_there(room)
        if self.no_leader_place:
            return "no node has a place for the leader"
        if self.home is None:
            return self._what_is_short(room)
        if not self.home.domain:
            return f"members run outside of every {self.home.title}, where no other can join them"
        if self.home.level == room.level and not self.are_refused:
            return f"members run in {self.home}, which holds {self._counts(room, 'more ')}"
        return f"members run in {self.home}, and inside it {self._what_is_short(room)}"

    def _what_is_short(self, room: LevelRoom) -> str:
        place = room.title if room.level else f"part of the {room.title}"
        if not self.are_refused:
            if room.title == CLUSTER:
                return f"room for {self._counts(room)}"
            largest = f"largest {room.title}" if room.level else "the topology"
            return f"{largest} holds {self._counts(room)}"
        if self.kinds == 1:
            enough = f", though {self.tried} {'has' if self.tried == 1 else 'have'} room for as many" * bool(self.tried)
            return f"no {place} takes all {self.need} members{enough}"
        alone = f", though {self.tried} {'holds' if self.tried == 1 else 'hold'} each alone" * bool(self.tried)
        return f"no {place} holds all kinds of members together{alone}"

    def _counts(self, room: LevelRoom, more: str = "") -> str:
        slices = f" in slices of {self.slice_size}" if self.slice_size > 1 else ""
        others = f", of {self.total} in all" if self.total > self.need else ""
        role = f"{self.role} " if self.role and others else ""
        return f"{room.holds} of {self.need} {more}{role}members{slices}{others}"

    def _nobody_is_there(self, room: LevelRoom) -> str:
        tier = tier_of(room.level)
        if tier is not None:
            return f"no node is in a HyperNode of tier {tier}"
        levels = [found.level for found in self.rooms if found.level]
        if len(levels) > 1:
            return f"no node has all labels of the topology ({', '.join(levels)})"
        return f"no node has the label {room.level}"


def must_have(topology_request: TopologyRequest) -> TopologyRequest:
    """A topology request without what it only prefers; without any level, no topology is asked for either."""
    return replace(
        topology_request,
        preferred=None,
        topology=topology_request.topology if topology_request.required or topology_request.has_slices else "",
    )


def lacking(tree: TopologyTree, topology_request: TopologyRequest) -> str:
    """The first level that a topology request insists on and a topology does not have; empty if it has all."""
    return next((level for level in must_have(topology_request).levels if tree.depth_of(level) is None), "")


def depths_to_try(tree: TopologyTree, topology_request: TopologyRequest) -> range:
    """From the preferred level upward to the required one, or to the whole topology; the finest first."""
    required = tree.depth_of(topology_request.required) if topology_request.required else None
    preferred = tree.depth_of(topology_request.preferred) if topology_request.preferred else None
    coarsest = required or 0
    finest = preferred or required or min(1, tree.leaf)
    # A preferred level above the required one adds nothing to it.
    return range(max(finest, coarsest), coarsest - 1, -1)


def too_small(tree: TopologyTree, rooms: Rooms, need: int, topology_request: TopologyRequest) -> TooSmall:
    decisive = depths_to_try(tree, topology_request)[-1]
    room = rooms.at(decisive)
    return TooSmall(
        need,
        tuple(rooms.at(depth).largest(depth) for depth in range(tree.leaf + 1)),
        decisive,
        slice_size=room.slice_size,
        no_leader_place=room.loss is not None and not (room.held(0) >= 0).any(),
    )
