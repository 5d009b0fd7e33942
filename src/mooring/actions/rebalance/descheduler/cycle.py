"""One cycle of descheduling: every strategy of every profile, in the descheduler's order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mooring.actions.rebalance.descheduler.duplicates import remove_duplicates
from mooring.actions.rebalance.descheduler.evictor import Eviction, Evictor, Limits
from mooring.actions.rebalance.descheduler.pod_strategies import (
    remove_failed_pods,
    remove_old_pods,
    remove_pods_by_anti_affinity,
    remove_pods_by_node_affinity,
    remove_restarting_pods,
    remove_tainted_pods,
)
from mooring.actions.rebalance.descheduler.situation import Situation
from mooring.actions.rebalance.descheduler.topology_spread import remove_pods_by_topology_spread
from mooring.actions.rebalance.descheduler.utilization import Classes, empty_idle_nodes, move_from_busy_nodes
from mooring.config.descheduler import Args, DefaultEvictorArgs, DeschedulerPolicy
from mooring.model.api.nodes import Node

Strategy = Callable[[Evictor, Sequence[Node], Any], Classes | None]

STRATEGIES: dict[str, Strategy] = {
    "PodLifeTime": remove_old_pods,
    "RemoveFailedPods": remove_failed_pods,
    "RemovePodsHavingTooManyRestarts": remove_restarting_pods,
    "RemovePodsViolatingInterPodAntiAffinity": remove_pods_by_anti_affinity,
    "RemovePodsViolatingNodeAffinity": remove_pods_by_node_affinity,
    "RemovePodsViolatingNodeTaints": remove_tainted_pods,
    "RemoveDuplicates": remove_duplicates,
    "LowNodeUtilization": move_from_busy_nodes,
    "HighNodeUtilization": empty_idle_nodes,
    "RemovePodsViolatingTopologySpreadConstraint": remove_pods_by_topology_spread,
}

CLASSIFYING = frozenset(("LowNodeUtilization", "HighNodeUtilization", "LowNodeLoad"))
"""The strategies that tell what they found nodes to be, even where nothing more can be evicted."""


@dataclass(frozen=True, slots=True)
class Descheduled:
    """What one cycle did."""

    evictions: list[Eviction]
    nodes: dict[str, Classes] = field(default_factory=dict)
    """By strategy: how it found the nodes to be used."""


MakeEvictor = Callable[[Situation, Limits, DefaultEvictorArgs, str], Evictor]


def deschedule(
    policy: DeschedulerPolicy,
    situation: Situation,
    make_evictor: MakeEvictor = Evictor,
    strategies: Mapping[str, Strategy] = STRATEGIES,
) -> Descheduled:
    """Run a policy once. With fewer than two nodes there is nowhere to go, and nothing happens."""
    limits = Limits(policy)
    evictors = [make_evictor(situation, limits, profile.evictor, profile.name) for profile in policy.profiles]
    nodes = situation.ready_nodes(policy.node_selector)
    done = Descheduled(limits.evictions)
    if len(nodes) < 2:
        return done
    # 1. What should not be where it is, profile by profile. 2. What could be better placed, profile by profile.
    steps: list[tuple[Evictor, str, Args]] = []
    for point in ("deschedule", "balance"):
        for evictor, profile in zip(evictors, policy.profiles, strict=True):
            steps += [(evictor, name, args) for name, args in getattr(profile, point)]
    for evictor, name, args in steps:
        if evictor.is_exhausted and name not in CLASSIFYING:
            continue
        classes = strategies[name](evictor, nodes, args)
        if classes is not None:
            done.nodes[name] = classes
    return done
