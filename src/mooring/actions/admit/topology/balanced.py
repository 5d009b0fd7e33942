"""Balanced placement: pods evenly over few domains, rather than some full and the last nearly empty.

Of the sets of domains that share a parent, the one is taken whose domains can all get the most slices each (the
threshold); in it as few domains as possible, with the least room to spare. Each gets the threshold, then the rest is
handed out. Kueue does this for pod sets that prefer a level, with its feature gate TASBalancedPlacement.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.actions.admit.topology.counts import (
    LevelCounts,
    Slicing,
    count_leaves,
    count_up,
    in_order,
    in_order_with_leader,
)
from mooring.actions.admit.topology.placement import DomainShare, Need, go_down
from mooring.state.topology import Domains, TopologyTree

Levels = Sequence[LevelCounts]


@dataclass(frozen=True, slots=True)
class Greedy:
    """What filling the largest domains first comes to."""

    count: int
    with_leader: int | None
    """The domain that takes the leader."""
    last: int | None
    """The last domain that takes others."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A set of domains, the counts without those that are too small, and how much each of them can get."""

    threshold: int
    count: int
    domains: Domains
    levels: Levels


def place_balanced(tree: TopologyTree, levels: Levels, need: Need) -> list[DomainShare] | None:
    """Place on the lowest domains; None if that cannot be done in a balanced way."""
    best: Candidate | None = None
    for domains in _sibling_sets(tree, need.depth):
        found = _try_set(tree, levels, need, domains, 0 if best is None else best.threshold)
        if found is None or found.threshold <= 0:
            continue
        if best is None or (found.threshold, -found.count) > (best.threshold, -best.count):
            best = found
    if best is None:
        return None
    depth, domains = need.depth, best.domains
    if depth < need.slicing.depth:
        chosen = _smallest_set(tree, best.levels, depth, domains, need, by_entropy=True)
        if chosen is None:
            return None
        domains, depth = tree.children(depth, chosen)[0], depth + 1
    shares = _share_evenly(tree, best.levels, depth, domains, need, best.threshold)
    return go_down(tree, best.levels, need, depth, shares, pooled=False)


def _sibling_sets(tree: TopologyTree, depth: int) -> Iterator[Domains]:
    for parent in range(tree.count(depth - 1)):
        yield tree.children(depth - 1, np.array([parent], np.intp))[0]


def _try_set(tree: TopologyTree, levels: Levels, need: Need, domains: Domains, least: int) -> Candidate | None:
    depth = need.depth
    is_above = depth < need.slicing.depth
    filled, at = (tree.children(depth, domains)[0], depth + 1) if is_above else (domains, depth)
    greedy = _fill(levels[at], filled, need)
    if greedy is None or not greedy.count:
        return None
    level = levels[at]
    threshold = need.slices // greedy.count
    if greedy.with_leader is not None:
        threshold = min(threshold, int(level.slices_with_leader[greedy.with_leader]))
    with_reserve = threshold
    if greedy.last is not None:
        threshold = min(threshold, int(level.slices[greedy.last]))
        with_reserve = min(threshold, int(level.slices_with_leader[greedy.last])) if need.leader else threshold
    for tried in dict.fromkeys((threshold, with_reserve)):
        if tried < max(least, 1):
            return None
        pruned = _prune(tree, levels, need, domains, tried)
        found = _fill(pruned[depth], domains, need)
        if found is not None:
            return Candidate(tried, found.count, domains, pruned)
    return None


def _fill(level: LevelCounts, domains: Domains, need: Need) -> Greedy | None:
    """Fill the largest domains first; None if all of them are not enough."""
    left, count = need.slices, 0
    with_leader: int | None = None
    last: int | None = None
    if need.leader:
        ordered = in_order_with_leader(level, domains, least_first=False)
        if not len(ordered) or not level.leaders[ordered[0]]:
            return None
        with_leader = int(ordered[0])
        left -= int(level.slices_with_leader[with_leader])
        count += 1
        domains = ordered[1:]
    for domain in in_order(level, domains, least_first=False).tolist():
        if left <= 0 or not level.slices[domain]:
            break
        last = domain
        left -= int(level.slices[domain])
        count += 1
    return Greedy(count, with_leader, last) if left <= 0 else None


def _prune(tree: TopologyTree, levels: Levels, need: Need, domains: Domains, threshold: int) -> Levels:
    """Count anew without domains of the set, and of its children, that cannot get the threshold."""
    slicing = Slicing(need.slicing.size, need.slicing.depth)
    depth = need.depth
    for at in (depth + 1, depth) if depth < tree.leaf else (depth,):
        looked_at = tree.children(depth, domains)[0] if at > depth else domains
        level = levels[at]
        empty = looked_at[level.slices[looked_at] < threshold]
        without = looked_at[(level.leaders[looked_at] > 0) & (level.slices_with_leader[looked_at] < threshold)]
        levels = _recount(tree, levels, need, slicing, _leaves_of(tree, at, empty), _leaves_of(tree, at, without))
    return levels


def _leaves_of(tree: TopologyTree, depth: int, domains: Domains) -> Domains:
    for at in range(depth, tree.leaf):
        domains = tree.children(at, domains)[0]
    return domains


def _recount(
    tree: TopologyTree, levels: Levels, need: Need, slicing: Slicing, empty: Domains, without_leader: Domains
) -> Levels:
    leaf = levels[-1]
    pods, pods_with_leader, leaders = leaf.pods.copy(), leaf.pods_with_leader.copy(), leaf.leaders.copy()
    pods[empty] = 0
    for gone in (empty, without_leader) if need.leader else (empty,):
        pods_with_leader[gone] = leaders[gone] = 0
    leaves = count_leaves(tree, pods, pods_with_leader, leaders, slicing)
    return count_up(tree, leaves, slicing, with_leader=bool(need.leader))


def _smallest_set(
    tree: TopologyTree, levels: Levels, depth: int, domains: Domains, need: Need, *, by_entropy: bool
) -> Domains | None:
    """As few domains as filling the largest first takes, of these the set with the least room that is enough.

    A step takes one more domain in or leaves it, for every number of pods that can be left to place; the first way to
    come to a number is kept.
    """
    level = levels[depth]
    greedy = _fill(level, domains, need)
    if greedy is None:
        return None
    ordered = _by_entropy(tree, levels, depth, domains) if by_entropy else np.sort(domains)
    # By how many are taken: (leaders left, pods left) -> the domains.
    ways: list[dict[tuple[int, int], tuple[int, ...]]] = [{} for _ in range(greedy.count + 1)]
    ways[0][need.leader, need.slices * need.slicing.size] = ()
    for domain in ordered.tolist():
        pods, with_leader = int(level.pods[domain]), int(level.pods_with_leader[domain])
        for taken in range(greedy.count, 0, -1):
            for (leader, left), before in sorted(ways[taken - 1].items()):
                if leader <= 0 and left <= 0:
                    continue
                if leader > 0 and level.leaders[domain] > 0:
                    ways[taken].setdefault((leader - 1, left - with_leader), (*before, domain))
                if level.slices[domain] > 0:
                    ways[taken].setdefault((leader, left - pods), (*before, domain))
    enough = [left for leader, left in ways[greedy.count] if leader == 0 and left <= 0]
    return np.array(ways[greedy.count][0, max(enough)], np.intp) if enough else None


def _by_entropy(tree: TopologyTree, levels: Levels, depth: int, domains: Domains) -> Domains:
    """Those with most room for slices first; among equals those whose own domains have equal room."""
    level = levels[depth]

    def rank(domain: int) -> tuple[int, int, float, int]:
        children = tree.children(depth, np.array([domain], np.intp))[0] if depth < tree.leaf else domains[:0]
        spread = _entropy(levels[depth + 1].pods[children].tolist()) if len(children) else 0.0
        return (-int(level.leaders[domain]), -int(level.slices_with_leader[domain]), -spread, domain)

    return np.array(sorted(domains.tolist(), key=rank), np.intp)


def _entropy(counts: Iterable[int]) -> float:
    given = [count for count in counts if count > 0]
    total = float(sum(given))
    entropy = 0.0
    for count in given:
        part = count / total
        entropy += -part * math.log2(part)
    return entropy


def _share_evenly(
    tree: TopologyTree, levels: Levels, depth: int, domains: Domains, need: Need, threshold: int
) -> list[DomainShare] | None:
    """The threshold to each of the smallest set that is enough, and what is left to each in turn as far as it goes."""
    chosen = _smallest_set(tree, levels, depth, domains, need, by_entropy=False)
    if chosen is None or need.slices < len(chosen) * threshold:
        return None
    level, size = levels[depth], need.slicing.size
    extra, leader = need.slices - len(chosen) * threshold, need.leader
    shares = []
    for domain in in_order_with_leader(level, chosen, least_first=False).tolist():
        room = int((level.slices_with_leader if leader else level.slices)[domain])
        more = min(room - threshold, extra) if leader or extra > 0 else 0
        shares.append(DomainShare(domain, (threshold + more) * size, leader))
        extra, leader = extra - more, 0
    return None if extra > 0 else shares
