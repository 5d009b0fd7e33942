"""Which domains the pods of one pod set get, with its leader if it has one, as Kueue chooses them.

One domain of the level asked for if one is enough: the tightest, or of those that are free to go anywhere the one with
least room. Else, unless that level is required, a coarser level is tried, and at last several domains. From there the
pods go down level by level: above the level of slices into as few domains as possible, wherever under the chosen ones;
from it on each domain's pods into its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mooring.actions.admit.topology.counts import LevelCounts, Numbers, Slicing, in_order, in_order_with_leader
from mooring.state.topology import Domains, TopologyTree


class DomainShare(NamedTuple):
    """What one domain gets: so many pods, and the leader or not."""

    domain: int
    pods: int
    leader: int


class NoRoom(NamedTuple):
    """There is no way to place all: so many slices would fit, at the depth searched last."""

    fitting: int
    depth: int


@dataclass(frozen=True, slots=True)
class Need:
    """What is to be placed."""

    count: int
    leader: int
    """1 if a leader goes with the pods, else 0."""
    depth: int
    """Where one domain is looked for first."""
    is_required: bool
    is_free: bool
    slicing: Slicing

    @property
    def slices(self) -> int:
        """Whole slices; pods that are left over are not placed."""
        return self.count // self.slicing.size


def place(tree: TopologyTree, levels: Sequence[LevelCounts], need: Need) -> list[DomainShare] | NoRoom:
    """Place on the lowest domains."""
    chosen = _choose(levels, need, need.depth)
    if isinstance(chosen, NoRoom):
        return chosen
    shares = _share_slices(levels[chosen.depth], chosen.domains, need)
    return go_down(tree, levels, need, chosen.depth, shares, pooled=True) or NoRoom(0, chosen.depth)


def go_down(
    tree: TopologyTree,
    levels: Sequence[LevelCounts],
    need: Need,
    depth: int,
    shares: list[DomainShare] | None,
    *,
    pooled: bool,
) -> list[DomainShare] | None:
    """Hand the shares of some depth down to the lowest domains; `pooled` above the level of slices.

    None if somebody's share does not fit below it: what leaves out a leader can promise more than there is.
    """
    while depth < tree.leaf and shares is not None:
        below = levels[depth + 1]
        if pooled and depth < need.slicing.depth:
            children, _ = tree.children(depth, np.array([share.domain for share in shares], np.intp))
            shares = _share_slices(below, in_order(below, children, least_first=need.is_free), need)
        else:
            unit = need.slicing.size if depth < need.slicing.depth else need.slicing.inner.get(depth + 1, 1)
            found = [
                _share_among_children(tree, below, depth, share, unit, is_free=need.is_free)
                for share in shares
                if share.pods or share.leader
            ]
            shares = None if None in found else [share for given in found for share in given or ()]
        depth += 1
    return shares


class _Chosen(NamedTuple):
    """The domains to use, and at which depth they are."""

    depth: int
    domains: Domains


def _choose(levels: Sequence[LevelCounts], need: Need, depth: int) -> _Chosen | NoRoom:
    level = levels[depth]
    ordered = in_order_with_leader(level, np.arange(len(level.pods)), least_first=need.is_free)
    can = (level.slices_with_leader[ordered] >= need.slices) & (level.leaders[ordered] >= need.leader)
    if need.is_free and can.any():
        return _Chosen(depth, ordered[can][:1])
    if not need.is_free and can[0]:
        best = _best_fit(ordered, level.slices_with_leader, level.leaders, need.slices, need.leader)
        return _Chosen(depth, best)
    if need.is_required:
        return NoRoom(int(level.slices[ordered[0]]), depth)
    if depth > 1 and not need.is_free:
        return _choose(levels, need, depth - 1)
    return _choose_several(level, ordered, need, depth)


def _choose_several(level: LevelCounts, ordered: Domains, need: Need, depth: int) -> _Chosen | NoRoom:
    ordered = _leader_first(ordered, level.slices, level.slices_with_leader, level.leaders, need.slices, need.leader)
    chosen: list[int] = []
    left, at = need.slices, 0
    if need.leader:
        if not level.leaders[ordered[0]]:
            return NoRoom(0, depth)
        first = ordered[:1]
        if not need.is_free and level.slices_with_leader[ordered[0]] >= left:
            first = _best_fit(ordered, level.slices_with_leader, level.leaders, left, need.leader)
        chosen += first.tolist()
        left -= int(level.slices_with_leader[first[0]])
        at = 1
    rest = in_order(level, ordered[at:], least_first=need.is_free)
    for position, domain in enumerate(rest.tolist()):
        if left <= 0:
            break
        if not need.is_free and level.slices[domain] >= left:
            domain = int(_best_fit(rest[position:], level.slices, level.leaders, left, 0)[0])
        chosen.append(domain)
        left -= int(level.slices[domain])
    if left > 0:
        return NoRoom(need.slices - left, depth)
    return _Chosen(depth, np.array(chosen, np.intp))


def _share_slices(level: LevelCounts, domains: Domains, need: Need) -> list[DomainShare] | None:
    return _share_out(
        domains,
        level.slices,
        level.slices_with_leader,
        level.leaders,
        DomainShare(-1, need.slices, need.leader),
        unit=need.slicing.size,
        is_free=need.is_free,
    )


def _share_among_children(
    tree: TopologyTree, below: LevelCounts, depth: int, share: DomainShare, unit: int, *, is_free: bool
) -> list[DomainShare] | None:
    """Give a domain's pods to its own, in units; they are ordered by slices as these were counted for the whole."""
    children, _ = tree.children(depth, np.array([share.domain], np.intp))
    ordered = in_order(below, children, least_first=is_free)
    plain, with_leader = below.pods // unit, below.pods_with_leader // unit
    total = DomainShare(-1, share.pods // unit, share.leader)
    return _share_out(ordered, plain, with_leader, below.leaders, total, unit=unit, is_free=is_free)


def _share_out(
    domains: Domains,
    plain: Numbers,
    with_leader: Numbers,
    leaders: Numbers,
    total: DomainShare,
    *,
    unit: int,
    is_free: bool,
) -> list[DomainShare] | None:
    """Fill domains in turn, each wholly, until one can take all that is left: then the tightest that can.

    `plain` and `with_leader` are what each has room for, and `total` what there is, in units of so many pods.
    """
    if not total.leader:
        domains = domains[plain[domains] > 0]
    ordered = _leader_first(domains, plain, with_leader, leaders, total.pods, total.leader)
    shares: list[DomainShare] = []
    left, leader = total.pods, total.leader
    for position, domain in enumerate(ordered.tolist()):
        room = with_leader if leader else plain
        if room[domain] >= left and leaders[domain] >= leader:
            if not is_free:
                domain = int(_best_fit(ordered[position:], room, leaders, left, leader)[0])
            shares.append(DomainShare(domain, left * unit, leader))
            return shares
        taken = min(int(room[domain]), left)
        has_leader = min(int(leaders[domain]), leader)
        shares.append(DomainShare(domain, taken * unit, has_leader))
        left, leader = left - taken, leader - has_leader
    return None if left or leader else shares


def _best_fit(ordered: Domains, room: Numbers, leaders: Numbers, wanted: int, leader: int) -> Domains:
    """Of those that have room, the first of the tightest; the very first if none has."""
    found = room[ordered]
    fits = (found >= wanted) & (leaders[ordered] >= leader)
    if not fits.any():
        return ordered[:1]
    candidates = ordered[fits]
    best: Domains = candidates[[int(found[fits].argmin())]]
    return best


def _leader_first(
    ordered: Domains, plain: Numbers, with_leader: Numbers, leaders: Numbers, wanted: int, leader: int
) -> Domains:
    """Put first who can take the leader and leave room enough for the others; if nobody can, leave the order."""
    if not leader or len(ordered) < 2:
        return ordered
    spare = int(plain[ordered].sum()) - (plain[ordered] - with_leader[ordered])
    can = (leaders[ordered] >= leader) & (spare >= wanted)
    if not can.any():
        return ordered
    first = int(can.argmax())
    return np.concatenate((ordered[first : first + 1], ordered[:first], ordered[first + 1 :]))
