"""The action: resize running pods in place, as their autoscalers recommend, and make room for those that wait for it.

A pod grows only where its node has room, where others can move elsewhere for it, or where less urgent pods can be
evicted for it: the cheapest ones, as for a pod that is to be placed there. What shrinks frees its room in the state at
once. The members of a gang are resized alike, all or none. Each resize is a plan: its pods are amended, and its victims
leave. If the world refuses it, the pods are what they were, and it is tried again later. Where the update mode asks for
it, pods are evicted to be made anew (`renewing.py`). Why pods are left as they are is shown (`section.py`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.actions.preempt.pods.search import Found, VictimSearch, refusals
from mooring.actions.resize.changes import Room, Sizer, Sizing, try_resize
from mooring.actions.resize.moving import MOST_MOVED, Move, adopt_moves, find_moves
from mooring.actions.resize.nodes import Fitted
from mooring.actions.resize.renewing import AGAIN_SECONDS, Renewed, configured_pods, renew, stuck_since
from mooring.actions.resize.section import SizingSection
from mooring.actions.resize.targets import (
    acting_autoscalers,
    deferred_pods,
    pods_by_target,
    target_of,
)
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.engine.action import Action, Cycle
from mooring.engine.disruption import Forced, as_created, begin, check_progress, disrupt
from mooring.engine.plugin import Change
from mooring.engine.profile import Profile
from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.meta import timestamp_seconds
from mooring.model.decisions import Decision, Evict, Resize
from mooring.model.keys import PodKey
from mooring.model.pod_patch import PodPatch
from mooring.model.rightsizing.amounts import CONTROLLED
from mooring.model.rightsizing.horizontal import contest_note, contested_resources, without_contested
from mooring.model.rightsizing.limit_ranges import bounds_of
from mooring.model.rightsizing.modes import IN_PLACE, IN_PLACE_OR_RECREATE, disruptable, min_replicas, update_mode
from mooring.model.rightsizing.recommendations import read_recommendations
from mooring.model.rightsizing.resizing import resize_patch, why_not_in_place
from mooring.model.rightsizing.updating import UpdateSettings, pods_to_update
from mooring.state.cluster import Cluster
from mooring.state.plans import Amend, Plan, Reason
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.remembered import Seen
from mooring.state.rows import Rows

EVERY_SECONDS = 10.0
"""Runs are at least so far apart: what was resized a moment ago is not looked at again at once."""
IN_PROGRESS_SECONDS = 3600.0
"""After so long a resize that the world has not confirmed is given up, as the updater of autoscalers does."""
FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 60.0, 3600.0


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that are resized together: one, or the members of a gang."""

    subject: str
    members: tuple[tuple[PodRecord, PodPatch], ...]
    not_in_place: str = ""
    """Why they cannot be resized where they are; empty if they perhaps can."""

    @property
    def amends(self) -> tuple[Amend, ...]:
        return tuple(Amend(record.key, patch) for record, patch in self.members if patch.resources)


@dataclass(frozen=True, slots=True)
class _Turn:
    """One autoscaler in one run."""

    sizing: Sizing
    records: Sequence[PodRecord]
    """The pods of its target."""
    settled: Sequence[PodRecord]
    notes: dict[str, None] = field(default_factory=dict)
    """Why pods are left as they are."""

    @property
    def vpa(self) -> VerticalPodAutoscaler:
        return self.sizing.vpa


class ResizePods(Action):
    """Resizes pods in place."""

    def __init__(
        self, profiles: Mapping[str, Profile], costs: Mapping[str, PreemptionCostArgs], rehearsal: Rehearsal
    ) -> None:
        self._profiles, self._costs, self._rehearsal = profiles, costs, rehearsal
        self._notes: dict[str, tuple[str, ...]] = {}
        """By autoscaler, why pods are left as they are, as of the last run."""
        self._looked_at = Seen()
        """The version of the cluster at the last run: as long as it is the same, nothing else is decided."""
        self._due = math.inf
        """When a pod becomes due by its age."""

    def report(self, cycle: Cycle) -> SizingSection:
        return SizingSection(self._notes)

    def is_idle(self, cycle: Cycle) -> bool:
        cluster = cycle.cluster
        if not cluster.related.autoscalers and not cluster.nodes.crowded_rows(CONTROLLED):
            return True
        is_same = self._looked_at.is_at(_what_decides(cluster, cycle.now)) and cycle.now < self._due
        return is_same or cycle.now < self._again_at(cluster)

    def next_wake(self, cluster: Cluster, now: float) -> float | None:
        if not cluster.related.autoscalers:
            return None
        is_same = self._looked_at.is_at(_what_decides(cluster, now))
        times = [time for time in (self._due, *_ends_of_backoffs(cluster)) if now < time < math.inf]
        return min(times, default=None) if is_same else self._again_at(cluster)

    def _again_at(self, cluster: Cluster) -> float:
        """When the next run may be."""
        return cluster.last_runs.get(self.name, -math.inf) + EVERY_SECONDS

    def run(self, cycle: Cycle) -> list[Decision]:
        cluster, now = cycle.cluster, cycle.now
        if self.is_idle(cycle):
            return []
        cluster.note_run(self.name, now)
        self._due = math.inf
        cluster.renewals.forget_until(now - AGAIN_SECONDS)
        search = VictimSearch(cluster, with_costs=bool(self._costs))
        # 1. Room for pods that their kubelets have deferred.
        decisions = [found for record in deferred_pods(cluster) for found in self._relieve(cycle, search, record)]
        # 2. Pods that are far from what their autoscalers recommend.
        autoscalers = acting_autoscalers(cluster)
        targets = pods_by_target(cluster) if autoscalers else {}
        seen, told = set[PodKey](), dict[str, tuple[str, ...]]()
        for vpa in autoscalers:
            records = [record for record in targets.get(target_of(vpa), ()) if record.key not in seen]
            seen.update(record.key for record in records)
            turn = self._turn(cluster, vpa, records)
            decisions += self._size(cycle, search, turn)
            if turn.notes:
                told[f"{vpa.metadata.namespace}/{vpa.metadata.name}"] = tuple(turn.notes)
        self._notes = told
        self._looked_at.is_news(_what_decides(cluster, now))
        return decisions

    # Which pods to resize, to what.

    @staticmethod
    def _turn(cluster: Cluster, vpa: VerticalPodAutoscaler, records: Sequence[PodRecord]) -> _Turn:
        """An autoscaler with what it recommends, without what others scale by, and the bounds of its namespace."""
        related, namespace = cluster.related, vpa.metadata.namespace
        recommended = read_recommendations(vpa.status.recommendation) or []
        contested: dict[str, str] = {}
        if related.horizontal_autoscalers and vpa.spec.target_ref is not None:
            contested = contested_resources(related.horizontal_autoscalers.values(), namespace, vpa.spec.target_ref)
        limits = [one for one in related.limit_ranges.values() if one.metadata.namespace == namespace]
        recommended = without_contested(recommended, contested)
        sizing = Sizing(vpa, recommended, bounds_of(limits, "Container"), bounds_of(limits, "Pod"))
        turn = _Turn(sizing, records, [record for record in records if _is_settled(cluster, record)])
        if contested:
            turn.notes[contest_note(contested)] = None
        return turn

    def _size(self, cycle: Cycle, search: VictimSearch, turn: _Turn) -> list[Decision]:
        """Resize or make anew the pods and gangs of an autoscaler that are due, as many as may change at a time."""
        vpa, mode, target = turn.vpa, update_mode(turn.vpa), target_of(turn.vpa)
        replicas = configured_pods(cycle.cluster, target, len(turn.records), cycle.now)
        may = disruptable(replicas, len(turn.settled))
        if replicas < min_replicas(vpa):
            least = min_replicas(vpa)
            turn.notes[f"the target has {replicas} of at least {least} pods (minReplicas)"] = None
            return []
        decisions: list[Decision] = []
        for unit in self._units(cycle, turn) if may > 0 else ():
            made: list[Decision] = []
            problem = unit.not_in_place or f"update mode {mode}"
            if mode in (IN_PLACE, IN_PLACE_OR_RECREATE) and not unit.not_in_place:
                made, problem = self._resize(cycle, search, unit)
            if not made and mode != IN_PLACE:
                found = renew(cycle, self._rehearsal, target, unit.members, replicas, problem)
                made, problem = found.decisions, self._because(problem, found)
            if not made:
                turn.notes[f"{unit.subject}: {problem}"] = None
            decisions += made
            may -= bool(made)
            if may <= 0:
                break
        return decisions

    def _because(self, problem: str, found: Renewed) -> str:
        self._due = min(self._due, found.again_at)
        return f"{problem}; and {found.problem}" if found.problem else problem

    def _units(self, cycle: Cycle, turn: _Turn) -> list[Unit]:
        """The pods and gangs of an autoscaler that are due, the most urgent first."""
        cluster, now, sizing = cycle.cluster, cycle.now, turn.sizing
        sizer, rows = Sizer(cluster, cycle.queue, self._profiles, now), dict[int, Rows]()
        fitted = {record.key: sizer.fit(sizing, record, rows) for record in turn.settled}
        pods = [one.pod for one in turn.settled]
        due = pods_to_update(sizing.vpa, pods, lambda pod: fitted[pod.key].recommendations, now)
        self._due = min(self._due, _next_due(turn.settled, now))
        by_key, done, units = {record.key: record for record in turn.settled}, set[PodKey](), list[Unit]()
        for pod in due:
            if pod.key in done:
                continue
            gang, members = _together(cluster, by_key[pod.key], turn.records)
            done.update(record.key for record in members)
            if all(record.key in fitted for record in members) and _may_try(cluster, gang or pod.key, now):
                unit = _unit(gang or pod.key, turn, members, fitted)
                units += [unit] if unit is not None else []
        if update_mode(sizing.vpa) == IN_PLACE_OR_RECREATE:
            units += self._stuck(turn, done, now)
        return units

    def _stuck(self, turn: _Turn, done: set[PodKey], now: float) -> list[Unit]:
        """Pods that have their amounts in the spec, and whose kubelets do not give them any of that."""
        found = []
        for record in turn.settled:
            stuck = stuck_since(record) if record.key not in done else None
            if stuck is None:
                continue
            at, why = stuck
            if at <= now:
                found.append(Unit(record.key, ((record, PodPatch()),), why))
            else:
                self._due = min(self._due, at)
        return found

    def _resize(self, cycle: Cycle, search: VictimSearch, unit: Unit) -> tuple[list[Decision], str]:
        """Resize the pods of a unit, all or none; others may have to leave for them. Else, say why not."""
        cluster = cycle.cluster
        with cluster.what_if():
            rooms = [try_resize(cluster, amend.key, amend.patch) for amend in unit.amends]
        if Room.INFEASIBLE in rooms:
            return [], "infeasible in place: its node could never hold it"
        plan = Plan(Reason.RESIZE, amends=unit.amends, until=cycle.now + IN_PROGRESS_SECONDS, subject=unit.subject)
        if Room.DEFERRED not in rooms:
            cycle.queue.note(Change.POD_GONE)  # what shrinks leaves room for others
            return begin(cluster, plan)[1], ""
        no_room = "deferred in place: its node has no room for it now"
        victims: dict[PodKey, PodRecord] = {}
        gangs: dict[str, str] = {}
        with cluster.what_if():
            for amend in unit.amends:
                cluster.amend(amend.key, amend.patch)
            moves = self._find_moves(search, unit.amends[0].key, cycle.now) if len(unit.amends) == 1 else None
            for amend in unit.amends if moves is None else ():
                found = self._find_victims(search, cluster.pods.records[amend.key], cycle.now)
                if found is None:
                    return [], no_room
                gangs.update(found.gangs)
                for victim in found.victims:
                    victims[victim.key] = victim
                    cluster.release(victim.key)
        if moves is not None:
            made = self._move(cycle, moves, unit.amends[0].key, plan)
            return made, "" if made else no_room
        return self._make_room(cycle, list(victims.values()), gangs, unit.amends[0].key, plan), ""

    def _relieve(self, cycle: Cycle, search: VictimSearch, record: PodRecord) -> list[Decision]:
        """Make room for a pod whose kubelet has deferred its resize, unless that is being made."""
        cluster = cycle.cluster
        if any(plan.subject == record.key for _, plan in cluster.plans()):
            return []
        moves = self._find_moves(search, record.key, cycle.now)
        if moves is not None:
            return self._move(cycle, moves, record.key, Plan(Reason.RESIZE, subject=record.key))
        found = self._find_victims(search, record, cycle.now)
        if found is None or not found.victims:
            return []
        plan = Plan(Reason.RESIZE, subject=record.key)
        return self._make_room(cycle, found.victims, found.gangs, record.key, plan)

    # Room for pods that grow.

    def _find_moves(self, search: VictimSearch, key: PodKey, now: float) -> list[Move] | None:
        """The pods that move elsewhere for one to fit on its node; None if evicting fewer is enough, or nothing is."""
        cluster = search.cluster
        record = cluster.pods.records[key]
        profile = self._profiles.get(record.pod.spec.scheduler_name)
        if profile is None:
            return None
        victims = self._find_victims(search, record, now)
        if victims is not None and not victims.victims:
            return None
        most = MOST_MOVED if victims is None else len(victims.victims)
        return find_moves(cluster, self._rehearsal, profile, record, most)

    @staticmethod
    def _move(cycle: Cycle, moves: Sequence[Move], grower: PodKey, plan: Plan) -> list[Decision]:
        """Let pods move elsewhere for one that grows; they are told before it is resized."""
        cluster = cycle.cluster
        made = adopt_moves(cluster, cycle.queue, moves, cluster.pods.records[grower])
        if made is None:
            return []
        leaves = tuple(one.record.leaving for one in moves if one.record.leaving is not None)
        return [*made, *begin(cluster, replace(plan, leaves=leaves))[1]]

    def _find_victims(self, search: VictimSearch, record: PodRecord, now: float) -> Found | None:
        """The cheapest pods to evict from a pod's node for it to fit there; None if it cannot be made to fit."""
        cluster, row = search.cluster, record.row
        profile = self._profiles.get(record.pod.spec.scheduler_name)
        if profile is None:
            return None
        shape = cluster.shape_for(as_created(record.pod))
        with cluster.what_if():
            cluster.release(record.key)
            answer = refusals(profile, cluster, shape, np.array([row], np.intp))
            if answer.refused is not None:
                return None
            if len(answer.feasible):
                return Found(row, cluster.nodes.name(row), (), 0)
            found = search.find(answer, record.pod, now, self._costs.get(profile.name))
        return found if isinstance(found, Found) else None

    def _make_room(
        self, cycle: Cycle, victims: Sequence[PodRecord], gangs: Mapping[str, str], preemptor: PodKey, plan: Plan
    ) -> list[Decision]:
        """Evict pods for a resize, by the one gate; they are told before the pod is resized."""
        check_progress(cycle.cluster, plan.subject, cycle.now)
        node = cycle.cluster.pods.records[preemptor].node_name
        why = Forced(f"Preempted by {preemptor}, which grows in place on node {node}", preemptor, gangs)
        made = disrupt(cycle.cluster, cycle.queue, victims, why, plan)
        return sorted(made.decisions, key=lambda decision: not isinstance(decision, Evict))


def _unit(subject: str, turn: _Turn, members: Sequence[PodRecord], fitted: Mapping[PodKey, Fitted]) -> Unit | None:
    """What changes of some pods, together; nothing if no node could hold one of them, or nothing changes."""
    patches, refused = [], ""
    for record in members:
        own = fitted[record.key]
        if own.infeasible:
            turn.notes[f"{record.key}: infeasible: {own.infeasible}"] = None
            return None
        patch = resize_patch(record.pod, turn.vpa, own.recommendations, turn.sizing.container_bounds)
        refused = refused or why_not_in_place(record.pod, patch)
        patches.append((record, patch))
    return Unit(subject, tuple(patches), refused) if any(patch.resources for _, patch in patches) else None


def _together(cluster: Cluster, record: PodRecord, records: Sequence[PodRecord]) -> tuple[str, Sequence[PodRecord]]:
    """The pods that are resized with one: itself, or the members of its gang that the autoscaler is about."""
    part = cluster.gangs.of(record.key)
    if part is None:
        return "", [record]
    root = cluster.gangs.root_of(part).key
    return root, [
        one for one in records if (own := cluster.gangs.of(one.key)) and cluster.gangs.root_of(own).key == root
    ]


def _is_settled(cluster: Cluster, record: PodRecord) -> bool:
    """Whether a pod runs, and nothing is being done to it."""
    is_running = record.row != UNBOUND and not record.nominated and not record.assumed and record.leaving is None
    return is_running and cluster.plan_for(Resize(record.key, ())) is None


def _next_due(records: Sequence[PodRecord], now: float) -> float:
    """When the next pod has run for so long that a smaller change is made, too."""
    started = (timestamp_seconds(record.pod.status.start_time) for record in records)
    ages = (time + UpdateSettings().lifetime_seconds for time in started if time is not None)
    return min((time for time in ages if time > now), default=math.inf)


def _may_try(cluster: Cluster, subject: str, now: float) -> bool:
    setback = cluster.setbacks.get(subject)
    return setback is None or setback.reason is not Reason.RESIZE or now >= _again_at(setback.times, setback.last)


def _again_at(times: int, last: float) -> float:
    """When a resize may be tried again: twice as long after each that failed."""
    return last + min(FIRST_BACKOFF_SECONDS * 2.0 ** min(times - 1, 16), LONGEST_BACKOFF_SECONDS)


def _ends_of_backoffs(cluster: Cluster) -> list[float]:
    return [
        _again_at(setback.times, setback.last)
        for setback in cluster.setbacks.values()
        if setback.reason is Reason.RESIZE
    ]


def _what_decides(cluster: Cluster, now: float) -> tuple[object, ...]:
    """A value that changes whenever anything does that a resize could depend on."""
    over = sum(time <= now for time in _ends_of_backoffs(cluster))
    sizes, changes, updates = cluster.related.sizing_version, cluster.pod_changes, cluster.pod_updates
    return (*cluster.description, sizes, changes.position, updates.position, over)
