"""All controllers that run, in the order in which they are started."""

from mooring.kubeapi.admission.quota import ResourceQuotas
from mooring.kubeapi.controllers.app_wrappers import AppWrappers
from mooring.kubeapi.controllers.claims_of_pods import EphemeralVolumes, ResourceClaims
from mooring.kubeapi.controllers.cluster_roles import ClusterRoleAggregation
from mooring.kubeapi.controllers.compute_domains import ComputeDomains
from mooring.kubeapi.controllers.context import Context
from mooring.kubeapi.controllers.controller import Controller
from mooring.kubeapi.controllers.cron_jobs import CronJobs
from mooring.kubeapi.controllers.daemon_sets import DaemonSets
from mooring.kubeapi.controllers.deployments import Deployments
from mooring.kubeapi.controllers.disaggregated_sets import DisaggregatedSets
from mooring.kubeapi.controllers.disruption import Disruption
from mooring.kubeapi.controllers.endpoints import Endpoints
from mooring.kubeapi.controllers.event_expiry import EventExpiry
from mooring.kubeapi.controllers.garbage_collector import GarbageCollector
from mooring.kubeapi.controllers.job_sets import JobSets
from mooring.kubeapi.controllers.jobs import Jobs
from mooring.kubeapi.controllers.leader_worker_sets import LeaderWorkerSets
from mooring.kubeapi.controllers.namespace_contents import RootCertificates, ServiceAccounts
from mooring.kubeapi.controllers.namespaces import Namespaces
from mooring.kubeapi.controllers.node_claims import NodeClaims, NodePools
from mooring.kubeapi.controllers.node_lifecycle import NodeLifecycle
from mooring.kubeapi.controllers.not_here import Autoscalers, CertificateRequests, NotMade
from mooring.kubeapi.controllers.pod_gc import PodGC
from mooring.kubeapi.controllers.pool_status_requests import PoolStatusRequests
from mooring.kubeapi.controllers.replica_sets import ReplicaSets, ReplicationControllers
from mooring.kubeapi.controllers.resource_quotas import ResourceQuotaStatus
from mooring.kubeapi.controllers.stateful_sets import StatefulSets
from mooring.kubeapi.controllers.taint_eviction import TaintEviction
from mooring.kubeapi.controllers.train_jobs import TrainJobs
from mooring.kubeapi.controllers.training_jobs import KINDS, TrainingJobs
from mooring.kubeapi.controllers.ttl_after_finished import TTLAfterFinished
from mooring.kubeapi.controllers.volcano_jobs import VolcanoJobs
from mooring.kubeapi.controllers.volume_protection import VolumeProtection
from mooring.kubeapi.controllers.volumes import Volumes
from mooring.kubeapi.kinds.foreign import NOT_MADE
from mooring.kubeapi.nodes.gpu_cutter import GpuCutter
from mooring.kubeapi.nodes.heartbeats import Heartbeats
from mooring.kubeapi.nodes.kubelets import USUAL_TIMINGS, Kubelets
from mooring.model.capacity.provider import Catalogue
from mooring.model.kubelet.plan import Timings


def make_controllers(
    context: Context,
    quotas: ResourceQuotas,
    *,
    timings: Timings = USUAL_TIMINGS,
    seed: int = 0,
    catalogue: Catalogue | None = None,
) -> list[Controller]:
    """`quotas` is the ledger of admission; `timings` and `seed` are for the pods of simulated nodes.

    With a `catalogue`, NodeClaims become nodes.
    """
    return [
        # What is kept without effect.
        Autoscalers(context),
        CertificateRequests(context),
        # What users may do.
        ClusterRoleAggregation(context),
        # What every namespace has, what it may have, and how it ends.
        Namespaces(context),
        ServiceAccounts(context),
        RootCertificates(context),
        ResourceQuotaStatus(context, quotas),
        # Workloads, from the outside in.
        AppWrappers(context),
        TrainJobs(context),
        JobSets(context),
        VolcanoJobs(context),
        *(TrainingJobs(context, kind) for kind in KINDS),
        *(NotMade(context, resource) for resource in sorted(NOT_MADE)),
        DisaggregatedSets(context),
        LeaderWorkerSets(context),
        CronJobs(context),
        Jobs(context),
        TTLAfterFinished(context),
        Deployments(context),
        ReplicaSets(context),
        ReplicationControllers(context),
        StatefulSets(context),
        DaemonSets(context),
        Disruption(context),
        # What pods need.
        Volumes(context),
        VolumeProtection(context),
        EphemeralVolumes(context),
        ComputeDomains(context),
        ResourceClaims(context),
        PoolStatusRequests(context),
        Endpoints(context),
        # Nodes, and the pods on them.
        *([NodePools(context), NodeClaims(context, catalogue)] if catalogue is not None else []),
        Heartbeats(context),
        GpuCutter(context),
        Kubelets(context, timings=timings, seed=seed),
        NodeLifecycle(context),
        TaintEviction(context),
        PodGC(context),
        # What is old, and what nobody owns any more.
        EventExpiry(context),
        GarbageCollector(context),
    ]
