"""Scale-down: which nodes are not needed, since when, and which of them go now.

1. Candidates are the nodes of groups that may shrink, those first that are empty.
2. Who is used too much, or must not go, is out.
3. Each candidate in turn is taken away for a trial: its pods must find places elsewhere.
4. A node that has not been needed for long enough may go, within the limits of its group and of the cluster.
5. So many at a time are deleted.

What has to be remembered from one look to the next is a value (`Memory`), which the caller keeps.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mooring.actions.capacity.autoscaler.deletion_budgets import Deletions, within_budgets
from mooring.actions.capacity.autoscaler.drain import Blocked, Budgets, Drainer
from mooring.actions.capacity.autoscaler.places import Places
from mooring.actions.capacity.autoscaler.removal import Removable, Removals, Unremovable
from mooring.actions.capacity.autoscaler.situation import TO_BE_DELETED, NodeGroup, Situation, readiness
from mooring.actions.capacity.autoscaler.totals import Totals
from mooring.actions.capacity.autoscaler.utilization import Utilization, utilization
from mooring.config.autoscaler import AutoscalerSettings
from mooring.engine.profile import Profile
from mooring.model.api.nodes import Node
from mooring.model.keys import PodKey
from mooring.model.values.selectors import parse_int64
from mooring.state.cluster import Cluster

SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
LONGEST_DELETION_SECONDS = 300.0
"""A node that was to be deleted longer ago than that is looked at again."""

RECENTLY_UNREMOVABLE = "RecentlyUnremovable"
BEING_DELETED = "CurrentlyBeingDeleted"
DISABLED = "ScaleDownDisabledAnnotation"
UNREADY_DISABLED = "ScaleDownUnreadyDisabled"
NOT_UNDERUTILIZED = "NotUnderutilized"
UNEXPECTED = "UnexpectedError"
NOT_LONG_ENOUGH = "NotUnneededLongEnough"
NOT_UNREADY_LONG_ENOUGH = "NotUnreadyLongEnough"
MIN_SIZE_REACHED = "NodeGroupMinSizeReached"
MIN_TOTAL_REACHED = "MinimalResourceLimitExceeded"
NOT_WHOLE = "AtomicScaleDownFailed"
WAITS_FOR_PODS = "BlockedByOnCompletionPod"


@dataclass(frozen=True, slots=True)
class Memory:
    """What one look at the cluster leaves for the next."""

    unneeded: Mapping[str, float] = field(default_factory=dict)
    """Nodes that were not needed, with the time since when."""
    unremovable_until: Mapping[str, float] = field(default_factory=dict)
    """Nodes that could not go, with the time at which that is looked at again."""
    places: Mapping[PodKey, str] = field(default_factory=dict)
    """Where pods found a place, had they to move."""
    looked_at: float = -math.inf
    shortest_interval: float | None = None
    """Between two looks so far."""


@dataclass(frozen=True, eq=False, slots=True)
class ScaleDown:
    """What was found, and what is to be deleted."""

    candidates: tuple[str, ...]
    """In the order in which they were looked at."""
    unneeded: tuple[str, ...]
    utilization: Mapping[str, Utilization]
    unremovable: Mapping[str, Unremovable]
    removable: Deletions
    delete: Deletions
    memory: Memory


def scale_down(
    cluster: Cluster,
    profile: Profile,
    situation: Situation,
    settings: AutoscalerSettings,
    memory: Memory | None = None,
    *,
    under_way: Deletions | None = None,
    sorted_at: float | None = None,
) -> ScaleDown:
    """Decide which nodes go. The cluster is that of the situation (`populate`), and is left as it was.

    `under_way` are deletions that have begun; `sorted_at` is the moment at which candidates are judged empty for their
    order, which is now unless it is given.
    """
    look = _Look(situation, settings, memory or Memory(), under_way or Deletions())
    candidates = look.candidates(situation.now if sorted_at is None else sorted_at)
    with cluster.what_if():
        unneeded, places = look.find_unneeded(Places(cluster, profile), candidates)
    removable, delete = look.what_goes(unneeded)
    return ScaleDown(
        tuple(node.name for node in candidates),
        tuple(found.name for found in unneeded),
        look.utilization,
        look.unremovable,
        removable,
        delete,
        look.remembered(unneeded, places),
    )


class _Look:
    """One look at the cluster."""

    def __init__(
        self, situation: Situation, settings: AutoscalerSettings, memory: Memory, under_way: Deletions
    ) -> None:
        self.situation, self.memory, self.under_way = situation, memory, under_way
        self.settings, self.gpu_label = settings.scale_down, settings.gpu_label
        self.now = situation.now
        self.nodes = {node.name: node for node in situation.nodes}
        self.leaving = (*under_way.empty, *under_way.drain)
        self.unremovable: dict[str, Unremovable] = {}
        self.utilization: dict[str, Utilization] = {}
        self._recent = {name: until for name, until in memory.unremovable_until.items() if until > self.now}
        before = memory.shortest_interval or self.settings.unneeded_seconds or _LEAST_INTERVAL
        self._interval = max(min(before, self.now - memory.looked_at), _LEAST_INTERVAL)

    # Who is looked at.

    def candidates(self, sorted_at: float) -> list[Node]:
        """The nodes of groups that may shrink: empty ones first, then those that were not needed before."""
        emptiness = Drainer(self.settings, sorted_at, Budgets(), None)
        found = []
        for node in self.situation.nodes:
            group = self.situation.group_of.get(node.name)
            if group is not None and group.target > group.min_size:
                judged = emptiness.pods_to_move(self.situation.pods_by_node.get(node.name, ()))
                is_empty = not isinstance(judged, Blocked) and not judged.moving
                is_waiting = is_empty and not isinstance(judged, Blocked) and bool(judged.waiting)
                found.append(((not is_empty, is_waiting, node.name not in self.memory.unneeded), node))
        found.sort(key=lambda each: each[0])
        return [node for _, node in found]

    def _why_out(self, node: Node) -> str:
        """Why a candidate is not looked at any closer; its utilisation is noted where that was asked for."""
        group = self.situation.group_of[node.name]
        settings = self.settings.for_group(group.options)
        if node.name in self._recent:
            return RECENTLY_UNREMOVABLE
        if _is_being_deleted(node, self.now):
            return BEING_DELETED
        if (node.metadata.annotations or {}).get(SCALE_DOWN_DISABLED) == "true":
            return DISABLED
        pods = self.situation.pods_by_node.get(node.name, ())
        used = utilization(node, pods, settings, self.gpu_label, self.now)
        if used is None:
            return UNEXPECTED
        if not settings.unready_enabled and not readiness(node).is_ready:
            return UNREADY_DISABLED
        self.utilization[node.name] = used
        is_by_cpu_or_memory = used.resource in ("cpu", "memory")
        threshold = settings.utilization_threshold if is_by_cpu_or_memory else settings.gpu_utilization_threshold
        return NOT_UNDERUTILIZED if used.share > threshold else ""

    # Who is not needed.

    def find_unneeded(self, places: Places, candidates: Sequence[Node]) -> tuple[list[Removable], Mapping[PodKey, str]]:
        """Take candidates away, one after the other, until there are enough; also, where their pods would go."""
        eligible = []
        for node in candidates:
            if node.name in self.leaving:
                continue
            why = self._why_out(node)
            if why:
                self.unremovable[node.name] = Unremovable(node.name, why)
            else:
                eligible.append(node.name)
        budgets = Budgets(self.situation.budgets)
        drainer = Drainer(self.settings, self.now, budgets, self.situation.controllers)
        removals = Removals(places, self.situation, drainer, self.leaving, self.memory.places)
        enough = self._enough()
        unneeded: list[Removable] = []
        counted = 0
        for name in eligible:
            if counted >= enough:
                break
            found = removals.try_removing(name)
            if isinstance(found, Unremovable):
                self.unremovable[name] = found
                self._recent[name] = self.now + self.settings.unremovable_recheck_seconds
            else:
                unneeded.append(found)
                counted += not self.situation.group_of[name].options.zero_or_max
        return unneeded, removals.found

    def _enough(self) -> int:
        """How many nodes that are not needed there is use for: more could not be deleted in time."""
        at_once = self.settings.max_parallelism
        seconds = max(self.settings.unneeded_seconds, self._interval)
        looks = math.floor(seconds / self._interval)
        return min(len(self.memory.unneeded) + 2 * at_once, at_once * looks + at_once)

    # Who goes.

    def what_goes(self, unneeded: Sequence[Removable]) -> tuple[Deletions, Deletions]:
        """Which nodes may be deleted now, and which are."""
        totals = Totals.of(self.situation, self.gpu_label, lambda name: None)
        headroom = totals.above(self.settings.min_totals)
        sizes = {group.name: group.target - self._leaving_of(group) for group in self.situation.groups}
        going: list[Removable] = []
        for found in (*(each for each in unneeded if not each.moving), *(each for each in unneeded if each.moving)):
            group = self.situation.group_of[found.name]
            amounts = totals.by_group[group.name]
            why = self._why_not_yet(found.name, group)
            if not why and sizes[group.name] <= group.min_size:
                why = MIN_SIZE_REACHED
            if not why and headroom.exceeded(amounts, 1):
                why = MIN_TOTAL_REACHED
            if why:
                self.unremovable[found.name] = Unremovable(found.name, why)
                continue
            headroom = headroom.without(amounts, 1)
            sizes[group.name] -= 1
            going.append(found)
        going.sort(key=lambda each: bool(each.moving) and each.is_risky)
        removable = self._as_deletions(self._whole(going))
        return removable, within_budgets(removable, self.under_way, self.situation, self.settings)

    def _leaving_of(self, group: NodeGroup) -> int:
        return sum(name in group.nodes for name in self.leaving)

    def _why_not_yet(self, name: str, group: NodeGroup) -> str:
        settings = self.settings.for_group(group.options)
        is_ready = readiness(self.nodes[name]).is_ready
        needed = settings.unneeded_seconds if is_ready else settings.unready_seconds
        since = self.memory.unneeded.get(name, self.now)
        if needed > 0 and not since + needed < self.now:
            return NOT_LONG_ENOUGH if is_ready else NOT_UNREADY_LONG_ENOUGH
        return ""

    def _whole(self, going: Sequence[Removable]) -> list[Removable]:
        """Leave out groups that go as a whole and of which a node has to stay; behind the others those that go."""
        singles, by_group = list[Removable](), dict[str, list[Removable]]()
        for found in going:
            group = self.situation.group_of[found.name]
            if group.options.zero_or_max:
                by_group.setdefault(group.name, []).append(found)
            else:
                singles.append(found)
        for together in by_group.values():
            group = self.situation.group_of[together[0].name]
            if len(together) in (group.target, self.situation.registered[group.name]):
                singles += together
            else:
                for found in together:
                    self.unremovable[found.name] = Unremovable(found.name, NOT_WHOLE)
        return singles

    def _as_deletions(self, going: Sequence[Removable]) -> Deletions:
        for found in going:
            if found.is_waiting:
                self.unremovable[found.name] = Unremovable(found.name, WAITS_FOR_PODS)
        ready = [found for found in going if not found.is_waiting]
        empty = tuple(found.name for found in ready if not found.moving)
        return Deletions(empty, tuple(found.name for found in ready if found.moving))

    def remembered(self, unneeded: Sequence[Removable], places: Mapping[PodKey, str]) -> Memory:
        return Memory(
            {found.name: self.memory.unneeded.get(found.name, self.now) for found in unneeded},
            {name: until for name, until in self._recent.items() if name in self.nodes},
            dict(places),
            self.now,
            self._interval,
        )


_LEAST_INTERVAL = 1e-9
"""Seconds: what no two looks are closer than."""


def _is_being_deleted(node: Node, now: float) -> bool:
    """Whether somebody said not long ago that a node is to be deleted."""
    for taint in node.spec.taints or ():
        if taint.key == TO_BE_DELETED:
            since = parse_int64(taint.value)
            return since is not None and now - since < LONGEST_DELETION_SECONDS
    return False
