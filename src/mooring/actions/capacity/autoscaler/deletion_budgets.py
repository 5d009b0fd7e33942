"""How many nodes are deleted at a time: of all, and of those whose pods have to move first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.actions.capacity.autoscaler.situation import NodeGroup, Situation
from mooring.config.autoscaler import ScaleDownSettings


@dataclass(frozen=True, slots=True)
class Deletions:
    """Nodes that are deleted, or may be, by name."""

    empty: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    """Those whose pods have to move first."""


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Nodes of one group."""

    group: NodeGroup
    nodes: tuple[str, ...]


def within_budgets(
    removable: Deletions, under_way: Deletions, situation: Situation, settings: ScaleDownSettings
) -> Deletions:
    """Choose what is deleted now: groups that go as a whole first, then empty nodes, then others."""
    budget = settings.max_parallelism - len(under_way.empty) - len(under_way.drain)
    drain_budget = settings.max_drain_parallelism - len(under_way.drain)
    empty, drain = (_buckets(nodes, situation.group_of) for nodes in (removable.empty, removable.drain))
    whole, whole_drain = _together(empty), _together(drain)
    draining = {bucket.group.name: bucket for bucket in whole_drain}
    chosen, chosen_drain = list[str](), list[str]()
    may_exceed = True
    for bucket in whole:
        to_drain = draining[bucket.group.name].nodes if bucket.group.name in draining else ()
        count = len(bucket.nodes) + len(to_drain)
        is_too_much = budget < count or drain_budget < len(to_drain)
        is_spent = budget == 0 or (bool(to_drain) and drain_budget == 0)
        # One group may go beyond the budgets, or large ones would never go at all.
        if is_too_much and (is_spent or not may_exceed):
            break
        if not _is_whole(situation, bucket.group, count):
            continue
        chosen += bucket.nodes
        chosen_drain += to_drain
        budget -= count
        drain_budget -= len(to_drain)
        may_exceed = False
    drain_budget = min(budget, drain_budget)
    seen = {bucket.group.name for bucket in whole}
    for bucket in whole_drain:
        if bucket.group.name in seen:
            continue
        if drain_budget < len(bucket.nodes) and (drain_budget == 0 or not may_exceed):
            break
        if not _is_whole(situation, bucket.group, len(bucket.nodes)):
            continue
        chosen_drain += bucket.nodes
        budget -= len(bucket.nodes)
        drain_budget -= len(bucket.nodes)
        may_exceed = False
    single = [node for bucket in _one_by_one(empty) for node in bucket.nodes][: max(budget, 0)]
    drain_budget = min(budget - len(single), drain_budget)
    single_drain = [node for bucket in _one_by_one(drain) for node in bucket.nodes][: max(drain_budget, 0)]
    return Deletions((*chosen, *single), (*chosen_drain, *single_drain))


def _buckets(nodes: Sequence[str], group_of: Mapping[str, NodeGroup]) -> list[_Bucket]:
    found: dict[str, list[str]] = {}
    for node in nodes:
        found.setdefault(group_of[node].name, []).append(node)
    return [_Bucket(group_of[names[0]], tuple(names)) for names in found.values()]


def _together(buckets: Sequence[_Bucket]) -> list[_Bucket]:
    return [bucket for bucket in buckets if bucket.group.options.zero_or_max]


def _one_by_one(buckets: Sequence[_Bucket]) -> list[_Bucket]:
    return [bucket for bucket in buckets if not bucket.group.options.zero_or_max]


def _is_whole(situation: Situation, group: NodeGroup, count: int) -> bool:
    """Whether so many nodes are all that a group should have, or all that it has."""
    return count in (group.target, situation.registered[group.name])
