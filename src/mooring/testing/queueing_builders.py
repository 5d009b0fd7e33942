"""Builders of queueing objects: plain functions with honest defaults that return the real thing."""

from collections.abc import Iterable, Mapping, Sequence

from mooring.actions.admit.cycle.cycle import DEFAULT_STRATEGIES, Admission
from mooring.actions.admit.cycle.policies.own_rules import OwnRules
from mooring.actions.admit.quota.structure import Structure
from mooring.model.api.kueue import (
    BEST_EFFORT_FIFO,
    NEVER,
    BorrowWithinCohort,
    ClusterQueue,
    ClusterQueueSpec,
    Cohort,
    CohortSpec,
    FairSharing,
    FlavorFungibility,
    FlavorQuotas,
    LocalQueue,
    LocalQueueSpec,
    PodSet,
    PodSetAssignment,
    QueuePreemption,
    QuotaAdmission,
    ResourceFlavor,
    ResourceFlavorSpec,
    ResourceGroup,
    ResourceQuota,
    Workload,
    WorkloadCondition,
    WorkloadSpec,
)
from mooring.model.api.meta import LabelSelector, ObjectMeta, QuantityText
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Container, PodSpec, PodTemplateSpec, ResourceRequirements, Toleration
from mooring.state.undo import UndoLog

Quantities = Mapping[str, QuantityText]


def make_quota(
    nominal: QuantityText = 0,
    *,
    resource: str = "cpu",
    borrowing_limit: QuantityText | None = None,
    lending_limit: QuantityText | None = None,
) -> ResourceQuota:
    return ResourceQuota(
        name=resource, nominal_quota=nominal, borrowing_limit=borrowing_limit, lending_limit=lending_limit
    )


def make_group(**quotas: ResourceQuota | Sequence[ResourceQuota]) -> ResourceGroup:
    """One group of resources: by flavor, in the order in which they are tried, the quota of each resource."""
    by_flavor = {
        flavor.replace("_", "-"): [found] if isinstance(found, ResourceQuota) else list(found)
        for flavor, found in quotas.items()
    }
    covered = [quota.name for quota in next(iter(by_flavor.values()))]
    flavors = [FlavorQuotas(name=name, resources=found) for name, found in by_flavor.items()]
    return ResourceGroup(covered_resources=covered, flavors=flavors)


def make_queue(
    name: str = "queue",
    *groups: ResourceGroup,
    cohort: str = "",
    strategy: str = BEST_EFFORT_FIFO,
    within_queue: str = NEVER,
    reclaim: str = NEVER,
    borrow_policy: str = NEVER,
    priority_threshold: int | None = None,
    fungibility: FlavorFungibility | None = None,
    weight: QuantityText = 1,
    namespaces: LabelSelector | None = None,
    stop_policy: str | None = None,
) -> ClusterQueue:
    """A ClusterQueue, by default with 10 CPU of one flavor, open to every namespace."""
    borrow = BorrowWithinCohort(policy=borrow_policy, max_priority_threshold=priority_threshold)
    spec = ClusterQueueSpec(
        resource_groups=list(groups) or [make_group(default=make_quota(10))],
        cohort_name=cohort,
        queueing_strategy=strategy,
        namespace_selector=namespaces or LabelSelector(),
        flavor_fungibility=fungibility,
        preemption=QueuePreemption(
            within_cluster_queue=within_queue, reclaim_within_cohort=reclaim, borrow_within_cohort=borrow
        ),
        fair_sharing=FairSharing(weight=weight),
        stop_policy=stop_policy,
    )
    return ClusterQueue(metadata=ObjectMeta(name=name), spec=spec)


def make_cohort(name: str, *groups: ResourceGroup, parent: str = "", weight: QuantityText = 1) -> Cohort:
    spec = CohortSpec(parent_name=parent, resource_groups=list(groups), fair_sharing=FairSharing(weight=weight))
    return Cohort(metadata=ObjectMeta(name=name), spec=spec)


def make_flavor(
    name: str = "default", *, labels: Mapping[str, str] | None = None, taints: Sequence[Taint] = ()
) -> ResourceFlavor:
    spec = ResourceFlavorSpec(node_labels=dict(labels or {}), node_taints=list(taints))
    return ResourceFlavor(metadata=ObjectMeta(name=name), spec=spec)


def make_pod_set(
    name: str = "main",
    *,
    count: int = 1,
    min_count: int | None = None,
    requests: Quantities | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Toleration] = (),
) -> PodSet:
    """Pods that ask for 1 CPU each unless told otherwise."""
    resources = ResourceRequirements(requests=dict(requests if requests is not None else {"cpu": 1}))
    spec = PodSpec(
        containers=[Container(name="main", resources=resources)],
        node_selector=dict(node_selector) if node_selector else None,
        tolerations=list(tolerations) or None,
    )
    return PodSet(name=name, count=count, min_count=min_count, template=PodTemplateSpec(spec=spec))


def make_workload(
    name: str = "workload",
    *pod_sets: PodSet,
    queue: str = "queue",
    cpu: QuantityText = 1,
    priority: int = 0,
    second: int = 0,
    namespace: str = "default",
) -> Workload:
    """A waiting workload, created at the given second of the hour; without pod sets one pod with so much CPU."""
    minutes, seconds = divmod(second, 60)
    hours, minutes = divmod(minutes, 60)
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=f"uid-{name}",
        creation_timestamp=f"2025-06-01T{hours % 24:02d}:{minutes:02d}:{seconds:02d}Z",
    )
    spec = WorkloadSpec(
        pod_sets=list(pod_sets) or [make_pod_set(requests={"cpu": cpu})], queue_name=queue, priority=priority
    )
    return Workload(metadata=metadata, spec=spec)


def hold(
    workload: Workload, cluster_queue: str, *, usage: Quantities, flavor: str = "default", second: int = 0
) -> Workload:
    """Give a workload of one pod set its quota, reserved at the given second of the hour."""
    pod_set = workload.spec.pod_sets[0]
    assignment = PodSetAssignment(
        name=pod_set.name, flavors=dict.fromkeys(usage, flavor), resource_usage=dict(usage), count=pod_set.count
    )
    minutes, seconds = divmod(second, 60)
    since = f"2025-06-01T00:{minutes:02d}:{seconds:02d}Z"
    workload.status.admission = QuotaAdmission(cluster_queue=cluster_queue, pod_set_assignments=[assignment])
    workload.status.conditions = [
        WorkloadCondition(type="QuotaReserved", status="True", reason="QuotaReserved", last_transition_time=since)
    ]
    return workload


def make_local_queue(name: str, *, cluster_queue: str = "", namespace: str = "default") -> LocalQueue:
    spec = LocalQueueSpec(cluster_queue=cluster_queue or name)
    return LocalQueue(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def make_admission(
    queues: Sequence[ClusterQueue],
    workloads: Iterable[Workload] = (),
    *,
    cohorts: Iterable[Cohort] = (),
    flavors: Iterable[ResourceFlavor] | None = None,
    local_queues: Iterable[LocalQueue] | None = None,
    namespace_labels: Mapping[str, Mapping[str, str]] | None = None,
    fair_sharing: bool = False,
    strategies: Sequence[str] = DEFAULT_STRATEGIES,
    keeps_nominations: bool = True,
    own: OwnRules | None = None,
) -> Admission:
    """Admission with everything taken in; flavors and local queues that nobody describes are plain ones."""
    if flavors is None:
        groups = [group for queue in queues for group in queue.spec.resource_groups or ()]
        flavors = [make_flavor(name) for name in sorted({flavor.name for group in groups for flavor in group.flavors})]
    if local_queues is None:
        local_queues = [make_local_queue(queue.metadata.name) for queue in queues]
    admission = Admission(
        Structure(queues, cohorts, flavors, log=UndoLog()),
        local_queues=local_queues,
        namespace_labels=namespace_labels,
        fair_sharing=fair_sharing,
        strategies=strategies,
        keeps_nominations=keeps_nominations,
        own=own,
    )
    for workload in workloads:
        admission.add(workload)
    return admission
