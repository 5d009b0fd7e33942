"""Workloads as admission sees them: pending workloads that ask for quota, admitted workloads that have it."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any, NamedTuple

import msgspec

from mooring.actions.admit.quota.resource_rules import ResourceRules
from mooring.actions.admit.topology.request import NO_REQUEST, PodSetTopologyRequest, compile_request
from mooring.actions.admit.topology.usage import TopologyUse, with_place
from mooring.model.api.kueue import PodSet, Workload, default_queueing
from mooring.model.api.kueue_workload import PodSetAssignment
from mooring.model.api.pods import Container, Pod, PodSpec
from mooring.model.decisions import PodSetFlavors, TopologyAssignment, TopologyDomain
from mooring.model.defaults import default_pod_spec
from mooring.model.keys import WorkloadKey
from mooring.model.queued.building import MADE_UID
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import PODS, Amounts, pod_requests, to_column_units
from mooring.state.quota_tree import FlavorResource
from mooring.state.remembered import Derived
from mooring.state.workloads import ADMISSION_CHECK, PODS_READY_TIMEOUT, Stage, WorkloadRecord

QUOTA_RESERVED, EVICTED = "QuotaReserved", "Evicted"
MOST_POD_SETS_KNOWN = 10_000
MOST_NUMBERS_KNOWN = 20_000


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
    on_node: Mapping[str, int] = field(default_factory=dict)
    """What each takes of its node, whatever of it counts against quota; its place there included."""
    topology: PodSetTopologyRequest = NO_REQUEST

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
        for by_resource in self.tried:  # a loop: asked of every head, several times
            for index in by_resource.values():
                if index != -1:
                    return True
        return False

    def next_flavor(self, pod_set: int, resource: str) -> int:
        if pod_set >= len(self.tried):
            return 0
        return self.tried[pod_set].get(resource, -1) + 1


@dataclass(slots=True, eq=False)
class PendingWorkload:
    """A workload that asks for quota. Only its place in the line, and what was found for it last, ever change."""

    key: WorkloadKey
    namespace: str
    uid: str
    priority: int
    queued_at: float
    """Since when it stands in line: its creation, or its last eviction where that is what counts."""
    queue_name: str
    pod_sets: tuple[PodSetRequest, ...]
    shape: int
    """Equal numbers in one queue get equal answers."""
    position: ScanPosition | None = None
    local_queue: str = ""
    """namespace/name"""
    nomination: object = None
    """What the nominator keeps of its last plan."""

    @property
    def queue_order(self) -> tuple[int, float, str]:
        return (-self.priority, self.queued_at, self.uid)

    @property
    def has_groups(self) -> bool:
        """Whether some pod sets must have the same flavors."""
        return len(self.pod_sets) > 1 and any(pod_set.topology.group for pod_set in self.pod_sets)

    @property
    def can_shrink(self) -> bool:
        return any(pod_set.min_count < pod_set.count for pod_set in self.pod_sets)


class PodSetClaim(NamedTuple):
    """What the pods of one set hold: so much in all, as long as none of them has finished."""

    pods: PodSetFlavors
    amounts: Mapping[FlavorResource, int]


@dataclass(slots=True, eq=False)
class AdmittedWorkload:
    """A workload that holds quota."""

    pending: PendingWorkload
    node: int
    claims: tuple[PodSetClaim, ...]
    reserved_at: float
    is_evicted: bool = False
    """Told to go, but its pods are not gone yet, and neither is its claim on the quota."""
    reclaimed: Mapping[str, int] = field(default_factory=dict)
    """By pod set, how many pods have finished and hold nothing any more."""
    usage: Mapping[int, int] = field(default_factory=dict)
    """Amounts by column, as the ledger counts them."""
    topology_use: TopologyUse = ()
    """What it uses of the domains that its pods were assigned."""
    started_at: float | None = None
    """When its pods were let go, if that was after it got its quota."""
    uid_order: str = field(init=False)
    local_usage: float = 0.0
    """Of victims of their own queue: what their LocalQueue has used, where that counts. Who used more goes first."""

    def __post_init__(self) -> None:
        self.uid_order = _last_made_first(self.pending.uid)

    @property
    def running_since(self) -> float:
        return self.reserved_at if self.started_at is None else self.started_at

    @property
    def pod_sets(self) -> tuple[PodSetFlavors, ...]:
        return tuple(claim.pods for claim in self.claims)

    def stand(self, record: WorkloadRecord) -> None:
        """Be what the stage of the workload's record says: of that, a run that was undone may have left traces."""
        given = {found.name: found for found in record.pod_sets}
        self.claims = tuple(claim._replace(pods=given.get(claim.pods.name, claim.pods)) for claim in self.claims)
        self.is_evicted = record.stage is Stage.LEAVING
        if not self.is_evicted:
            self.started_at = record.admitted_at if record.stage is Stage.ADMITTED else None

    def count_usage(self, column_of: Mapping[FlavorResource, int]) -> None:
        """Work out what is held by column; what nobody has a quota for does not count."""
        usage: dict[int, int] = {}
        for claim in self.claims:
            given, gone = claim.pods.count, self.reclaimed.get(claim.pods.name, 0)
            for found, amount in claim.amounts.items():
                column = column_of.get(found)
                if column is not None:
                    left = amount // given * max(0, given - gone) if gone and given else amount
                    usage[column] = usage.get(column, 0) + left
        self.usage = usage

    @property
    def victim_order(self) -> tuple[bool, float, int, float, str]:
        """Who goes first among candidates of one class: evicted already, of large usage, low priority, started last."""
        pending = self.pending
        return (
            not self.is_evicted,
            -self.local_usage,
            pending.priority,
            -self.reserved_at,
            self.uid_order,
        )


def _last_made_first(uid: str) -> str:
    """A uid to break ties among victims by: where it tells the age, the youngest is the smallest."""
    return uid.translate(_NINES_COMPLEMENT) if uid.startswith(MADE_UID) else uid


_NINES_COMPLEMENT = str.maketrans("0123456789", "9876543210")


@dataclass(slots=True)
class Intake:
    """Turns Workload objects into pending workloads, numbering the shapes and selections that recur."""

    rules: ResourceRules = field(default_factory=ResourceRules)
    orders_by_eviction: bool = True
    """Whether a workload that was evicted because its pods did not get ready goes to the end of the line."""
    _numbers: Derived[bytes, int] = field(default_factory=lambda: Derived(MOST_NUMBERS_KNOWN))
    _unused: Iterator[int] = field(default_factory=count)
    """Never given before: what was forgotten gets another number, and is like none that was there."""
    _known: Derived[tuple[bytes, int], tuple[PodSetRequest, list[Any]]] = field(
        default_factory=lambda: Derived(MOST_POD_SETS_KNOWN)
    )
    """Pod sets as they were last read, by all that they say and how many of their pods are done."""

    def make_pending(
        self, workload: Workload, queue_name: str, finished: Mapping[str, int] | None = None
    ) -> PendingWorkload:
        """`finished` says how many pods of each set are done, if it is not what the workload's status says."""
        default_queueing(workload)
        spec = workload.spec
        reclaimable = reclaimable_pods(workload) if finished is None else finished
        namespace = workload.metadata.namespace
        read = [self._read(found, reclaimable.get(found.name, 0), namespace) for found in spec.pod_sets]
        priority = spec.priority or 0
        return PendingWorkload(
            key=workload.key,
            namespace=workload.metadata.namespace,
            uid=workload.metadata.uid,
            priority=priority,
            queued_at=queued_at(workload, orders_by_eviction=self.orders_by_eviction),
            queue_name=queue_name,
            pod_sets=tuple(request for request, _ in read),
            shape=self._number([priority, *(shape for _, shape in read)]),
            local_queue=f"{workload.metadata.namespace}/{spec.queue_name}",
        )

    def _read(self, found: PodSet, reclaimable: int, namespace: str) -> tuple[PodSetRequest, list[Any]]:
        """What a pod set asks for, and its shape. Workloads of one template are read once."""
        devices = self.rules.devices(namespace, found.template.spec)
        said = [found.name, found.count, found.min_count, found.topology_request, found.template.spec, devices]
        key = (msgspec.json.encode(said), reclaimable)
        known = self._known.get(key)
        if known is None:
            request = self._make_pod_set(found, reclaimable, devices)
            known = self._known.put(key, (request, _shape(found, request)))
        return known

    def _make_pod_set(self, found: PodSet, reclaimable: int, devices: Amounts) -> PodSetRequest:
        spec = deepcopy(found.template.spec)  # what the world said stays as it is
        default_pod_spec(spec)
        asked = pod_requests(Pod(spec=spec))
        amounts = self.rules.apply(asked)
        if devices:
            amounts = {**amounts, **{name: amounts.get(name, 0) + count for name, count in devices.items()}}
        count = max(0, found.count - reclaimable)
        affinity = spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
        per_pod = _in_columns(amounts)
        return PodSetRequest(
            name=found.name,
            count=count,
            min_count=count if found.min_count is None else min(found.min_count, count),
            per_pod=per_pod,
            spec=spec,
            selection=self._number([spec.node_selector, spec.tolerations, affinity]),
            on_node=with_place(per_pod if amounts is asked else _in_columns(asked)),
            topology=compile_request(found.topology_request),
        )

    def _number(self, value: Any) -> int:
        said = msgspec.json.encode(value, order="sorted")
        return self._numbers.of(said, next, self._unused)


def _in_columns(amounts: Amounts) -> dict[str, int]:
    return {name: max(0, to_column_units(name, nanos)) for name, nanos in sorted(amounts.items())}


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


def queued_at(workload: Workload, *, orders_by_eviction: bool) -> float:
    """Since when a workload stands in line: its creation, unless it was evicted in a way that costs it its place."""
    evicted = workload.condition(EVICTED)
    if evicted is not None:
        loses_place = evicted.reason == ADMISSION_CHECK or (evicted.reason == PODS_READY_TIMEOUT and orders_by_eviction)
        if loses_place and evicted.last_transition_time:
            return parse_time(evicted.last_transition_time)
    return parse_time(workload.metadata.creation_timestamp)


def reclaimable_pods(workload: Workload) -> dict[str, int]:
    """By pod set, how many pods are done according to the workload's status."""
    return {pods.name: pods.count for pods in workload.status.reclaimable_pods or ()}


def claims_of(pending: PendingWorkload, pod_sets: Iterable[PodSetFlavors]) -> tuple[PodSetClaim, ...]:
    """What an pending workload's pods hold, once they are given these flavors."""
    requests = {found.name: found for found in pending.pod_sets}
    claims = []
    for pods in pod_sets:
        total = requests[pods.name].total(pods.count, with_pods=PODS in pods.flavors)
        amounts = {FlavorResource(flavor, resource): total[resource] for resource, flavor in pods.flavors.items()}
        claims.append(PodSetClaim(pods, amounts))
    return tuple(claims)


def make_admitted(workload: Workload, pending: PendingWorkload, node: int) -> AdmittedWorkload:
    """Read what a workload holds from its admission; pods that finished already hold nothing."""
    admission = workload.status.admission
    assert admission is not None
    counts = {pod_set.name: pod_set.count for pod_set in pending.pod_sets}
    claims = []
    for assignment in admission.pod_set_assignments:
        given = assignment.count if assignment.count is not None else counts.get(assignment.name, 0)
        flavors = dict(assignment.flavors or {})
        amounts = {
            FlavorResource(flavors.get(resource, ""), resource): to_column_units(resource, parse_quantity(text))
            for resource, text in (assignment.resource_usage or {}).items()
        }
        given_flavors = PodSetFlavors(assignment.name, given, flavors, assigned_topology(assignment))
        claims.append(PodSetClaim(given_flavors, amounts))
    reserved = workload.condition(QUOTA_RESERVED)
    return AdmittedWorkload(
        pending=pending,
        node=node,
        claims=tuple(claims),
        reserved_at=parse_time(reserved.last_transition_time if reserved else None),
        is_evicted=workload.condition(EVICTED) is not None,
        reclaimed=reclaimable_pods(workload),
    )


def assigned_topology(assignment: PodSetAssignment) -> TopologyAssignment | None:
    """The domains that a pod set was assigned, as its status has them; None if it was assigned none."""
    found = assignment.topology_assignment
    if found is None:
        return None
    domains = tuple(TopologyDomain(tuple(domain.values), domain.count) for domain in found.each_domain())
    return TopologyAssignment(tuple(found.levels), domains)
