"""The kind Workload of `kueue.x-k8s.io`: what a job asks of its queue, pod set by pod set, and what became of it."""

from collections.abc import Iterator

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, Resources
from mooring.model.api.pods import PodTemplateSpec, Toleration
from mooring.model.keys import WorkloadKey

GROUP = "kueue.x-k8s.io"
API_VERSION = f"{GROUP}/v1beta2"
QUOTA_ENDS = "mooring.dev/quota-ends-at"
"""On a Workload: when it will lose its quota, as it was told."""

QUOTA_RESERVED, ADMITTED, EVICTED, FINISHED = "QuotaReserved", "Admitted", "Evicted", "Finished"
"""Types of conditions."""
CHECK_PENDING, CHECK_READY, CHECK_RETRY, CHECK_REJECTED = "Pending", "Ready", "Retry", "Rejected"
"""States of an admission check."""


class SliceConstraint(KubeObject):
    """One layer of slices: every so many pods share a domain of a level."""

    topology: str
    size: int = 1


class TopologyRequest(KubeObject):
    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    pod_index_label: str | None = None
    sub_group_index_label: str | None = None
    sub_group_count: int | None = None
    pod_set_group_name: str | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: int | None = None
    podset_slice_required_topology_constraints: list[SliceConstraint] | None = None
    """Slices inside slices, the outermost first."""


class PodSet(KubeObject):
    template: PodTemplateSpec
    name: str = "main"
    count: int = 1
    min_count: int | None = None
    topology_request: TopologyRequest | None = None


class PriorityClassReference(KubeObject):
    group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(KubeObject):
    pod_sets: list[PodSet] = []
    queue_name: str = ""
    priority_class_ref: PriorityClassReference | None = None
    priority_class_name: str = ""
    """What v1beta1 has in place of priorityClassRef, with its source beside it."""
    priority_class_source: str = ""
    priority: int | None = None
    active: bool = True
    maximum_execution_time_seconds: int | None = None


class AssignedDomain(KubeObject):
    values: list[str] = []
    count: int = 0


class IndividualValues(KubeObject):
    prefix: str = ""
    roots: list[str] = []
    suffix: str = ""


class LevelValues(KubeObject):
    """The values of one level for all domains of a slice: the same one, or each its own."""

    universal: str | None = None
    individual: IndividualValues | None = None

    def at(self, index: int) -> str:
        if self.individual is None:
            return self.universal or ""
        return f"{self.individual.prefix}{self.individual.roots[index]}{self.individual.suffix}"


class PodCounts(KubeObject):
    universal: int | None = None
    individual: list[int] | None = None

    def at(self, index: int) -> int:
        return (self.universal or 0) if self.individual is None else self.individual[index]


class AssignmentSlice(KubeObject):
    """Some domains of an assignment, written as columns."""

    domain_count: int = 0
    values_per_level: list[LevelValues] = []
    pod_counts: PodCounts = msgspec.field(default_factory=PodCounts)


class TopologyAssignment(KubeObject):
    """The domains that the pods of a pod set were assigned: v1beta1 lists them, v1beta2 has slices of them."""

    levels: list[str] = []
    domains: list[AssignedDomain] | None = None
    slices: list[AssignmentSlice] | None = None

    def each_domain(self) -> Iterator[AssignedDomain]:
        """All domains in the order of the ranks of their pods, however they are written."""
        yield from self.domains or ()
        for found in self.slices or ():
            for index in range(found.domain_count):
                values = [level.at(index) for level in found.values_per_level]
                yield AssignedDomain(values=values, count=found.pod_counts.at(index))


class PodSetAssignment(KubeObject):
    name: str = "main"
    flavors: dict[str, str] | None = None
    resource_usage: Resources | None = None
    count: int | None = None
    topology_assignment: TopologyAssignment | None = None


class QuotaAdmission(KubeObject):
    cluster_queue: str
    pod_set_assignments: list[PodSetAssignment] = []


class WorkloadCondition(KubeObject):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ReclaimablePod(KubeObject):
    name: str
    count: int = 0


class RequeueState(KubeObject):
    count: int = 0
    requeue_at: str | None = None


class PodSetUpdate(KubeObject):
    """What an admission check adds to the pods of one pod set."""

    name: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class AdmissionCheckState(KubeObject):
    name: str
    state: str = CHECK_PENDING
    message: str = ""
    last_transition_time: str | None = None
    requeue_after_seconds: int | None = None
    retry_count: int | None = None
    pod_set_updates: list[PodSetUpdate] | None = None


class WorkloadStatus(KubeObject):
    conditions: list[WorkloadCondition] | None = None
    admission: QuotaAdmission | None = None
    reclaimable_pods: list[ReclaimablePod] | None = None
    requeue_state: RequeueState | None = None
    admission_checks: list[AdmissionCheckState] | None = None
    accumulated_past_execution_time_seconds: int | None = None


class Workload(KubeObject):
    api_version: str = API_VERSION
    kind: str = "Workload"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)

    @property
    def key(self) -> WorkloadKey:
        return WorkloadKey(f"{self.metadata.namespace}/{self.metadata.name}")

    def condition(self, type_: str) -> WorkloadCondition | None:
        """The condition of that type, if it is true."""
        for condition in self.status.conditions or ():
            if condition.type == type_ and condition.status == "True":
                return condition
        return None
