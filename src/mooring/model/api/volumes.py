"""Storage: volumes, claims, classes, CSI drivers and what they can hold."""

import msgspec

from mooring.model.api.meta import KubeObject, LabelSelector, NodeSelector, ObjectMeta, QuantityText, Resources


class VolumeResources(KubeObject):
    requests: Resources | None = None
    limits: Resources | None = None


class ObjectReference(KubeObject):
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""


class PersistentVolumeClaimSpec(KubeObject):
    access_modes: list[str] | None = None
    resources: VolumeResources | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class ModifyVolumeStatus(KubeObject):
    target_volume_attributes_class_name: str = ""


class PersistentVolumeClaimStatus(KubeObject):
    phase: str = ""
    allocated_resources: Resources | None = None
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None


class PersistentVolumeClaim(KubeObject):
    api_version: str = "v1"
    kind: str = "PersistentVolumeClaim"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = msgspec.field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = msgspec.field(default_factory=PersistentVolumeClaimStatus)


class VolumeNodeAffinity(KubeObject):
    required: NodeSelector | None = None


class CsiPersistentVolume(KubeObject):
    driver: str = ""
    volume_handle: str = ""


class GcePersistentDiskVolume(KubeObject):
    pd_name: str = ""


class AwsElasticBlockStoreVolume(KubeObject):
    volume_id: str = msgspec.field(default="", name="volumeID")


class PersistentVolumeSpec(KubeObject):
    capacity: Resources | None = None
    access_modes: list[str] | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiPersistentVolume | None = None
    gce_persistent_disk: GcePersistentDiskVolume | None = None
    aws_elastic_block_store: AwsElasticBlockStoreVolume | None = None


class PersistentVolumeStatus(KubeObject):
    phase: str = ""


class PersistentVolume(KubeObject):
    api_version: str = "v1"
    kind: str = "PersistentVolume"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = msgspec.field(default_factory=PersistentVolumeStatus)


class TopologyLabelRequirement(KubeObject):
    key: str
    values: list[str] = []


class TopologySelectorTerm(KubeObject):
    match_label_expressions: list[TopologyLabelRequirement] | None = None


class StorageClass(KubeObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "StorageClass"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeNodeResources(KubeObject):
    count: int | None = None


class CsiNodeDriver(KubeObject):
    name: str
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: list[str] | None = None
    allocatable: VolumeNodeResources | None = None


class CsiNodeSpec(KubeObject):
    drivers: list[CsiNodeDriver] = []


class CsiNode(KubeObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSINode"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CsiNodeSpec = msgspec.field(default_factory=CsiNodeSpec)


class CsiDriverSpec(KubeObject):
    storage_capacity: bool = False
    attach_required: bool = True
    prevent_pod_scheduling_if_missing: bool = False


class CsiDriver(KubeObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSIDriver"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CsiDriverSpec = msgspec.field(default_factory=CsiDriverSpec)


class CsiStorageCapacity(KubeObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSIStorageCapacity"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None


class VolumeAttachmentSource(KubeObject):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(KubeObject):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = msgspec.field(default_factory=VolumeAttachmentSource)


class VolumeAttachment(KubeObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "VolumeAttachment"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)
