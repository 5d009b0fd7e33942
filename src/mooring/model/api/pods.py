"""Pods, as far as scheduling reads them."""

import msgspec

from mooring.model.api.meta import (
    Condition,
    KubeObject,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
    Resources,
)
from mooring.model.api.volumes import PersistentVolumeClaimSpec
from mooring.model.keys import PodKey


class ContainerPort(KubeObject):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""
    name: str = ""


class ResourceClaimName(KubeObject):
    name: str
    request: str = ""


class ResourceRequirements(KubeObject):
    requests: Resources | None = None
    limits: Resources | None = None
    claims: list[ResourceClaimName] | None = None


class ContainerRestartRule(KubeObject):
    action: str = ""


class Container(KubeObject):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] | None = None


class Toleration(KubeObject):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PreferredSchedulingTerm(KubeObject):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(KubeObject):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(KubeObject):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(KubeObject):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(KubeObject):
    """Both podAffinity and podAntiAffinity: the two have the same fields."""

    required: list[PodAffinityTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(KubeObject):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(KubeObject):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class ClaimVolumeSource(KubeObject):
    claim_name: str
    read_only: bool = False


class ClaimTemplate(KubeObject):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)


class EphemeralVolumeSource(KubeObject):
    volume_claim_template: ClaimTemplate | None = None


class GcePersistentDisk(KubeObject):
    pd_name: str
    read_only: bool = False


class AwsElasticBlockStore(KubeObject):
    volume_id: str = msgspec.field(name="volumeID")
    read_only: bool = False


class Rbd(KubeObject):
    monitors: list[str] = []
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class Iscsi(KubeObject):
    iqn: str = ""
    target_portal: str = ""
    lun: int = 0
    read_only: bool = False


class CsiVolumeSource(KubeObject):
    driver: str = ""


class ImageVolumeSource(KubeObject):
    reference: str = ""


class LocalVolumeSource(KubeObject):
    """A directory on the node, whichever."""

    medium: str = ""
    """Of an emptyDir: Memory if it is in memory, and so not on the node's disks."""


class Volume(KubeObject):
    name: str = ""
    host_path: LocalVolumeSource | None = None
    empty_dir: LocalVolumeSource | None = None
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    rbd: Rbd | None = None
    iscsi: Iscsi | None = None
    csi: CsiVolumeSource | None = None
    image: ImageVolumeSource | None = None


class SchedulingGate(KubeObject):
    name: str


class PodResourceClaim(KubeObject):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(KubeObject):
    pod_group_name: str | None = None


class WorkloadReference(KubeObject):
    """What Kubernetes 1.35 has in place of schedulingGroup."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(KubeObject):
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    overhead: Resources | None = None
    resources: ResourceRequirements | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    host_network: bool = False
    host_users: bool | None = None
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None


class PodResourceClaimStatus(KubeObject):
    """Which claim was made for a pod from a template; none where there is no need of one."""

    name: str
    resource_claim_name: str | None = None


class TerminatedState(KubeObject):
    exit_code: int = 0
    reason: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class WaitingState(KubeObject):
    reason: str = ""


class ContainerState(KubeObject):
    waiting: WaitingState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(KubeObject):
    name: str = ""
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    allocated_resources: Resources | None = None
    """The requests that the kubelet has admitted."""
    resources: ResourceRequirements | None = None
    """What the container runs with."""


class PodStatus(KubeObject):
    phase: str = ""
    reason: str = ""
    start_time: str | None = None
    nominated_node_name: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None


class Pod(KubeObject):
    api_version: str = "v1"
    kind: str = "Pod"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def key(self) -> PodKey:
        return PodKey(f"{self.metadata.namespace}/{self.metadata.name}")

    @property
    def is_terminal(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")


class PodTemplateSpec(KubeObject):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
