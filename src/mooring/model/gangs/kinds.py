"""The kinds of the gang dialects: under which group and name each is known, and what checks it."""

from collections.abc import Callable
from typing import Any

from mooring.model.api.elastic_quota import ElasticQuota
from mooring.model.api.kai_queue import KaiQueue
from mooring.model.api.meta import KubeObject
from mooring.model.api.volcano_queue import Queue
from mooring.model.gangs.dialects import coscheduling, grove, grove_checks, kai, kubernetes, lws, volcano, volcano_flow
from mooring.model.gangs.dialects.coscheduling import CoschedulingPodGroup
from mooring.model.gangs.dialects.grove import ClusterTopologyBinding, PodCliqueSet, PodGang
from mooring.model.gangs.dialects.kai import KaiPodGroup
from mooring.model.gangs.dialects.kubernetes import CompositePodGroup, NativePodGroup, NativeWorkload
from mooring.model.gangs.dialects.lws import LeaderWorkerSet
from mooring.model.gangs.dialects.volcano import VolcanoPodGroup
from mooring.model.gangs.dialects.volcano_cron_job import VolcanoCronJob
from mooring.model.gangs.dialects.volcano_flow import JobFlow, JobTemplate
from mooring.model.gangs.dialects.volcano_job import GROUP as VOLCANO_BATCH
from mooring.model.gangs.dialects.volcano_job import VolcanoJob
from mooring.model.gangs.dialects.volcano_job_checks import check_cron_job, check_job
from mooring.model.topology.requests import HyperNode
from mooring.model.validation.shared_queues import check_elastic_quota, check_kai_queue
from mooring.model.validation.terms import Subject
from mooring.model.validation.topology import validate_hypernode
from mooring.model.validation.versions import check_version
from mooring.model.validation.volcano_queue import validate_queue

GANG_KINDS: tuple[tuple[str, str, type[KubeObject]], ...] = (
    (kubernetes.GROUP, "PodGroup", NativePodGroup),
    (kubernetes.GROUP, "CompositePodGroup", CompositePodGroup),
    (kubernetes.GROUP, "Workload", NativeWorkload),
    (volcano.GROUP, "PodGroup", VolcanoPodGroup),
    (volcano.GROUP, "Queue", Queue),
    (kai.GROUP, "Queue", KaiQueue),
    (coscheduling.GROUP, "ElasticQuota", ElasticQuota),
    (coscheduling.OLD_GROUP, "ElasticQuota", ElasticQuota),
    (VOLCANO_BATCH, "Job", VolcanoJob),
    (VOLCANO_BATCH, "CronJob", VolcanoCronJob),
    (volcano_flow.GROUP, "JobFlow", JobFlow),
    (volcano_flow.GROUP, "JobTemplate", JobTemplate),
    ("topology.volcano.sh", "HyperNode", HyperNode),
    (coscheduling.GROUP, "PodGroup", CoschedulingPodGroup),
    (coscheduling.OLD_GROUP, "PodGroup", CoschedulingPodGroup),
    (kai.GROUP, "PodGroup", KaiPodGroup),
    (lws.GROUP, "LeaderWorkerSet", LeaderWorkerSet),
    (grove.GROUP, "PodCliqueSet", PodCliqueSet),
    (grove.GROUP, "ClusterTopology", ClusterTopologyBinding),
    (grove.GROUP, "ClusterTopologyBinding", ClusterTopologyBinding),
    (grove.SCHEDULER_GROUP, "PodGang", PodGang),
)
"""Group, name, type. Of several with one name the first is meant where no group is given."""

_CHECKS: dict[type, Callable[[Subject, Any], None]] = {
    NativePodGroup: kubernetes.check_pod_group,
    CompositePodGroup: kubernetes.check_composite,
    NativeWorkload: kubernetes.check_workload,
    VolcanoPodGroup: volcano.check_pod_group,
    Queue: lambda subject, found: validate_queue(found, subject.place),
    KaiQueue: check_kai_queue,
    ElasticQuota: check_elastic_quota,
    VolcanoJob: check_job,
    VolcanoCronJob: check_cron_job,
    JobFlow: volcano_flow.check_flow,
    JobTemplate: volcano_flow.check_template,
    HyperNode: lambda subject, found: validate_hypernode(found, subject.place),
    CoschedulingPodGroup: coscheduling.check_pod_group,
    KaiPodGroup: kai.check_pod_group,
    LeaderWorkerSet: lws.check_set,
    PodCliqueSet: grove_checks.check_clique_set,
    ClusterTopologyBinding: grove_checks.check_binding,
    PodGang: grove_checks.check_pod_gang,
}


def _check_kind(subject: Subject, found: Any) -> None:
    check_version(subject, found)
    _CHECKS[type(found)](subject, found)


GANG_CHECKS = dict.fromkeys(_CHECKS, _check_kind)
