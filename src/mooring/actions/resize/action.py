"""The action: resize running pods in place, as their autoscalers recommend, and make room for those that wait for it.

A pod grows only where its node has room, or where less urgent pods can be evicted for it: the cheapest ones, as for a
pod that is to be placed there. What shrinks frees its room in the state at once. The members of a gang are resized
alike, all or none. Each resize is a plan: its pods are amended, and its victims leave. If the world refuses it, the
pods are what they were, and it is tried again later. To evict a pod and make it anew is left to autoscalers' updaters.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.actions.preempt.pods.search import Found, VictimSearch, refusals
from mooring.actions.resize.changes import Room, Sizer, Sizing, try_resize
from mooring.actions.resize.nodes import Fitted
from mooring.actions.resize.targets import (
    deferred_pods,
    in_place_autoscalers,
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
from mooring.model.rightsizing.amounts import CONTROLLED
from mooring.model.rightsizing.modes import disruptable, min_replicas
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
    amends: tuple[Amend, ...]


class ResizePods(Action):
    """Resizes pods in place."""

    def __init__(self, profiles: Mapping[str, Profile], costs: Mapping[str, PreemptionCostArgs]) -> None:
        self._profiles, self._costs = profiles, costs
        self._looked_at = Seen()
        """The version of the cluster at the last run: as long as it is the same, nothing else is decided."""
        self._due = math.inf
        """When a pod becomes due by its age."""

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
        search = VictimSearch(cluster, with_costs=bool(self._costs))
        # 1. Room for pods that their kubelets have deferred.
        decisions = [found for record in deferred_pods(cluster) for found in self._relieve(cycle, search, record)]
        # 2. Pods that are far from what their autoscalers recommend.
        autoscalers = in_place_autoscalers(cluster)
        targets = pods_by_target(cluster) if autoscalers else {}
        seen = set[PodKey]()
        for vpa in autoscalers:
            records = [record for record in targets.get(target_of(vpa), ()) if record.key not in seen]
            seen.update(record.key for record in records)
            decisions += self._resize_units(cycle, search, vpa, records)
        self._looked_at.is_news(_what_decides(cluster, now))
        return decisions

    # Which pods to resize, to what.

    def _resize_units(
        self, cycle: Cycle, search: VictimSearch, vpa: VerticalPodAutoscaler, records: Sequence[PodRecord]
    ) -> list[Decision]:
        """Resize the pods and gangs of an autoscaler that are due, as many as may change at a time."""
        settled = [record for record in records if _is_settled(cycle.cluster, record)]
        may = disruptable(len(records), len(settled)) if len(records) >= min_replicas(vpa) else 0
        decisions: list[Decision] = []
        for unit in self._units(cycle, vpa, records, settled) if may > 0 else ():
            made = self._resize(cycle, search, unit)
            decisions += made
            may -= bool(made)
            if may <= 0:
                break
        return decisions

    def _units(
        self, cycle: Cycle, vpa: VerticalPodAutoscaler, records: Sequence[PodRecord], settled: Sequence[PodRecord]
    ) -> list[Unit]:
        """The pods and gangs of an autoscaler that are due, the most urgent first."""
        cluster, now = cycle.cluster, cycle.now
        sizing = Sizing(vpa, read_recommendations(vpa.status.recommendation) or [])
        sizer, rows = Sizer(cluster, cycle.queue, self._profiles, now), dict[int, Rows]()
        fitted = {record.key: sizer.fit(sizing, record, rows) for record in settled}
        due = pods_to_update(vpa, [one.pod for one in settled], lambda pod: fitted[pod.key].recommendations, now)
        self._due = min(self._due, _next_due(settled, now))
        by_key, done, units = {record.key: record for record in settled}, set[PodKey](), list[Unit]()
        for pod in due:
            if pod.key in done:
                continue
            gang, members = _together(cluster, by_key[pod.key], records)
            done.update(record.key for record in members)
            subject = gang or pod.key
            if not all(record.key in fitted for record in members) or not _may_try(cluster, subject, now):
                continue
            amends = _amends(sizing, members, fitted)
            if amends:
                units.append(Unit(subject, amends))
        return units

    def _resize(self, cycle: Cycle, search: VictimSearch, unit: Unit) -> list[Decision]:
        """Resize the pods of a unit, all or none; others may have to leave for them."""
        cluster = cycle.cluster
        with cluster.what_if():
            rooms = [try_resize(cluster, amend.key, amend.patch) for amend in unit.amends]
        if Room.INFEASIBLE in rooms:
            return []
        plan = Plan(Reason.RESIZE, amends=unit.amends, until=cycle.now + IN_PROGRESS_SECONDS, subject=unit.subject)
        if Room.DEFERRED not in rooms:
            cycle.queue.note(Change.POD_GONE)  # what shrinks leaves room for others
            return begin(cluster, plan)[1]
        victims: dict[PodKey, PodRecord] = {}
        gangs: dict[str, str] = {}
        with cluster.what_if():
            for amend in unit.amends:
                cluster.amend(amend.key, amend.patch)
            for amend in unit.amends:
                found = self._find_victims(search, cluster.pods.records[amend.key], cycle.now)
                if found is None:
                    return []
                gangs.update(found.gangs)
                for victim in found.victims:
                    victims[victim.key] = victim
                    cluster.release(victim.key)
        return self._make_room(cycle, list(victims.values()), gangs, unit.amends[0].key, plan)

    def _relieve(self, cycle: Cycle, search: VictimSearch, record: PodRecord) -> list[Decision]:
        """Make room for a pod whose kubelet has deferred its resize, unless that is being made."""
        cluster = cycle.cluster
        if any(plan.subject == record.key for _, plan in cluster.plans()):
            return []
        found = self._find_victims(search, record, cycle.now)
        if found is None or not found.victims:
            return []
        plan = Plan(Reason.RESIZE, subject=record.key)
        return self._make_room(cycle, found.victims, found.gangs, record.key, plan)

    # Room for pods that grow.

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


def _amends(sizing: Sizing, members: Sequence[PodRecord], fitted: Mapping[PodKey, Fitted]) -> tuple[Amend, ...]:
    """What changes of some pods; nothing if one of them cannot be changed where it is."""
    amends = []
    for record in members:
        own = fitted[record.key]
        patch = resize_patch(record.pod, sizing.vpa, own.recommendations, sizing.container_bounds)
        if own.infeasible or why_not_in_place(record.pod, patch):
            return ()
        if patch.resources:
            amends.append(Amend(record.key, patch))
    return tuple(amends)


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
    return (*cluster.description, cluster.pod_changes.position, cluster.pod_updates.position, over)
