"""Whether a node could go: its pods are judged, and those that have to move must find places elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from mooring.actions.capacity.autoscaler.drain import Blocked, Drainer
from mooring.actions.capacity.autoscaler.places import NOWHERE, Places
from mooring.actions.capacity.autoscaler.situation import TO_BE_DELETED, Situation
from mooring.model.api.nodes import Node, Taint
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.model.node_offer import NodeOffer

NO_PLACE = "NoPlaceToMovePods"
BLOCKED_BY_POD = "BlockedByPod"


@dataclass(frozen=True, slots=True)
class Removable:
    """A node whose pods would have places elsewhere."""

    name: str
    moving: tuple[Pod, ...]
    is_waiting: bool
    """Whether pods on it are to run to their end first."""
    is_risky: bool
    """Whether a budget lets its pods go only one after the other."""


@dataclass(frozen=True, slots=True)
class Unremovable:
    """A node that cannot go, and the pod that it is for, if there is one."""

    name: str
    reason: str
    blocked: Blocked | None = None


class Removals:
    """Tries out which nodes could go, one after the other: what is found for one holds for the next.

    The cluster is changed; a trial around it undoes that.
    """

    def __init__(
        self,
        places: Places,
        situation: Situation,
        drainer: Drainer,
        leaving: Sequence[str],
        hints: Mapping[PodKey, str],
    ) -> None:
        self._places, self._cluster = places, places.cluster
        self._drainer, self._budgets = drainer, drainer.budgets
        self._nodes = {node.name: node for node in situation.nodes}
        self._pods = {name: list(pods) for name, pods in situation.pods_by_node.items()}
        """The pods of each node, in the order in which they came, and behind them those that moved there."""
        self._hints = hints
        """Where pods found a place the last time."""
        self.found: dict[PodKey, str] = {}
        """Where they found one this time, also if their node stays."""
        self._destinations = places.uncordoned()
        for name in leaving:
            self._destinations[self._row(name)] = False
        self._pods_look_at_others = _look_at_others(situation.pods)

    def try_removing(self, name: str) -> Removable | Unremovable:
        """See whether a node could go, as things stand; if it could, let it be gone."""
        judged = self._drainer.pods_to_move(self._pods.get(name, ()))
        if isinstance(judged, Blocked):
            return Unremovable(name, BLOCKED_BY_POD, judged)
        moved = self._try_moving(name, judged.moving)
        if moved is None:
            return Unremovable(name, NO_PLACE)
        for pod, target in moved:
            self._pods.setdefault(target, []).append(pod)
        self._pods.pop(name, None)
        is_risky = not self._budgets.allow_together(judged.moving)
        self._budgets.spend(judged.moving)
        return Removable(name, judged.moving, bool(judged.waiting), is_risky)

    def _row(self, name: str) -> int:
        return self._cluster.nodes.row_of[name]

    def _try_moving(self, name: str, moving: Sequence[Pod]) -> list[tuple[Pod, str]] | None:
        """Find places for the pods of a node; None, and nothing has changed, if one finds none."""
        cluster, row = self._cluster, self._row(name)
        is_destination = bool(self._destinations[row])
        with cluster.what_if() as trial:
            for pod in self._pods.get(name, ()):
                cluster.release(pod.key)
            ghost = self._taint(name, row) if self._pods_look_at_others else None
            self._destinations[row] = False
            moved = self._place(moving)
            if len(moved) < len(moving):
                self._destinations[row] = is_destination
                return None
            if ghost is not None:
                cluster.close_row(ghost)
            trial.keep()
        return moved

    def _taint(self, name: str, row: int) -> int:
        """Let a node stay in the picture while its pods look for places, for it still is a domain to be counted."""
        node = self._nodes[name]
        taints = [*(node.spec.taints or ()), Taint(key=TO_BE_DELETED, effect="NoSchedule")]
        self._cluster.close_row(row)
        return self._cluster.open_row(NodeOffer(_with_taints(node, taints)))

    def _place(self, pods: Sequence[Pod]) -> list[tuple[Pod, str]]:
        """Place pods by priority: first those that found a place before, there, then the others, until one finds none.

        Pods of a lower priority are tried all the same: what they find is known the next time.
        """
        moved: list[tuple[Pod, str]] = []
        by_priority: dict[int, list[Pod]] = {}
        for pod in pods:
            by_priority.setdefault(pod.spec.priority or 0, []).append(pod)
        for priority in sorted(by_priority, reverse=True):
            others = []
            for pod in by_priority[priority]:
                target = self._where_before(pod)
                if target is None:
                    others.append(pod)
                else:
                    moved.append((pod, target))
            for pod in others:
                target = self._anywhere(pod)
                if target is None:
                    break
                moved.append((pod, target))
        return moved

    def _where_before(self, pod: Pod) -> str | None:
        name = self.found.get(pod.key) or self._hints.get(pod.key)
        row = self._cluster.nodes.row_of.get(name) if name is not None else None
        if name is None or row is None or not self._destinations[row]:
            return None
        if not self._places.fits(self._cluster.pods.records[pod.key].shape, row):
            return None
        self._put(pod, row, name)
        return name

    def _anywhere(self, pod: Pod) -> str | None:
        destinations = self._destinations
        end = self._cluster.nodes.end
        if len(destinations) < end:
            destinations = self._places.only(np.flatnonzero(destinations))
        row = self._places.find(self._cluster.pods.records[pod.key].shape, destinations)
        if row == NOWHERE:
            return None
        name = self._cluster.nodes.name(row)
        self._put(pod, row, name)
        return name

    def _put(self, pod: Pod, row: int, name: str) -> None:
        self._cluster.assume(pod.key, row)
        self.found[pod.key] = name


def _with_taints(node: Node, taints: list[Taint]) -> Node:
    return replace(node, spec=replace(node.spec, taints=taints))


def _look_at_others(pods: Sequence[Pod]) -> bool:
    """Whether any pod cares which others are where, or on how many domains they are spread."""
    for pod in pods:
        affinity = pod.spec.affinity
        if pod.spec.topology_spread_constraints:
            return True
        if affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None):
            return True
    return False
