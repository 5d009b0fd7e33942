"""Topology assignments of whole workloads: pod set by pod set, each against what those before it were given."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.actions.admit.topology.balanced import place_balanced
from mooring.actions.admit.topology.counts import LevelCounts, Numbers, Slicing, count_leaves, count_up
from mooring.actions.admit.topology.flavor import FlavorTopology, Matching
from mooring.actions.admit.topology.placement import Need, NoRoom, place
from mooring.actions.admit.topology.request import PodSetTopologyRequest, SliceLayer
from mooring.actions.admit.topology.usage import DomainUsage, DomainUse, TopologyUse, sum_up
from mooring.model.api.pods import PodSpec
from mooring.model.decisions import TopologyAssignment, TopologyDomain


@dataclass(frozen=True, slots=True)
class PodSetNeed:
    """The pods of one pod set that are to be placed in a flavor's topology."""

    name: str
    flavor: str
    count: int
    per_pod: Mapping[str, int]
    """What each asks for, its place on a node included."""
    spec: PodSpec
    selection: int
    """Equal numbers select nodes equally."""
    request: PodSetTopologyRequest
    only_in: tuple[str, ...] = ()
    """The values of the topology's first levels, where all of it has to be in one certain domain."""


@dataclass(slots=True)
class Found:
    """What came of looking for topology assignments: one for each pod set, or who failed and why."""

    assignments: dict[str, TopologyAssignment] = field(default_factory=dict)
    uses: list[DomainUse] = field(default_factory=list)
    failed: str = ""
    """The pod set that has no place; empty if all have."""
    message: str = ""

    @property
    def is_complete(self) -> bool:
        return not self.failed


class _Together(NamedTuple):
    """Pods that are placed in one go: workers, and a leader where they have one."""

    workers: PodSetNeed
    leader: PodSetNeed | None


class TopologyAssigner:
    """Assigns domains against the flavors' topologies as they stand; changes nothing."""

    def __init__(self, usage: DomainUsage, *, balanced: bool = False) -> None:
        self.flavors: dict[str, FlavorTopology] = {}
        """By name, the flavors that have a topology; whoever knows the nodes keeps them up to date."""
        self.usage = usage
        self._balanced = balanced

    def find(self, needs: Iterable[PodSetNeed], *, is_empty: bool = False) -> Found:
        """Find a place for all pod sets; on an empty cluster, as if no workload had been assigned any domain."""
        found = Found()
        by_flavor: dict[str, list[PodSetNeed]] = {}
        for need in needs:
            by_flavor.setdefault(need.flavor, []).append(need)
        for name in sorted(by_flavor):
            flavor, first = self.flavors[name], len(found.uses)
            for together in _groups(by_flavor[name]):
                assumed = sum_up(found.uses)
                given = _FlavorPlacement(flavor, together, assumed, is_empty).run(balanced=self._balanced)
                if isinstance(given, str):
                    message = self._message(given, flavor, together, found.uses[first:] if first else None, is_empty)
                    return Found(failed=together.workers.name, message=message)
                for need, assignment in given:
                    found.assignments[need.name] = assignment
                    found.uses += self.usage.use_of(name, assignment, need.per_pod)
        return found

    def _message(
        self, message: str, flavor: FlavorTopology, together: _Together, uses: list[DomainUse] | None, is_empty: bool
    ) -> str:
        """Why there is no place, in the numbers of Kueue, which counts earlier pod sets of the same flavor alone.

        Here nodes that two flavors share are not given twice. If that is what is in the way, the message says so.
        """
        if uses is None:
            return message
        alone = _FlavorPlacement(flavor, together, sum_up(uses), is_empty).run(balanced=self._balanced)
        return alone if isinstance(alone, str) else message

    def fits(self, flavors: Iterable[str], uses: Sequence[DomainUse]) -> bool:
        """Whether all of it has room where it was assigned, beside what is used there now."""
        known = [self.flavors[name] for name in flavors]
        for domain, amounts in sum_up(uses).items():
            holders = [flavor for flavor in known if domain in flavor.leaf_of]
            if not holders:
                return False
            for resource, amount in amounts.items():
                if amount and any(flavor.remaining_at(flavor.leaf_of[domain], resource) < amount for flavor in holders):
                    return False
        return True

    def use_of(self, needs: Iterable[PodSetNeed], assignments: Mapping[str, TopologyAssignment]) -> TopologyUse:
        return tuple(
            use
            for need in needs
            if need.name in assignments
            for use in self.usage.use_of(need.flavor, assignments[need.name], need.per_pod)
        )


def _groups(needs: Sequence[PodSetNeed]) -> list[_Together]:
    """Pod sets of one group together, at the place of the first; the leader is the second unless it has more pods."""
    grouped: dict[str, list[PodSetNeed]] = {}
    for index, need in enumerate(needs):
        grouped.setdefault(need.request.group or f"\n{index}", []).append(need)
    found = []
    for members in grouped.values():
        workers, leader = members[0], members[1] if len(members) > 1 else None
        if leader is not None and leader.count > workers.count:
            workers, leader = leader, workers
        found.append(_Together(workers, leader))
    return found


class _FlavorPlacement:
    """One pod set, or a leader and its workers, in one flavor."""

    def __init__(
        self,
        flavor: FlavorTopology,
        together: _Together,
        assumed: Mapping[int, Mapping[str, int]],
        is_empty: bool,
    ) -> None:
        self._flavor, self._together = flavor, together
        self._assumed, self._is_empty = assumed, is_empty
        self._request = together.workers.request

    def run(self, *, balanced: bool) -> list[tuple[PodSetNeed, TopologyAssignment]] | str:
        """The assignments, or why there is no place."""
        tree = self._flavor.tree
        need = self._make_need()
        if isinstance(need, str):
            return need
        if not len(self._flavor):
            return f"no topology domains at level: {self._flavor.levels[need.depth - 1]}"
        matching = self._flavor.matching(self._together.workers.selection, self._together.workers.spec)
        leaves = self._count_leaves(matching, need.slicing)
        levels = count_up(tree, leaves, need.slicing, with_leader=bool(need.leader))
        may_balance = balanced and not need.is_required and not need.is_free
        shares = (place_balanced(tree, levels, need) if may_balance else None) or place(tree, levels, need)
        if isinstance(shares, NoRoom):
            return self._message(levels, need, matching, shares)
        workers, leader = self._together
        given = [(workers, self._assignment((share.domain, share.pods) for share in shares))]
        if leader is not None:
            given.append((leader, self._assignment((share.domain, share.leader) for share in shares)))
        return given

    def _make_need(self) -> Need | str:
        request, levels = self._request, self._flavor.levels
        searched = request.searched_level(levels)
        lowest = levels[-1]
        slice_level = request.layers[0].level if request.layers else lowest
        for level in (searched, slice_level):
            if level not in levels:
                return f"no requested topology level: {level}"
        depth, slice_depth = levels.index(searched) + 1, levels.index(slice_level) + 1
        if depth > slice_depth:
            return f"podset slice topology {slice_level} is above the podset topology {searched}"
        inner = self._inner(slice_depth)
        if isinstance(inner, str):
            return inner
        return Need(
            count=self._together.workers.count,
            leader=0 if self._together.leader is None else 1,
            depth=depth,
            is_required=request.required is not None,
            is_free=request.is_free,
            slicing=Slicing(request.slice_size, slice_depth, inner),
        )

    def _inner(self, depth: int) -> dict[int, int] | str:
        """The unit of every depth below that of the slices, as far as smaller slices are asked for inside them."""
        levels, inner = self._flavor.levels, dict[int, int]()
        size, above = self._request.slice_size, levels[depth - 1]
        for layer in self._request.layers[1:]:
            if layer.level not in levels:
                return f"no requested topology level for additional slice layer: {layer.level}"
            lower = levels.index(layer.level) + 1
            if lower <= depth:
                return f"additional slice layer topology {layer.level} must be at a lower level than {above}"
            if size % layer.size:
                return f"additional slice layer size {layer.size} must evenly divide parent layer size {size}"
            inner.update(dict.fromkeys(range(depth + 1, lower + 1), layer.size))
            size, depth, above = layer.size, lower, layer.level
        return inner

    def _remaining(self, resource: str) -> Numbers:
        remaining = self._flavor.remaining(resource, is_empty=self._is_empty)
        for domain, amounts in self._assumed.items():
            leaf = self._flavor.leaf_of.get(domain)
            if leaf is not None:
                remaining[leaf] -= amounts.get(resource, 0)
        return remaining

    def _count_leaves(self, matching: Matching, slicing: Slicing) -> LevelCounts:
        flavor, (workers, leader) = self._flavor, self._together
        wanted = {name: amount for name, amount in workers.per_pod.items() if amount > 0}
        leads = {} if leader is None else {name: amount for name, amount in leader.per_pod.items() if amount > 0}
        left = {name: self._remaining(name) for name in {**wanted, **leads}}
        pods = _count(left, wanted)
        with_leader, leaders = pods, np.zeros(len(flavor), np.int64)
        if leader is not None:
            leaders = (_count(left, leads) > 0).astype(np.int64)
            with_leader = _count({name: left[name] - leads.get(name, 0) * leaders for name in wanted}, wanted)
        for mask in (matching.mask, self._inside(workers.only_in)):
            if mask is not None:
                pods, with_leader, leaders = (np.where(mask, found, 0) for found in (pods, with_leader, leaders))
        return count_leaves(flavor.tree, pods, with_leader, leaders, slicing)

    def _inside(self, path: tuple[str, ...]) -> NDArray[np.bool_] | None:
        """The leaves of one domain; None: of all."""
        return np.array([values[: len(path)] == path for values in self._flavor.values], np.bool_) if path else None

    def _message(self, levels: Sequence[LevelCounts], need: Need, matching: Matching, no_room: NoRoom) -> str:
        flavor = self._flavor
        excluded = {**matching.excluded, **self._exclusions_by_resource(levels[-1].pods, matching)}
        if len(self._request.layers) > 1:
            text = layers_message(flavor, levels, self._request.layers, need.count, no_room.depth)
        else:
            text = not_fit_message(flavor.topology, no_room.fitting, need.slices, need.slicing.size)
        if not excluded:
            return text
        said = ", ".join(sorted(f"{reason}: {count}" for reason, count in excluded.items()))
        return f"{text}. Total nodes: {len(flavor)}; excluded: {said}"

    def _exclusions_by_resource(self, pods: Numbers, matching: Matching) -> dict[str, int]:
        """Of the leaves without room for a single pod, which resource is the first, by name, that they lack."""
        lacking = pods == 0
        if matching.mask is not None:
            lacking &= matching.mask
        counts: dict[str, int] = {}
        for name, amount in sorted(self._together.workers.per_pod.items()):
            if amount > 0 and lacking.any():
                short = lacking & (self._remaining(name) < amount)
                if short.any():
                    counts[f'resource "{name}"'] = int(short.sum())
                    lacking &= ~short
        return counts

    def _assignment(self, shares: Iterable[tuple[int, int]]) -> TopologyAssignment:
        """Lowest domains in the order of their paths; nodes are named by their hostname alone."""
        flavor = self._flavor
        first = len(flavor.levels) - 1 if flavor.has_nodes_as_leaves else 0
        total: dict[int, int] = {}
        for leaf, count in shares:
            total[leaf] = total.get(leaf, 0) + count
        domains = tuple(
            TopologyDomain(flavor.values[leaf][first:], count) for leaf, count in sorted(total.items()) if count
        )
        return TopologyAssignment(flavor.levels[first:], domains)


def _count(left: Mapping[str, Numbers], wanted: Mapping[str, int]) -> Numbers:
    """How many pods that each want so much there is room for."""
    counts = [left[name] // amount for name, amount in wanted.items()]
    found: Numbers = np.maximum(np.minimum.reduce(counts), 0)
    return found


# Why a topology has no place for a pod set, in Kueue's words.


def not_fit_message(topology: str, fitting: int, wanted: int, size: int) -> str:
    """Say how many of the pods, or of the slices, would fit.

    >>> not_fit_message("dc", 8, 10, 1), not_fit_message("dc", 0, 3, 4)
    ('topology "dc" allows to fit only 8 out of 10 pod(s)', 'topology "dc" doesn\\'t allow to fit any of 3 slice(s)')
    """
    unit = "pod(s)" if size == 1 else "slice(s)"
    if not fitting:
        return f'topology "{topology}" doesn\'t allow to fit any of {wanted} {unit}'
    return f'topology "{topology}" allows to fit only {fitting} out of {wanted} {unit}'


def layers_message(
    flavor: FlavorTopology, levels: Sequence[LevelCounts], layers: Sequence[SliceLayer], count: int, depth: int
) -> str:
    """Say of each layer of slices how many would fit in the best domain of the depth that was searched last."""
    tree = flavor.tree
    best = _best_domain(flavor, levels, depth)
    text = f'topology "{flavor.topology}" doesn\'t allow to fit'
    for layer in layers:
        at = flavor.levels.index(layer.level) + 1
        domains = np.array([best], np.intp)
        for above in range(depth, at):
            domains = tree.children(above, domains)[0]
        fitting = int((levels[at].pods[domains] // layer.size).sum()) if at >= depth else 0
        text += f"; {fitting}/{count // layer.size} slice(s) fit on level {layer.level}"
    return text


def _best_domain(flavor: FlavorTopology, levels: Sequence[LevelCounts], depth: int) -> int:
    """The domain with most slices; among equals the one whose name, as Kueue writes it, comes first."""
    slices = levels[depth].slices
    most = np.flatnonzero(slices == slices.max()).tolist()
    is_node = depth == flavor.tree.leaf and flavor.has_nodes_as_leaves
    paths = {domain: flavor.tree.path(depth, domain) for domain in most}
    return int(min(most, key=lambda domain: paths[domain][-1] if is_node else ",".join(paths[domain])))
