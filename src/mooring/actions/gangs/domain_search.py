"""Where a wish lets its members be: the depths to try, in order; and what to say when none holds them."""

from dataclasses import dataclass

from mooring.actions.gangs.domain_room import LevelRoom, Rooms
from mooring.model.topology import TopologyWish
from mooring.state.topology import TopologyTree


@dataclass(frozen=True, slots=True)
class TooSmall:
    """No place holds the members: what the largest domain of each level holds, coarse to fine, the whole in front."""

    need: int
    rooms: tuple[LevelRoom, ...] = ()
    decisive: int = 0
    """Which of `rooms` is the one that had to hold them all."""
    slice_size: int = 1
    missing_level: str = ""
    """The level that was asked for and that the topology does not have."""
    no_leader_place: bool = False
    """No row at all takes the leader."""
    are_several_kinds: bool = False
    """Each of several kinds of members has a place that holds it, but all together have none."""
    tried: int = 0
    """How many places hold each of them, alone."""

    @property
    def message(self) -> str:
        """One line for people: `largest rack holds 12 of 16`."""
        if self.missing_level:
            return f"the topology has no level {self.missing_level}"
        room = self.rooms[self.decisive]
        if self.are_several_kinds:
            place = room.title if room.level else "part of the topology"
            alone = f", though {self.tried} {'holds' if self.tried == 1 else 'hold'} each alone" if self.tried else ""
            return f"no {place} holds all kinds of members together{alone}"
        if not room.domains:
            return f"no node is in a {room.title}"
        if self.no_leader_place:
            return "no node has a place for the leader"
        slices = f" in slices of {self.slice_size}" if self.slice_size > 1 else ""
        largest = f"largest {room.title}" if room.level else "the topology"
        return f"{largest} holds {room.holds} of {self.need}{slices}"


def lacking(tree: TopologyTree, wish: TopologyWish) -> str:
    """The first level that a wish names and a topology does not have; empty if it has all."""
    return next((level for level in wish.levels if tree.depth_of(level) is None), "")


def depths_to_try(tree: TopologyTree, wish: TopologyWish) -> range:
    """From the preferred level upward to the required one, or to the whole topology; the finest first."""
    required = tree.depth_of(wish.required) if wish.required else None
    preferred = tree.depth_of(wish.preferred) if wish.preferred else None
    coarsest = required or 0
    finest = preferred or required or min(1, tree.leaf)
    # A preferred level above the required one adds nothing to it.
    return range(max(finest, coarsest), coarsest - 1, -1)


def too_small(tree: TopologyTree, rooms: Rooms, need: int, wish: TopologyWish) -> TooSmall:
    decisive = depths_to_try(tree, wish)[-1]
    room = rooms.at(decisive)
    return TooSmall(
        need,
        tuple(rooms.at(depth).largest(depth) for depth in range(tree.leaf + 1)),
        decisive,
        slice_size=room.slice_size,
        no_leader_place=room.loss is not None and not (room.held(0) >= 0).any(),
    )
