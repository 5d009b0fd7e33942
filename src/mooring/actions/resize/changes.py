"""What becomes of the pods of one autoscaler: resized in place, evicted, or left as they are, and why."""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mooring.actions.resize.nodes import Fitted, fit_to_nodes, usable_rows
from mooring.engine.disruption import Refusal, Voluntary, as_created, disrupt
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Queue
from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.model.pod_patch import PodPatch
from mooring.model.rightsizing.amounts import CONTROLLED
from mooring.model.rightsizing.limit_ranges import Bounds
from mooring.model.rightsizing.modes import (
    IN_PLACE,
    IN_PLACE_OR_RECREATE,
    INITIAL,
    OFF,
    disruptable,
    min_replicas,
    update_mode,
)
from mooring.model.rightsizing.recommendations import Recommendation, cap_for_pod
from mooring.model.rightsizing.resizing import resize_patch, why_not_in_place
from mooring.model.rightsizing.updating import pods_to_update, why_not_due
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.rows import Rows


class Outcome(enum.StrEnum):
    """What becomes of a pod."""

    IN_PLACE = "in place"
    EVICTED = "evicted"
    NOTHING = "nothing"


class Room(enum.Enum):
    """What a node says to a resize, as its kubelet would."""

    FREE = "free"
    DEFERRED = "deferred"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True, slots=True)
class Sizing:
    """An autoscaler, what it recommends, and the bounds of its namespace."""

    vpa: VerticalPodAutoscaler
    recommendations: list[Recommendation]
    container_bounds: Bounds | None = None
    pod_bounds: Bounds | None = None


@dataclass(frozen=True, slots=True)
class PodChange:
    """What becomes of one pod, and why."""

    record: PodRecord
    pod: Pod
    """As it was before."""
    outcome: Outcome
    reason: str
    fitted: Fitted
    patch: PodPatch
    """What it would get, in place or when it is made anew."""


class Sizer:
    """Decides for autoscalers, one after the other, inside of one trial: what it decided before counts."""

    def __init__(self, cluster: Cluster, queue: Queue, profiles: Mapping[str, Profile], now: float) -> None:
        self._cluster, self._queue, self._profiles, self._now = cluster, queue, profiles, now

    def changes(self, sizing: Sizing, records: Sequence[PodRecord]) -> list[PodChange]:
        """What becomes of the pods of an autoscaler, the most urgent first, then those that stay as they are."""
        vpa, rows = sizing.vpa, dict[int, Rows]()
        fitted = {record.key: self.fit(sizing, record, rows) for record in records}
        due = pods_to_update(
            vpa, [record.pod for record in records], lambda pod: fitted[pod.key].recommendations, self._now
        )
        order = {pod.key: number for number, pod in enumerate(due)}
        by_key = {record.key: record for record in records}
        running = sum(record.row != UNBOUND and not record.nominated for record in records)
        may = disruptable(len(records), running)
        made = []
        for pod in due:
            change = self._change(sizing, by_key[pod.key], fitted[pod.key], len(records), may)
            may -= change.outcome is not Outcome.NOTHING and by_key[pod.key].row != UNBOUND
            made.append(change)
        for record in records:
            if record.key not in order:
                own = fitted[record.key]
                reason = own.infeasible or why_not_due(vpa, record.pod, own.recommendations, self._now)
                made.append(PodChange(record, record.pod, Outcome.NOTHING, reason, own, PodPatch()))
        return made

    def fit(self, sizing: Sizing, record: PodRecord, known: dict[int, Rows]) -> Fitted:
        """What is recommended for one pod, cut down to the nodes that it may use; `known` keeps these by shape."""
        policy = sizing.vpa.spec.resource_policy
        capped = cap_for_pod(sizing.recommendations, policy, record.pod, sizing.container_bounds, sizing.pod_bounds)
        profile = self._profiles.get(record.pod.spec.scheduler_name)
        if profile is None:  # placed by another scheduler, whose rules are not known here
            return Fitted(capped)
        shape = self._cluster.shape_for(as_created(record.pod))
        if shape.id not in known:
            known[shape.id] = usable_rows(profile, self._cluster, shape)
        return fit_to_nodes(self._cluster, known[shape.id], record.pod, capped, policy)

    def _change(self, sizing: Sizing, record: PodRecord, fitted: Fitted, replicas: int, may: int) -> PodChange:
        mode, vpa = update_mode(sizing.vpa), sizing.vpa
        pod = record.pod
        patch = resize_patch(pod, vpa, fitted.recommendations, sizing.container_bounds)

        def becomes(outcome: Outcome, reason: str) -> PodChange:
            return PodChange(record, pod, outcome, reason, fitted, patch)

        if fitted.infeasible:
            return becomes(Outcome.NOTHING, f"infeasible: {fitted.infeasible}")
        if mode == OFF:
            return becomes(Outcome.NOTHING, "update mode Off: it is recommended, not applied")
        if mode == INITIAL:
            return becomes(Outcome.NOTHING, "update mode Initial: pods get it when they are created")
        if replicas < min_replicas(vpa):
            least = min_replicas(vpa)
            return becomes(Outcome.NOTHING, f"its controller has {replicas} of at least {least} pods (minReplicas)")
        if record.row == UNBOUND:
            return becomes(Outcome.EVICTED, "it does not run yet, and is made anew with the recommendation")
        if may <= 0:
            return becomes(Outcome.NOTHING, "it follows: at most half of the pods of a controller change at a time")
        because = ""
        if mode in (IN_PLACE, IN_PLACE_OR_RECREATE):
            because = self._resize(record, patch)
            if not because:
                return becomes(Outcome.IN_PLACE, f"node {record.node_name} has room")
            if mode == IN_PLACE:
                return becomes(Outcome.NOTHING, because)
        refusal = self._evict(record)
        if refusal:
            return becomes(Outcome.NOTHING, f"{because}; and {refusal}" if because else refusal)
        return becomes(Outcome.EVICTED, because or f"update mode {mode}: it is made anew with the recommendation")

    def _resize(self, record: PodRecord, patch: PodPatch) -> str:
        """Resize a pod in the state if its node has room; why not, if it has none."""
        refused = why_not_in_place(record.pod, patch)
        if refused:
            return refused
        with self._cluster.what_if() as trial:
            room = try_resize(self._cluster, record.key, patch)
            if room is Room.FREE:
                trial.keep()
                return ""
        if room is Room.INFEASIBLE:
            return f"infeasible in place: node {record.node_name} could never hold it"
        return f"deferred in place: node {record.node_name} has no room for it now"

    def _evict(self, record: PodRecord) -> str:
        """Evict a pod in the state; why not, if something protects it."""
        made = disrupt(self._cluster, self._queue, [record], Voluntary("Evicted by right-sizing"))
        return f"it is not evicted, as {made.message}" if isinstance(made, Refusal) else ""


def try_resize(cluster: Cluster, key: PodKey, patch: PodPatch) -> Room:
    """Resize a pod in the state; say whether its node has room for what it grows by. Shrinking always fits."""
    record = cluster.pods.records[key]
    before = dict(record.shape.requests)
    cluster.amend(key, patch)
    room = Room.FREE
    for name, asked in _grown(before, record.shape.requests):
        allocatable = int(cluster.nodes.allocatable(name)[record.row])
        if asked > allocatable:
            return Room.INFEASIBLE
        if int(cluster.nodes.requested(name)[record.row]) > allocatable:
            room = Room.DEFERRED
    return room


def _grown(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for name in CONTROLLED:
        if after.get(name, 0) > before.get(name, 0):
            yield name, after[name]
