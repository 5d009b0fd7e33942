"""The workload kinds whose pods we place: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob."""

import msgspec

from mooring.model.api.meta import Condition, KubeObject, LabelSelector, ObjectMeta
from mooring.model.api.pods import PodTemplateSpec
from mooring.model.api.volumes import PersistentVolumeClaim


class DeploymentSpec(KubeObject):
    template: PodTemplateSpec
    replicas: int | None = None
    selector: LabelSelector | None = None


class Deployment(KubeObject):
    spec: DeploymentSpec
    api_version: str = "apps/v1"
    kind: str = "Deployment"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class ReplicaSet(KubeObject):
    spec: DeploymentSpec
    api_version: str = "apps/v1"
    kind: str = "ReplicaSet"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class ReplicationControllerSpec(KubeObject):
    template: PodTemplateSpec
    replicas: int | None = None
    selector: dict[str, str] | None = None


class ReplicationController(KubeObject):
    spec: ReplicationControllerSpec
    api_version: str = "v1"
    kind: str = "ReplicationController"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class Ordinals(KubeObject):
    start: int = 0


class StatefulSetSpec(KubeObject):
    template: PodTemplateSpec
    replicas: int | None = None
    selector: LabelSelector | None = None
    service_name: str = ""
    ordinals: Ordinals | None = None
    volume_claim_templates: list[PersistentVolumeClaim] | None = None


class StatefulSet(KubeObject):
    spec: StatefulSetSpec
    api_version: str = "apps/v1"
    kind: str = "StatefulSet"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class DaemonSetSpec(KubeObject):
    template: PodTemplateSpec
    selector: LabelSelector | None = None


class DaemonSet(KubeObject):
    spec: DaemonSetSpec
    api_version: str = "apps/v1"
    kind: str = "DaemonSet"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class JobSpec(KubeObject):
    template: PodTemplateSpec
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool = False
    active_deadline_seconds: int | None = None


class JobStatus(KubeObject):
    conditions: list[Condition] | None = None
    succeeded: int = 0
    completed_indexes: str = ""


class Job(KubeObject):
    spec: JobSpec
    api_version: str = "batch/v1"
    kind: str = "Job"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: JobStatus = msgspec.field(default_factory=JobStatus)


class JobTemplateSpec(KubeObject):
    spec: JobSpec
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class CronJobSpec(KubeObject):
    job_template: JobTemplateSpec
    schedule: str = ""
    suspend: bool = False


class CronJob(KubeObject):
    spec: CronJobSpec
    api_version: str = "batch/v1"
    kind: str = "CronJob"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
