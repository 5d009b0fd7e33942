"""The training jobs of `kubeflow.org`: replicas of a few types (master, worker), each type with its own template."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from mooring.model.api.gang_labels import VOLCANO_GROUPS, VOLCANO_MINIMUM, VOLCANO_ROLE
from mooring.model.api.kai_labels import is_kai_pod
from mooring.model.api.kueue_labels import queue_name
from mooring.model.api.meta import Condition, KubeObject, ObjectMeta
from mooring.model.api.pods import Pod, PodTemplateSpec
from mooring.model.jobs.expansion import Owned, Stamp, owner_key
from mooring.model.jobs.pod_sets import PodFinder, PodSetPlan, by_label, has_ended

GROUP = "kubeflow.org"
_PREFIX = "training.kubeflow.org"
JOB_NAME = f"{_PREFIX}/job-name"
OPERATOR_NAME = f"{_PREFIX}/operator-name"
REPLICA_TYPE = f"{_PREFIX}/replica-type"
REPLICA_INDEX = f"{_PREFIX}/replica-index"
JOB_ROLE = f"{_PREFIX}/job-role"

_GANG_QUEUE = "scheduling.volcano.sh/queue-name"

MASTER, WORKER, CHIEF = "Master", "Worker", "Chief"


class SchedulingPolicy(KubeObject):
    min_available: int | None = None
    queue: str = ""
    priority_class: str = ""


class RunPolicy(KubeObject):
    suspend: bool = False
    scheduling_policy: SchedulingPolicy | None = None


class ReplicaSpec(KubeObject):
    template: PodTemplateSpec = msgspec.field(default_factory=PodTemplateSpec)
    replicas: int | None = None


class ElasticPolicy(KubeObject):
    min_replicas: int | None = None
    max_replicas: int | None = None


class TrainingStatus(KubeObject):
    conditions: list[Condition] | None = None


class TrainingSpec(KubeObject):
    """What all training jobs share; each calls its replicas by a name of its own, here always `replica_specs`."""

    run_policy: RunPolicy = msgspec.field(default_factory=RunPolicy)


class TrainingJob(KubeObject):
    api_version: str = f"{GROUP}/v1"
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: TrainingStatus = msgspec.field(default_factory=TrainingStatus)


class PyTorchJobSpec(TrainingSpec, kw_only=True):
    replica_specs: dict[str, ReplicaSpec] = msgspec.field(name="pytorchReplicaSpecs")
    elastic_policy: ElasticPolicy | None = None


class PyTorchJob(TrainingJob, kw_only=True):
    spec: PyTorchJobSpec
    kind: str = "PyTorchJob"


class TfJobSpec(TrainingSpec, kw_only=True):
    replica_specs: dict[str, ReplicaSpec] = msgspec.field(name="tfReplicaSpecs")


class TfJob(TrainingJob, kw_only=True):
    spec: TfJobSpec
    kind: str = "TFJob"


class XgBoostJobSpec(TrainingSpec, kw_only=True):
    replica_specs: dict[str, ReplicaSpec] = msgspec.field(name="xgbReplicaSpecs")


class XgBoostJob(TrainingJob, kw_only=True):
    spec: XgBoostJobSpec
    kind: str = "XGBoostJob"


class PaddleJobSpec(TrainingSpec, kw_only=True):
    replica_specs: dict[str, ReplicaSpec] = msgspec.field(name="paddleReplicaSpecs")
    elastic_policy: ElasticPolicy | None = None


class PaddleJob(TrainingJob, kw_only=True):
    spec: PaddleJobSpec
    kind: str = "PaddleJob"


class JaxJobSpec(TrainingSpec, kw_only=True):
    replica_specs: dict[str, ReplicaSpec] = msgspec.field(name="jaxReplicaSpecs")


class JaxJob(TrainingJob, kw_only=True):
    spec: JaxJobSpec
    kind: str = "JAXJob"


class TrainingKind(NamedTuple):
    """How one kind names its replicas, and in which order they queue."""

    field: str
    types: tuple[str, ...]
    single: tuple[str, ...] = (MASTER,)
    """Types of which there is one pod."""
    required: tuple[str, ...] = ()


TRAINING_KINDS: dict[type[Any], TrainingKind] = {
    PyTorchJob: TrainingKind("pytorchReplicaSpecs", (MASTER, WORKER)),
    XgBoostJob: TrainingKind("xgbReplicaSpecs", (MASTER, WORKER), required=(MASTER,)),
    PaddleJob: TrainingKind("paddleReplicaSpecs", (MASTER, WORKER), ()),
    TfJob: TrainingKind("tfReplicaSpecs", (CHIEF, MASTER, "PS", WORKER, "Evaluator"), (CHIEF, MASTER)),
    JaxJob: TrainingKind("jaxReplicaSpecs", (WORKER,), (), (WORKER,)),
}


def ordered_replicas(owner: Any, types: tuple[str, ...]) -> Iterator[tuple[str, str, ReplicaSpec]]:
    """The types that a job has, in the order of its kind: name, key as written, spec. Case does not matter."""
    keys = {key.lower(): key for key in owner.spec.replica_specs}
    for name in types:
        key = keys.get(name.lower())
        if key is not None:
            yield name, key, owner.spec.replica_specs[key]


def replica_count(spec: ReplicaSpec) -> int:
    return 1 if spec.replicas is None else spec.replicas


def replica_templates(owner: Any, field: str, types: tuple[str, ...]) -> Iterator[tuple[str, PodTemplateSpec]]:
    for _, key, spec in ordered_replicas(owner, types):
        yield f"spec.{field}.{key}.template", spec.template


def training_templates(owner: Any) -> Iterator[tuple[str, PodTemplateSpec]]:
    kind = TRAINING_KINDS[type(owner)]
    return replica_templates(owner, kind.field, kind.types)


def is_training_over(owner: Any) -> bool:
    return has_ended(owner.status.conditions, "Succeeded", "Failed")


def replica_pod_sets(
    owner: Any, field: str, types: tuple[str, ...], index_label: str | None = REPLICA_INDEX
) -> list[PodSetPlan]:
    """One for each type of replica, under its name in lower case."""
    return [
        PodSetPlan(
            name=name.lower(),
            template=spec.template,
            count=replica_count(spec),
            path=f"spec.{field}.{key}.template",
            index_label=index_label,
        )
        for name, key, spec in ordered_replicas(owner, types)
    ]


def training_pod_sets(owner: Any) -> list[PodSetPlan]:
    kind = TRAINING_KINDS[type(owner)]
    return replica_pod_sets(owner, kind.field, kind.types)


def training_members(owner: Any, pods: PodFinder) -> Mapping[str, list[Pod]]:
    found = pods.owned_by(GROUP, owner.kind, owner.metadata.namespace, owner.metadata.name)
    return by_label(found, REPLICA_TYPE)


def training_priority_class(owner: Any) -> str:
    """The class that the job as a whole names, empty if it leaves that to its pods."""
    policy = owner.spec.run_policy.scheduling_policy
    return policy.priority_class if policy is not None else ""


def is_kept_back(owner: Any) -> bool:
    """Whether a job has no pods for now: it is over, or suspended and not because it queues."""
    is_suspended = owner.spec.run_policy.suspend and not queue_name(owner.metadata)
    return is_training_over(owner) or is_suspended


def expand_training_job(owner: Any, owned: Owned) -> list[Pod]:
    """Create the replicas that are missing; their names say which those are."""
    if is_kept_back(owner):
        return []
    kind = TRAINING_KINDS[type(owner)]
    replicas = list(ordered_replicas(owner, kind.types))
    present = {pod.metadata.name for pod in owned.get(owner_key(owner), ())}
    has_master = any(name in (MASTER, CHIEF) for name, _, _ in replicas)
    total = sum(replica_count(spec) for _, _, spec in replicas)
    pods: list[Pod] = []
    for name, _, spec in replicas:
        role = name.lower()
        labels = {
            JOB_NAME: owner.metadata.name,
            OPERATOR_NAME: f"{owner.kind.lower()}-controller",
            REPLICA_TYPE: role,
        }
        stamp = Stamp(owner, with_gang(owner, spec.template, role, total), labels)
        for index in range(replica_count(spec)):
            pod_name = f"{owner.metadata.name}-{role}-{index}"
            if pod_name in present:
                continue
            own = {REPLICA_INDEX: str(index)}
            # Without a master, the first worker of a TFJob is its chief.
            if name in (MASTER, CHIEF) or (
                isinstance(owner, TfJob) and not has_master and pod_name.endswith("worker-0")
            ):
                own[JOB_ROLE] = "master"
            pods.append(stamp.pod(pod_name, own))
    return pods


def with_gang(owner: Any, template: PodTemplateSpec, role: str, total: int) -> PodTemplateSpec:
    """Let the pods name their gang, as the operator does, where the job has a scheduling policy."""
    policy = owner.spec.run_policy.scheduling_policy
    if policy is None or is_kai_pod(template.spec, template.metadata.labels):  # KAI's pod-grouper sees to those
        return template
    minimum = total if policy.min_available is None else policy.min_available
    marks = {VOLCANO_GROUPS[0]: owner.metadata.name, VOLCANO_MINIMUM: str(minimum), VOLCANO_ROLE: role}
    if policy.queue:
        marks[_GANG_QUEUE] = policy.queue
    metadata = replace(template.metadata, annotations={**(template.metadata.annotations or {}), **marks})
    return replace(template, metadata=metadata)
