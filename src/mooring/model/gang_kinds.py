"""The kinds of the gang dialects: under which group and name each is known, and what checks it."""

from collections.abc import Callable
from typing import Any

from mooring.model import (
    gang_coscheduling,
    gang_grove,
    gang_grove_checks,
    gang_kai,
    gang_kubernetes,
    gang_lws,
    gang_volcano,
)
from mooring.model.gang_coscheduling import CoschedulingPodGroup
from mooring.model.gang_grove import ClusterTopologyBinding, PodCliqueSet, PodGang
from mooring.model.gang_kai import KaiPodGroup
from mooring.model.gang_kubernetes import CompositePodGroup, NativePodGroup, NativeWorkload
from mooring.model.gang_lws import LeaderWorkerSet
from mooring.model.gang_volcano import VolcanoPodGroup
from mooring.model.gang_volcano_job import GROUP as VOLCANO_BATCH
from mooring.model.gang_volcano_job import VolcanoJob
from mooring.model.gang_volcano_job_checks import check_job
from mooring.model.meta import KubeObject
from mooring.model.topology import HyperNode
from mooring.model.validation_terms import Subject
from mooring.model.validation_topology import validate_hypernode
from mooring.model.validation_volcano_queues import validate_queue
from mooring.model.versions import check_version
from mooring.model.volcano_queues import Queue

GANG_KINDS: tuple[tuple[str, str, type[KubeObject]], ...] = (
    (gang_kubernetes.GROUP, "PodGroup", NativePodGroup),
    (gang_kubernetes.GROUP, "CompositePodGroup", CompositePodGroup),
    (gang_kubernetes.GROUP, "Workload", NativeWorkload),
    (gang_volcano.GROUP, "PodGroup", VolcanoPodGroup),
    (gang_volcano.GROUP, "Queue", Queue),
    (VOLCANO_BATCH, "Job", VolcanoJob),
    ("topology.volcano.sh", "HyperNode", HyperNode),
    (gang_coscheduling.GROUP, "PodGroup", CoschedulingPodGroup),
    (gang_coscheduling.OLD_GROUP, "PodGroup", CoschedulingPodGroup),
    (gang_kai.GROUP, "PodGroup", KaiPodGroup),
    (gang_lws.GROUP, "LeaderWorkerSet", LeaderWorkerSet),
    (gang_grove.GROUP, "PodCliqueSet", PodCliqueSet),
    (gang_grove.GROUP, "ClusterTopology", ClusterTopologyBinding),
    (gang_grove.GROUP, "ClusterTopologyBinding", ClusterTopologyBinding),
    (gang_grove.SCHEDULER_GROUP, "PodGang", PodGang),
)
"""Group, name, type. Of several with one name the first is meant where no group is given."""

_CHECKS: dict[type, Callable[[Subject, Any], None]] = {
    NativePodGroup: gang_kubernetes.check_pod_group,
    CompositePodGroup: gang_kubernetes.check_composite,
    NativeWorkload: gang_kubernetes.check_workload,
    VolcanoPodGroup: gang_volcano.check_pod_group,
    Queue: lambda subject, found: validate_queue(found, subject.place),
    VolcanoJob: check_job,
    HyperNode: lambda subject, found: validate_hypernode(found, subject.place),
    CoschedulingPodGroup: gang_coscheduling.check_pod_group,
    KaiPodGroup: gang_kai.check_pod_group,
    LeaderWorkerSet: gang_lws.check_set,
    PodCliqueSet: gang_grove_checks.check_clique_set,
    ClusterTopologyBinding: gang_grove_checks.check_binding,
    PodGang: gang_grove_checks.check_pod_gang,
}


def _check_kind(subject: Subject, found: Any) -> None:
    check_version(subject, found)
    _CHECKS[type(found)](subject, found)


GANG_CHECKS = dict.fromkeys(_CHECKS, _check_kind)
