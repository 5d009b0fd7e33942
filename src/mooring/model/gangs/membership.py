"""Which gang a pod belongs to, as its labels, annotations and spec say in any of the dialects.

It is asked for every pod that is read, so pods of no gang are told apart by two looks at a set. The gang itself, with
its minimum, is declared elsewhere: see `mooring.model.loading.declarations`.
"""

from collections.abc import Mapping

from mooring.model.api.gang_labels import COSCHEDULING_GROUPS as COSCHEDULING_GROUPS
from mooring.model.api.gang_labels import VOLCANO_GROUPS as VOLCANO_GROUPS
from mooring.model.api.gang_labels import VOLCANO_INDEX as VOLCANO_INDEX
from mooring.model.api.gang_labels import VOLCANO_MINIMUM as VOLCANO_MINIMUM
from mooring.model.api.gang_labels import VOLCANO_ROLE as VOLCANO_ROLE
from mooring.model.api.kueue_labels import POD_GROUP_INDEX, POD_SET_GROUP, pod_group, positive_count
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod
from mooring.model.gangs.gang import Membership, gang_key
from mooring.model.jobs.expansion import COMPLETION_INDEX, POD_INDEX, controller_of
from mooring.model.jobs.jobset import GROUP as JOB_SET_GROUP
from mooring.model.jobs.jobset import JOB_INDEX, JOB_SET_NAME, REPLICATED_JOB_NAME
from mooring.model.jobs.pod_sets import role_hash
from mooring.model.keys import GangKey
from mooring.model.topology.requests import KUEUE_REQUESTS, KUEUE_SLICE_SIZE, asks_kueue

GANG = "mooring.dev/gang"
GANG_NAME = "mooring.dev/gang-name"
GANG_MINIMUM = "mooring.dev/gang-minimum"
GANG_TIMEOUT = "mooring.dev/gang-timeout"

KAI_GROUP = "pod-group-name"
KAI_ROLE = "kai.scheduler/subgroup-name"

COSCHEDULING_MINIMUM = "pod-group.scheduling.sigs.k8s.io/min-available"

KOORDINATOR_PREFIX = "gang.scheduling.koordinator.sh"
KOORDINATOR_NAME = f"{KOORDINATOR_PREFIX}/name"
KOORDINATOR_MINIMUM = f"{KOORDINATOR_PREFIX}/min-available"

YUNIKORN = "yunikorn.apache.org/"
APPLICATION, APPLICATION_LABELS = f"{YUNIKORN}app-id", ("applicationId", "spark-app-selector")
TASK_GROUP_NAME, TASK_GROUPS = f"{YUNIKORN}task-group-name", f"{YUNIKORN}task-groups"

GROVE_GANG = "grove.io/podgang"
GROVE_ROLE = "grove.io/podclique"
GROVE_INDEX = "grove.io/podclique-pod-index"

LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"

LEADER, WORKER = "leader", "worker"

NATIVE_KIND = "PodGroup.scheduling.k8s.io"
WORKLOAD_KIND = "Workload.scheduling.k8s.io"
VOLCANO_KIND = "PodGroup.scheduling.volcano.sh"
KAI_KIND = "PodGroup.scheduling.run.ai"
COSCHEDULING_KIND = "PodGroup.scheduling.x-k8s.io"
GROVE_KIND = "PodGang.scheduler.grove.io"
LWS_KIND = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
PLAIN_KIND = "Gang.mooring.dev"
JOB_SET_KIND = f"JobSet.{JOB_SET_GROUP}"
APPLICATION_KIND = "Application.yunikorn.apache.org"
QUEUED_GROUP_KIND = "PodGroup.kueue.x-k8s.io"

_LABELS = frozenset({*COSCHEDULING_GROUPS, GROVE_GANG, LWS_NAME})
_ANNOTATIONS = frozenset(
    {
        *(*VOLCANO_GROUPS, VOLCANO_MINIMUM, KAI_GROUP, KOORDINATOR_NAME, TASK_GROUP_NAME),
        *(GANG, GANG_NAME, GANG_MINIMUM, *KUEUE_REQUESTS),
    }
)
_OWNERS_ROLES = (
    REPLICATED_JOB_NAME,
    "training.kubeflow.org/replica-type",
    "ray.io/group",
)
"""How controllers that know no gangs tell the kinds of their pods apart."""
_OWNERS_OF_POD_SETS = frozenset(
    {
        *("Job", "StatefulSet", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob"),
        *("RayCluster", "RayJob", "SparkApplication"),
    }
)
"""Whose pods of one kind Kueue admits together; pods of a Deployment queue one by one."""
_RANKS = (
    COMPLETION_INDEX,
    LWS_WORKER_INDEX,
    POD_INDEX,
    GROVE_INDEX,
    VOLCANO_INDEX,
    "training.kubeflow.org/replica-index",
    POD_GROUP_INDEX,
)
_RANK_KEYS = frozenset(_RANKS)
_MOST_DIGITS = 6
"""A longer number at the end of a name is drawn by lot or a date, not a rank."""
_MOST_PODS_OF_A_JOB = 10**_MOST_DIGITS


def membership(pod: Pod) -> Membership | None:
    """The gang that a pod names, its role there and its rank; None for a pod of its own."""
    spec, metadata = pod.spec, pod.metadata
    labels, annotations = metadata.labels, metadata.annotations
    if (
        spec.scheduling_group is None
        and spec.workload_ref is None
        and (not labels or _LABELS.isdisjoint(labels))
        and (not annotations or _ANNOTATIONS.isdisjoint(annotations))
    ):
        return None
    labels, annotations = labels or {}, annotations or {}
    found = (
        _in_spec(pod)
        or _in_annotations(metadata, labels, annotations)
        or _in_labels(metadata.namespace, labels)
        or _in_koordinators_annotation(metadata.namespace, annotations)
        or _in_task_group(pod, annotations)
        or _in_pod_set(pod, labels, annotations)
    )
    return None if found is None else Membership(*found, _rank(metadata.name, labels, annotations))


def _in_spec(pod: Pod) -> tuple[GangKey, str] | None:
    spec, namespace = pod.spec, pod.metadata.namespace
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        return gang_key(NATIVE_KIND, namespace, spec.scheduling_group.pod_group_name), ""
    if spec.workload_ref is not None:
        reference = spec.workload_ref
        return gang_of_workload(namespace, reference.name, reference.pod_group, reference.pod_group_replica_key), ""
    return None


def _in_annotations(
    metadata: ObjectMeta, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> tuple[GangKey, str] | None:
    namespace = metadata.namespace
    if annotations.get(GANG) != "false":
        role = next((labels[key] for key in _OWNERS_ROLES if key in labels), "")
        if name := annotations.get(GANG_NAME):
            return gang_key(PLAIN_KIND, namespace, name), role
        owner = controller_of(metadata) if GANG in annotations or GANG_MINIMUM in annotations else None
        if owner is not None:
            return owned_gang_key(owner.api_version, owner.kind, namespace, owner.name), role
    if GROVE_GANG in labels:  # before KAI, which groups pods of Grove a second time
        return None
    for key in VOLCANO_GROUPS:
        if name := annotations.get(key):
            return gang_key(VOLCANO_KIND, namespace, name), annotations.get(VOLCANO_ROLE) or labels.get(
                VOLCANO_ROLE, ""
            )
    if name := annotations.get(KAI_GROUP):
        return gang_key(KAI_KIND, namespace, name), labels.get(KAI_ROLE, "")
    if VOLCANO_MINIMUM in annotations:
        return gang_key(VOLCANO_KIND, namespace, _implied_group(metadata)), ""
    return None


def _in_labels(namespace: str, labels: Mapping[str, str]) -> tuple[GangKey, str] | None:
    if name := labels.get(GROVE_GANG):
        return gang_key(GROVE_KIND, namespace, name), labels.get(GROVE_ROLE, "")
    for key in COSCHEDULING_GROUPS:
        if name := labels.get(key):
            return gang_key(COSCHEDULING_KIND, namespace, name), ""
    # A leader whose group is not written on it is numbered by the StatefulSet that made it.
    group = labels.get(LWS_GROUP_INDEX) or labels.get(POD_INDEX)
    if LWS_NAME in labels and group:
        role = LEADER if labels.get(LWS_WORKER_INDEX, "0") == "0" else WORKER
        return gang_key(LWS_KIND, namespace, f"{labels[LWS_NAME]}-{group}"), role
    return None


def _in_koordinators_annotation(namespace: str, annotations: Mapping[str, str]) -> tuple[GangKey, str] | None:
    """Koordinator knows one kind of gang, which labels of Coscheduling name as well."""
    name = annotations.get(KOORDINATOR_NAME)
    return (gang_key(COSCHEDULING_KIND, namespace, name), "") if name else None


def _in_task_group(pod: Pod, annotations: Mapping[str, str]) -> tuple[GangKey, str] | None:
    role, application = annotations.get(TASK_GROUP_NAME), named_application(pod)
    return (gang_key(APPLICATION_KIND, pod.metadata.namespace, application), role) if role and application else None


def _in_pod_set(pod: Pod, labels: Mapping[str, str], annotations: Mapping[str, str]) -> tuple[GangKey, str] | None:
    """A pod set that asks Kueue for a place in the topology gets it as a whole or not at all: that makes it a gang."""
    if not asks_kueue(annotations) or annotations.get(GANG) == "false":
        return None
    metadata = pod.metadata
    owner = controller_of(metadata)
    # Pod sets of one group want one place between them.
    part = annotations.get(POD_SET_GROUP) or next((labels[key] for key in _OWNERS_ROLES if key in labels), "")
    if JOB_SET_NAME in labels:
        return gang_key(JOB_SET_KIND, metadata.namespace, f"{labels[JOB_SET_NAME]}/{part}"), ""
    if owner is not None and owner.kind in _OWNERS_OF_POD_SETS:
        name = f"{owner.name}/{part}" if part else owner.name
        return owned_gang_key(owner.api_version, owner.kind, metadata.namespace, name), ""
    if owner is None and (group := pod_group(metadata)):
        return gang_key(QUEUED_GROUP_KIND, metadata.namespace, f"{group}/{part or role_hash(pod)}"), ""
    return None


def _implied_group(metadata: ObjectMeta) -> str:
    """The PodGroup that Volcano makes for pods of other controllers that name none, one for each controller."""
    owner = controller_of(metadata)
    if owner is None:
        return f"podgroup-{metadata.uid or metadata.name}"
    return f"podgroup-{owner.uid or owner.name}"


def _rank(name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> int | None:
    if not (_RANK_KEYS.isdisjoint(labels) and _RANK_KEYS.isdisjoint(annotations)):
        for key in _RANKS:
            text = labels.get(key) or annotations.get(key)
            if text and _is_number(text):
                return _rank_of_job(labels, annotations) + int(text)
    tail = name.rpartition("-")[2]
    return int(tail) if tail != name and _is_number(tail) else None


def _rank_of_job(labels: Mapping[str, str], annotations: Mapping[str, str]) -> int:
    """The first rank of the pods of one of a JobSet's Jobs: they come Job by Job, and slices end where a Job does."""
    index = labels.get(JOB_INDEX, "")
    size = positive_count(annotations.get(KUEUE_SLICE_SIZE)) or 1
    return int(index) * _MOST_PODS_OF_A_JOB * size if _is_number(index) else 0


def _is_number(text: str) -> bool:
    return len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit()


def gang_of_workload(namespace: str, workload: str, group: str, replica: str) -> GangKey:
    """The key of a pod group inside a Workload, or of one replica of it."""
    return gang_key(WORKLOAD_KIND, namespace, f"{workload}/{group}/{replica}" if replica else f"{workload}/{group}")


def owned_gang_key(api_version: str, kind: str, namespace: str, name: str) -> GangKey:
    """The key of the gang that all pods of a controller make up."""
    group = api_version.rpartition("/")[0]
    return gang_key(f"{kind}.{group}" if group else kind, namespace, name)


def named_application(pod: Pod) -> str:
    """The application of YuniKorn that a pod says it is a part of; empty if it says none."""
    labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
    named = (labels.get(APPLICATION), annotations.get(APPLICATION), *(labels.get(key) for key in APPLICATION_LABELS))
    return next((name for name in named if name), "")
