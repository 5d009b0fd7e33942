"""Several kinds of members in one domain: a leader and its workers, the cliques of a set, gangs of one group.

Kinds compete for the same rows, so columns alone cannot tell whether a domain holds all of them: that it holds each of
them alone is necessary, not enough. `candidates` yields the domains for which it is true, the best first, as late as
possible; whoever asks tries them one after the other.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.actions.gangs.topology.room import Counts, Mask, Rooms, measure
from mooring.actions.gangs.topology.search import Home, TooSmall, depths_to_try, lacking, too_small
from mooring.model.topology.requests import TopologyRequest
from mooring.state.topology import TopologyTree

_Plan = TypeVar("_Plan")

ANYWHERE = TopologyRequest()


@dataclass(frozen=True, slots=True, eq=False)
class MemberKind:
    """Equal members of a gang: how many of them fit on each row if no other kind were there, and how many there are."""

    fits: Counts
    need: int
    topology_request: TopologyRequest = ANYWHERE
    """Where they want to be inside the common domain."""
    role: str = ""
    home: Home | None = None
    """Where members of it run already; it fits nowhere else then."""
    asks: Hashable = None
    """The same for kinds of which a member takes of a row what one of another kind takes; None: like nobody else."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A place that holds each kind of members alone."""

    level: str
    """Empty for a place that is several domains of the coarsest level, or all of them."""
    domain: str
    rows: NDArray[np.intp]
    """In rank order."""


def candidates(
    tree: TopologyTree, kinds: Sequence[MemberKind], topology_request: TopologyRequest
) -> Iterator[Candidate]:
    """Yield the places that may hold all kinds together, in order of preference.

    From the common request's preferred level upward to the required one, at each the tightest first; at last, unless a
    level is required, several domains of the coarsest level, as few as possible first. Slices are each kind's own.
    """
    if any(lacking(tree, found) for found in (topology_request, *(kind.topology_request for kind in kinds))):
        return
    rooms = [measure(tree, kind.fits, kind.topology_request) for kind in kinds]
    needs = [_Need(tree, room, kind) for room, kind in zip(rooms, kinds, strict=True)]
    for depth in depths_to_try(tree, topology_request):
        if not depth:
            yield from _several(tree, needs)
            return
        enough = tree.has_name[depth].copy()
        for need in needs:
            enough &= need.met_by(depth)
        found = np.flatnonzero(enough)
        # The tightest is where the kind that has least to spare has least to spare.
        tightness = np.max([need.share(depth)[found] for need in needs], axis=0, initial=0.0)
        around = sum((need.rooms.at(depth - 1).units[depth - 1] for need in needs), np.zeros(1, np.int64))
        for index in np.lexsort((around[tree.parents[depth][found]], -tightness)):
            domain = int(found[index])
            yield Candidate(tree.levels[depth - 1], tree.name(depth, domain), tree.rows_of(depth, domain))


def choose_together(
    tree: TopologyTree,
    kinds: Sequence[MemberKind],
    topology_request: TopologyRequest,
    place: Callable[[Candidate], _Plan | None],
) -> _Plan | TooSmall:
    """Return what `place` makes of the first candidate in which it finds places for all kinds; None: it does not."""
    tried = 0
    for candidate in candidates(tree, kinds, topology_request):
        plan = place(candidate)
        if plan is not None:
            return plan
        tried += 1
    for found in (topology_request, *(kind.topology_request for kind in kinds)):
        if missing := lacking(tree, found):
            return TooSmall(sum(kind.need for kind in kinds), missing_level=missing)
    return _why_not(tree, kinds, topology_request, tried)


def _why_not(
    tree: TopologyTree, kinds: Sequence[MemberKind], topology_request: TopologyRequest, tried: int
) -> TooSmall:
    """Blame the kind with the least room for its need; then kinds that ask for the same, together; then all."""
    total = sum(kind.need for kind in kinds)
    decisive = depths_to_try(tree, topology_request)[-1]
    alone = [_room_for(tree, kind, decisive) for kind in kinds]
    share, worst = min(((_share(answer), index) for index, answer in enumerate(alone)), default=(1.0, -1))
    assert worst >= 0, "a gang has members"
    if share < 1.0:
        return replace(alone[worst], role=kinds[worst].role, home=kinds[worst].home, total=total)
    for need, fits in _equals(kinds):
        answer = _room_for(tree, MemberKind(fits, need), decisive)
        if _share(answer) < 1.0:
            return replace(answer, total=total)
    return replace(alone[worst], need=total, decisive=decisive, kinds=len(kinds), are_refused=True, tried=tried)


def _room_for(tree: TopologyTree, kind: MemberKind, decisive: int) -> TooSmall:
    """What the largest domain holds of which a kind has to share one, at its own level or the common one."""
    own = (tree.depth_of(kind.topology_request.required) or 0) if kind.topology_request.required else 0
    depth = max(decisive, own)
    required = TopologyRequest(required=tree.levels[depth - 1] if depth else None)
    return too_small(tree, measure(tree, kind.fits, kind.topology_request), kind.need, required)


def _share(answer: TooSmall) -> float:
    return answer.rooms[answer.decisive].holds / answer.need if answer.need else 1.0


def _equals(kinds: Sequence[MemberKind]) -> Iterator[tuple[int, Counts]]:
    """Kinds that ask for the same compete member by member: how many there are of them together."""
    for asks in dict.fromkeys(kind.asks for kind in kinds if kind.asks is not None):
        alike = [kind for kind in kinds if kind.asks == asks]
        yield sum(kind.need for kind in alike), np.max([kind.fits for kind in alike], axis=0)


class _Need:
    """What one kind needs of a domain."""

    def __init__(self, tree: TopologyTree, rooms: Rooms, kind: MemberKind) -> None:
        self.tree, self.rooms, self.kind = tree, rooms, kind
        self.own_depth = (tree.depth_of(kind.topology_request.required) or 0) if kind.topology_request.required else 0
        """The depth of which this kind must share one domain, whatever the others do."""

    def met_by(self, depth: int) -> Mask:
        """Which domains hold this kind alone, within one of its own level where that is finer."""
        start = max(depth, self.own_depth)
        found = self.rooms.at(start).holds(start, self.kind.need)
        for above in range(start - 1, depth - 1, -1):
            found = self.tree.most(above, found.astype(np.int64), 0) > 0
        return found

    def share(self, depth: int) -> NDArray[np.float64]:
        """The part of each domain's room that this kind would take."""
        room = self.rooms.at(depth)
        found: NDArray[np.float64] = room.wanted(self.kind.need) / np.maximum(room.units[depth], 1)
        return found


def _several(tree: TopologyTree, needs: Sequence[_Need]) -> Iterator[Candidate]:
    """The whole topology, approached by ever more domains of its coarsest level, the most helpful first."""
    if not all(need.met_by(0)[0] for need in needs):
        return
    if not tree.leaf:
        yield Candidate("", "", tree.rows)
        return
    helps = np.zeros(tree.count(1))
    for need in needs:
        helps += np.minimum(1.0 / np.maximum(need.share(1), 1e-9), 1.0)
    order = np.argsort(-helps, kind="stable")
    for count in range(1, len(order) + 1):
        chosen = np.zeros(len(order), np.bool_)
        chosen[order[:count]] = True
        was_tried = count == 1 and tree.has_name[1][order[0]]
        if not was_tried and all(_met_by_several(need, chosen) for need in needs):
            ends = np.append(tree.starts[1][1:], len(tree))
            inside = np.repeat(chosen, ends - tree.starts[1])
            yield Candidate("", "", tree.rows[inside])


def _met_by_several(need: _Need, chosen: Mask) -> bool:
    if need.own_depth:
        return bool(need.met_by(1)[chosen].any())
    room, count = need.rooms.at(0), need.kind.need
    rest = count % room.slice_size
    units = int(room.units[1][chosen].sum())
    if units >= room.wanted(count):
        return True
    has_spare = room.spare is not None and rest and int(room.spare[1][chosen].max()) >= rest
    return bool(has_spare) and units >= count // room.slice_size
