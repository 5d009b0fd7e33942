"""What `mooring queues` shows, as values: what json and yaml print, and what the tables are drawn from.

Amounts are numbers: cores, bytes, or a count.
"""

from msgspec import Struct

from mooring.report.admissions import Admitted, Noticed, Suspended


class QuotaStatus(Struct, rename="camel"):
    """One resource of one flavor, of a queue or a cohort."""

    flavor: str
    resource: str
    nominal: float
    """Its own quota; of a cohort, together with those of everybody below it."""
    used: float
    """What its workloads hold; of a cohort, those of all queues below it."""
    borrowed: float
    """What it uses beyond its own."""
    borrowing_limit: float | None
    """None if only what others lend limits it."""
    available: float
    """How much more it could have now, without anybody giving back."""
    lending_limit: float | None
    """None if it lends all that it does not use."""
    idle: float
    """What it could lend and does not use itself."""
    lent_at_least: float
    """What others use of that. Quota is lent into a pool: with several lenders, only limits are known."""
    lent_at_most: float


class CohortStatus(Struct, rename="camel"):
    name: str
    parent: str
    """Empty for the root of a tree."""
    weight: float
    weighted_share: float | None
    """How much of what could be lent it has borrowed, in thousandths, by its weight; None: endless, by weight 0."""
    quotas: list[QuotaStatus]


class Preemption(Struct, rename="camel"):
    """From whom the queue's workloads may take quota."""

    within_cluster_queue: str
    reclaim_within_cohort: str
    borrow_within_cohort: str


class GivenBack(Struct, rename="camel", omit_defaults=True):
    """What a workload would have to give back for another one to start."""

    workload: str
    namespace: str
    owner: str
    cluster_queue: str
    priority: int
    amounts: dict[str, float]
    """Of the resources that are short."""
    forbidden_by: str = ""
    """The policy that keeps it from being taken."""


class WaitingWorkload(Struct, rename="camel", omit_defaults=True):
    """A workload that wants quota."""

    workload: str
    namespace: str
    owner: str
    """What a user would call it: Job/train."""
    local_queue: str
    priority: int
    pods: int
    asks: dict[str, float]
    """What all its pods ask for."""
    reason: str
    """Of the condition QuotaReserved, or of its last eviction."""
    message: str
    position: int | None = None
    """Its place in the ClusterQueue, from 1; None if it stands in no line."""
    least_pods: int | None = None
    """With how few pods it would start, if not with all."""
    gives_back: list[GivenBack] = []
    """Who would have to give what back for it to start."""
    starts_with: int | None = None
    """With how many of its pods it would start then, if not with all."""
    outlook: str = ""
    """Where it is not for others to give back: why."""


class HoldingWorkload(Struct, rename="camel", omit_defaults=True):
    """A workload that has quota."""

    workload: str
    namespace: str
    owner: str
    local_queue: str
    priority: int
    stage: str
    """admitted; reserved: it waits for admission checks; leaving: it has to stop."""
    holds: dict[str, float]


class QueueStatus(Struct, rename="camel"):
    """A ClusterQueue."""

    name: str
    cohort: str
    active: bool
    inactive_reason: str
    strategy: str
    preemption: Preemption
    weight: float
    weighted_share: float | None
    admitted: int
    reserved: int
    """Workloads that have quota and wait for admission checks."""
    waiting: int
    quotas: list[QuotaStatus]
    holding_workloads: list[HoldingWorkload]
    waiting_workloads: list[WaitingWorkload]
    """In the order in which they are tried; those that stand in no line last."""


class LocalQueueStatus(Struct, rename="camel"):
    name: str
    namespace: str
    cluster_queue: str
    active: bool
    inactive_reason: str
    admitted: int
    reserved: int
    waiting: int


class WaitingReason(Struct, rename="camel"):
    message: str
    pods: int


class VolcanoQueueStatus(Struct, rename="camel"):
    """A Queue of Volcano; amounts by resource."""

    name: str
    parent: str
    """Empty below the root."""
    state: str
    weight: int
    priority: int
    reclaimable: bool
    share: float
    """The highest part that it holds of what it deserves."""
    allocated: dict[str, float]
    deserved: dict[str, float]
    demand: dict[str, float]
    guarantee: dict[str, float]
    capability: dict[str, float]
    """As its manifest says; a resource that is not named has no limit of its own."""
    real_capability: dict[str, float]
    """What it can reach: without what is guaranteed to others."""
    dominant_share: float
    """The highest part that it holds of the cluster."""
    dominant_resource: str
    """Of which that is; empty if it holds nothing."""
    running_pods: int = 0
    """Its own and those of all queues below it, as are the amounts."""
    waiting_pods: int = 0
    waiting_reasons: list[WaitingReason] = []
    """Why its pods wait, the reason of most pods first."""


class SharedQueueStatus(Struct, rename="camel"):
    """A queue of KAI or YuniKorn, or an ElasticQuota; amounts by resource."""

    kind: str
    """What its users call it: KAI queue, YuniKorn queue, ElasticQuota."""
    name: str
    parent: str
    """Empty below the root."""
    share: float
    """The highest part that it holds of what it deserves."""
    allocated: dict[str, float]
    deserved: dict[str, float]
    """Its fair share in KAI, its runtime quota in Koordinator, else what it is guaranteed."""
    demand: dict[str, float]
    capability: dict[str, float]
    """The most that it may hold; a resource that is not named has no limit of its own."""
    dominant_share: float
    """The highest part that it holds of the cluster."""
    dominant_resource: str
    running_pods: int
    """Its own and those of all queues below it, as are the amounts."""
    waiting_pods: int
    waiting_reasons: list[WaitingReason]


class QueuesResult(Struct, rename="camel"):
    admitted: list[Admitted]
    """Workloads that were given quota just now; in the order of the decisions."""
    suspended: list[Suspended]
    """Workloads that had to give it back."""
    notices: list[Noticed]
    """Workloads that were told that they will have to, and when."""
    cohorts: list[CohortStatus]
    """Parents before their children, by name."""
    queues: list[QueueStatus]
    """By name."""
    local_queues: list[LocalQueueStatus]
    """By namespace and name."""
    without_queue: list[WaitingWorkload]
    """Workloads whose LocalQueue or ClusterQueue is not there."""
    volcano_queues: list[VolcanoQueueStatus]
    """Parents before their children, by name."""
    shared_queues: list[SharedQueueStatus]
    """Those of KAI, YuniKorn and ElasticQuotas, a family after the other; parents before their children."""
