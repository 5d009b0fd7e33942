"""Workloads as admission sees them: applicants that ask for quota, holders that have it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from mooring.actions.admit.quota import FlavorResource
from mooring.model.defaults import default_pod_spec
from mooring.model.pods import Container, Pod, PodSpec
from mooring.model.quantity import parse_quantity
from mooring.model.queueing import PodSet, Workload, default_queueing
from mooring.model.requests import PODS, pod_requests, to_column_units

QUOTA_RESERVED, EVICTED = "QuotaReserved", "Evicted"


@dataclass(frozen=True, slots=True)
class PodSetRequest:
    """One pod set: how many pods, what each asks for in column units, and which nodes they select."""

    name: str
    count: int
    min_count: int
    per_pod: Mapping[str, int]
    spec: PodSpec
    selection: int
    """Equal numbers select nodes equally."""

    def total(self, count: int, with_pods: bool) -> dict[str, int]:
        """What so many of the pods ask for, by resource name."""
        total = {name: amount * count for name, amount in self.per_pod.items()}
        if with_pods:
            total[PODS] = count
        return total


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """Where the search through the flavors stopped, so that the next try goes on behind it."""

    cycle: int
    generation: int
    """The queue's generation then; what was admitted to or released from the queue since raises it."""
    tried: tuple[Mapping[str, int], ...]
    """For each pod set that was reached: by resource, the index of the last flavor tried, -1 if that was the last."""

    @property
    def is_pending(self) -> bool:
        return any(index != -1 for by_resource in self.tried for index in by_resource.values())

    def next_flavor(self, pod_set: int, resource: str) -> int:
        if pod_set >= len(self.tried):
            return 0
        return self.tried[pod_set].get(resource, -1) + 1


@dataclass(slots=True, eq=False)
class Applicant:
    """A workload that asks for quota. Only its scan position ever changes."""

    key: str
    namespace: str
    uid: str
    priority: int
    created_at: float
    queue_name: str
    pod_sets: tuple[PodSetRequest, ...]
    shape: int
    """Equal numbers in one queue get equal answers."""
    position: ScanPosition | None = None

    @property
    def queue_order(self) -> tuple[int, float, str]:
        return (-self.priority, self.created_at, self.uid)

    @property
    def can_shrink(self) -> bool:
        return any(pod_set.min_count < pod_set.count for pod_set in self.pod_sets)


@dataclass(frozen=True, slots=True)
class PodSetFlavors:
    """What one pod set was given."""

    name: str
    count: int
    flavors: Mapping[str, str]


@dataclass(slots=True, eq=False)
class Holder:
    """A workload that holds quota."""

    applicant: Applicant
    node: int
    usage: Mapping[int, int]
    """Amounts by column."""
    pod_sets: tuple[PodSetFlavors, ...]
    reserved_at: float
    is_evicted: bool = False
    """Told to go, but its pods are not gone yet, and neither is its claim on the quota."""

    @property
    def victim_order(self) -> tuple[bool, int, float, str]:
        """Who goes first among candidates of one class: evicted already, low priority, started last."""
        applicant = self.applicant
        return (not self.is_evicted, applicant.priority, -self.reserved_at, applicant.uid)


@dataclass(slots=True)
class Intake:
    """Turns Workload objects into applicants, numbering the shapes and selections that recur."""

    _numbers: dict[bytes, int] = field(default_factory=dict)

    def make_applicant(self, workload: Workload, queue_name: str) -> Applicant:
        default_queueing(workload)
        spec = workload.spec
        reclaimable = {pods.name: pods.count for pods in workload.status.reclaimable_pods or ()}
        pod_sets = tuple(self._make_pod_set(found, reclaimable.get(found.name, 0)) for found in spec.pod_sets)
        priority = spec.priority or 0
        shape = [priority, *(_shape(found, request) for found, request in zip(spec.pod_sets, pod_sets, strict=True))]
        return Applicant(
            key=workload.key,
            namespace=workload.metadata.namespace,
            uid=workload.metadata.uid,
            priority=priority,
            created_at=parse_time(workload.metadata.creation_timestamp),
            queue_name=queue_name,
            pod_sets=pod_sets,
            shape=self._number(shape),
        )

    def _make_pod_set(self, found: PodSet, reclaimable: int) -> PodSetRequest:
        spec = found.template.spec
        default_pod_spec(spec)
        amounts = pod_requests(Pod(spec=spec))
        count = max(0, found.count - reclaimable)
        affinity = spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
        return PodSetRequest(
            name=found.name,
            count=count,
            min_count=count if found.min_count is None else min(found.min_count, count),
            per_pod={name: max(0, to_column_units(name, nanos)) for name, nanos in sorted(amounts.items())},
            spec=spec,
            selection=self._number([spec.node_selector, spec.tolerations, affinity]),
        )

    def _number(self, value: Any) -> int:
        return self._numbers.setdefault(msgspec.json.encode(value, order="sorted"), len(self._numbers))


def _shape(found: PodSet, request: PodSetRequest) -> list[Any]:
    """Everything that the answer depends on; names and images of containers do not count."""
    spec = found.template.spec
    return [
        found.name,
        request.count,
        request.min_count,
        request.per_pod,
        [_container_shape(container) for container in spec.containers],
        [_container_shape(container) for container in spec.init_containers or ()],
        [spec.node_selector, spec.affinity, spec.tolerations, found.topology_request],
    ]


def _container_shape(container: Container) -> list[Any]:
    requests = container.resources.requests if container.resources else None
    return [{name: parse_quantity(text) for name, text in (requests or {}).items()}, container.ports]


def parse_time(text: str | None) -> float:
    """Seconds since 1970 of an RFC 3339 time; an absent one is the beginning."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def make_holder(workload: Workload, applicant: Applicant, node: int, column_of: Mapping[FlavorResource, int]) -> Holder:
    """Read what a workload holds from its admission; pods that finished already hold nothing."""
    admission = workload.status.admission
    assert admission is not None
    counts = {pod_set.name: pod_set.count for pod_set in applicant.pod_sets}
    usage: dict[int, int] = {}
    pod_sets = []
    for assignment in admission.pod_set_assignments:
        wanted = counts.get(assignment.name, 0)
        given = assignment.count if assignment.count is not None else wanted
        pod_sets.append(PodSetFlavors(assignment.name, given, dict(assignment.flavors or {})))
        for resource, text in (assignment.resource_usage or {}).items():
            column = column_of.get(FlavorResource((assignment.flavors or {}).get(resource, ""), resource))
            if column is None:
                continue  # nobody has a quota for it, so nothing depends on how much of it is used
            amount = to_column_units(resource, parse_quantity(text))
            reclaimed = _reclaimed(workload, assignment.name)
            if reclaimed and given:
                amount = amount // given * max(0, given - reclaimed)
            usage[column] = usage.get(column, 0) + amount
    reserved = workload.condition(QUOTA_RESERVED)
    return Holder(
        applicant=applicant,
        node=node,
        usage=usage,
        pod_sets=tuple(pod_sets),
        reserved_at=parse_time(reserved.last_transition_time if reserved else None),
        is_evicted=workload.condition(EVICTED) is not None,
    )


def _reclaimed(workload: Workload, pod_set: str) -> int:
    return sum(pods.count for pods in workload.status.reclaimable_pods or () if pods.name == pod_set)
