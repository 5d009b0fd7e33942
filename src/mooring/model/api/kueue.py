"""The kinds of `kueue.x-k8s.io` that decide who may start: flavors, queues, cohorts, workloads, priorities, topologies.

Both served versions are read: v1beta2 is the form in which everything is kept, and `default_queueing` brings a v1beta1
object into it, then fills in what the CRDs would. It changes the object in place and may be done twice without harm.
"""

from typing import Any, TypeAlias

import msgspec

# The redundant names make these a part of this module for others: whoever queues wants all kinds from one place.
from mooring.model.api.kueue_workload import API_VERSION as API_VERSION
from mooring.model.api.kueue_workload import GROUP as GROUP
from mooring.model.api.kueue_workload import PodSet as PodSet
from mooring.model.api.kueue_workload import PodSetAssignment as PodSetAssignment
from mooring.model.api.kueue_workload import PriorityClassReference as PriorityClassReference
from mooring.model.api.kueue_workload import QuotaAdmission as QuotaAdmission
from mooring.model.api.kueue_workload import ReclaimablePod as ReclaimablePod
from mooring.model.api.kueue_workload import TopologyRequest as TopologyRequest
from mooring.model.api.kueue_workload import Workload as Workload
from mooring.model.api.kueue_workload import WorkloadCondition as WorkloadCondition
from mooring.model.api.kueue_workload import WorkloadSpec as WorkloadSpec
from mooring.model.api.kueue_workload import WorkloadStatus as WorkloadStatus
from mooring.model.api.meta import Condition, KubeObject, LabelSelector, ObjectMeta, QuantityText
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Toleration

STRICT_FIFO, BEST_EFFORT_FIFO = "StrictFIFO", "BestEffortFIFO"
MAY_STOP_SEARCH, TRY_NEXT_FLAVOR = "MayStopSearch", "TryNextFlavor"
BORROWING_OVER_PREEMPTION, PREEMPTION_OVER_BORROWING = "BorrowingOverPreemption", "PreemptionOverBorrowing"
NEVER, LOWER_PRIORITY, ANY = "Never", "LowerPriority", "Any"
LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"
STOP_NONE, HOLD, HOLD_AND_DRAIN = "None", "Hold", "HoldAndDrain"


class ResourceFlavorSpec(KubeObject):
    node_labels: dict[str, str] | None = None
    node_taints: list[Taint] | None = None
    tolerations: list[Toleration] | None = None
    topology_name: str | None = None


class ResourceFlavor(KubeObject):
    api_version: str = API_VERSION
    kind: str = "ResourceFlavor"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceFlavorSpec = msgspec.field(default_factory=ResourceFlavorSpec)


class ResourceQuota(KubeObject):
    name: str
    nominal_quota: QuantityText
    borrowing_limit: QuantityText | None = None
    lending_limit: QuantityText | None = None


class FlavorQuotas(KubeObject):
    name: str
    resources: list[ResourceQuota] = []


class ResourceGroup(KubeObject):
    covered_resources: list[str] = []
    flavors: list[FlavorQuotas] = []


class FairSharing(KubeObject):
    weight: QuantityText | None = None


class FlavorFungibility(KubeObject):
    when_can_borrow: str = ""
    when_can_preempt: str = ""
    preference: str | None = None


class BorrowWithinCohort(KubeObject):
    policy: str = ""
    max_priority_threshold: int | None = None


class QueuePreemption(KubeObject):
    within_cluster_queue: str = ""
    reclaim_within_cohort: str = ""
    borrow_within_cohort: BorrowWithinCohort | None = None


class AdmissionCheckRule(KubeObject):
    name: str
    on_flavors: list[str] | None = None
    """The flavors for which the check is asked; none named: all."""


class AdmissionChecksStrategy(KubeObject):
    admission_checks: list[AdmissionCheckRule] | None = None


class AdmissionScope(KubeObject):
    admission_mode: str = ""


class ClusterQueueSpec(KubeObject):
    resource_groups: list[ResourceGroup] | None = None
    cohort_name: str = ""
    cohort: str = ""
    """What v1beta1 calls cohortName."""
    queueing_strategy: str = ""
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: FlavorFungibility | None = None
    preemption: QueuePreemption | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None
    admission_checks: list[str] | None = None
    """What v1beta1 has beside admissionChecksStrategy: checks for all flavors."""
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    admission_scope: AdmissionScope | None = None
    concurrent_admission_policy: dict[str, Any] | None = None
    """Read, and said not to be built."""


class ClusterQueue(KubeObject):
    api_version: str = API_VERSION
    kind: str = "ClusterQueue"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ClusterQueueSpec = msgspec.field(default_factory=ClusterQueueSpec)


class CohortSpec(KubeObject):
    parent_name: str = ""
    parent: str = ""
    """What the first alpha version calls parentName."""
    resource_groups: list[ResourceGroup] | None = None
    fair_sharing: FairSharing | None = None


class Cohort(KubeObject):
    api_version: str = API_VERSION
    kind: str = "Cohort"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CohortSpec = msgspec.field(default_factory=CohortSpec)


class LocalQueueSpec(KubeObject):
    cluster_queue: str = ""
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None


class LocalQueue(KubeObject):
    api_version: str = API_VERSION
    kind: str = "LocalQueue"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: LocalQueueSpec = msgspec.field(default_factory=LocalQueueSpec)


class WorkloadPriorityClass(KubeObject):
    value: int
    api_version: str = API_VERSION
    kind: str = "WorkloadPriorityClass"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    description: str = ""


class TopologyLevel(KubeObject):
    node_label: str


class TopologySpec(KubeObject):
    levels: list[TopologyLevel] = []


class Topology(KubeObject):
    api_version: str = API_VERSION
    kind: str = "Topology"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: TopologySpec = msgspec.field(default_factory=TopologySpec)


class CheckParameters(KubeObject):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class AdmissionCheckSpec(KubeObject):
    controller_name: str = ""
    parameters: CheckParameters | None = None


class AdmissionCheckStatus(KubeObject):
    conditions: list[Condition] | None = None


class AdmissionCheck(KubeObject):
    api_version: str = API_VERSION
    kind: str = "AdmissionCheck"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: AdmissionCheckSpec = msgspec.field(default_factory=AdmissionCheckSpec)
    status: AdmissionCheckStatus = msgspec.field(default_factory=AdmissionCheckStatus)


QueueingKind: TypeAlias = (
    ResourceFlavor | ClusterQueue | Cohort | LocalQueue | Workload | WorkloadPriorityClass | Topology | AdmissionCheck
)
QUEUEING_KINDS: tuple[type[Any], ...] = (
    ResourceFlavor,
    ClusterQueue,
    Cohort,
    LocalQueue,
    Workload,
    WorkloadPriorityClass,
    Topology,
    AdmissionCheck,
)

_OLD_FUNGIBILITY = {"Borrow": MAY_STOP_SEARCH, "Preempt": MAY_STOP_SEARCH}


def default_queueing(found: QueueingKind) -> None:
    """Bring an object into its v1beta2 form and fill in the CRD's defaults."""
    if isinstance(found, ClusterQueue):
        _default_cluster_queue(found.spec)
    elif isinstance(found, Cohort):
        found.spec.parent_name = found.spec.parent_name or found.spec.parent
        found.spec.parent = ""
        found.spec.fair_sharing = _default_weight(found.spec.fair_sharing)
    elif isinstance(found, LocalQueue):
        found.spec.stop_policy = found.spec.stop_policy or STOP_NONE
    elif isinstance(found, Workload):
        _default_workload(found.spec)


def _default_cluster_queue(spec: ClusterQueueSpec) -> None:
    spec.cohort_name = spec.cohort_name or spec.cohort
    spec.cohort = ""
    spec.queueing_strategy = spec.queueing_strategy or BEST_EFFORT_FIFO
    spec.stop_policy = spec.stop_policy or STOP_NONE
    spec.fair_sharing = _default_weight(spec.fair_sharing)
    fungibility = spec.flavor_fungibility = spec.flavor_fungibility or FlavorFungibility()
    borrow, preempt = fungibility.when_can_borrow, fungibility.when_can_preempt
    fungibility.when_can_borrow = _OLD_FUNGIBILITY.get(borrow, borrow) or MAY_STOP_SEARCH
    fungibility.when_can_preempt = _OLD_FUNGIBILITY.get(preempt, preempt) or TRY_NEXT_FLAVOR
    preemption = spec.preemption = spec.preemption or QueuePreemption()
    preemption.within_cluster_queue = preemption.within_cluster_queue or NEVER
    preemption.reclaim_within_cohort = preemption.reclaim_within_cohort or NEVER
    within = preemption.borrow_within_cohort = preemption.borrow_within_cohort or BorrowWithinCohort()
    within.policy = within.policy or NEVER
    if spec.admission_checks:
        rules = [AdmissionCheckRule(name=name) for name in spec.admission_checks]
        spec.admission_checks_strategy = AdmissionChecksStrategy(admission_checks=rules)
    spec.admission_checks = None


def _default_weight(sharing: FairSharing | None) -> FairSharing:
    sharing = sharing or FairSharing()
    if sharing.weight is None:
        sharing.weight = 1
    return sharing


def _default_workload(spec: WorkloadSpec) -> None:
    if spec.priority_class_name and spec.priority_class_ref is None:
        is_pod_class = spec.priority_class_source == "scheduling.k8s.io/priorityclass"
        spec.priority_class_ref = PriorityClassReference(
            group="scheduling.k8s.io" if is_pod_class else GROUP,
            kind="PriorityClass" if is_pod_class else "WorkloadPriorityClass",
            name=spec.priority_class_name,
        )
    spec.priority_class_name = spec.priority_class_source = ""
