"""The claims behind a pod's volumes, and the words kube-scheduler has for what is wrong with them."""

from collections.abc import Iterator, Mapping

from mooring.model.api.pods import Pod, Volume
from mooring.model.api.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"

Claims = Mapping[str, PersistentVolumeClaim]
"""By namespace/name."""


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Name the claim that a volume uses; a generic ephemeral volume has one of its own. None without a claim."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def named_claims(pod: Pod, claims: Claims) -> Iterator[tuple[str, PersistentVolumeClaim | None]]:
    """The claims that a pod's volumes name, found or not; those of ephemeral volumes are left out."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            yield name, claims.get(f"{pod.metadata.namespace}/{name}")


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Tell whether an ephemeral volume's claim belongs to this pod, not to an earlier one of the same name."""
    controllers = (owner for owner in claim.metadata.owner_references or () if owner.controller)
    owner = next(controllers, None)
    return owner is not None and owner.uid == pod.metadata.uid


def claim_key(claim: PersistentVolumeClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def class_of(found: PersistentVolumeClaim | PersistentVolume) -> str:
    """The name of a claim's or a volume's storage class, also where it stands in the annotation of old."""
    annotations = found.metadata.annotations or {}
    return annotations.get(_CLASS_ANNOTATION, found.spec.storage_class_name or "")


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def not_found(kind: str, name: str) -> str:
    return f'{kind} "{name}" not found'


CLAIM = "persistentvolumeclaim"
VOLUME = "persistentvolume"
CLASS = "storageclass.storage.k8s.io"
