"""Disks that two pods of a node cannot share, and claims that only one pod at all may use."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import SKIP, Change, Codes, Depends, PreFilter, Skip
from mooring.engine.verdict import Rejection
from mooring.model.api.pods import Pod, Volume
from mooring.plugins.volume_claims import CLAIM, named_claims, not_found
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
DISK_TAKEN, CLAIM_TAKEN = 1, 2
REASONS = {
    DISK_TAKEN: "node(s) had no available disk",
    CLAIM_TAKEN: "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use "
    "by another pod",
}


@dataclass(frozen=True, slots=True)
class Conflicts:
    """The pods that have what this pod wants for itself."""

    disk_holders: dict[int, list[str]]
    """row -> the pods there that use one of this pod's disks."""
    claim_holders: list[str]
    """The pods anywhere that use one of this pod's ReadWriteOncePod claims."""


class VolumeRestrictions(PreFilter):
    depends_on = Depends.NODE | Depends.RELATED | Depends.PODS
    helped_by = Change.NODE | Change.POD_GONE | Change.RELATED
    skip_is_settled = True

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Conflicts | Skip | Rejection:
        exclusive: set[str] = set()
        for name, claim in named_claims(pod.sample, cluster.related.persistent_volume_claims):
            if claim is None:
                return Rejection((not_found(CLAIM, name),), unresolvable=True)
            if READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
                exclusive.add(name)
        disks = [volume for volume in pod.spec.volumes or () if is_disk(volume)]
        if not disks and not exclusive:
            return SKIP
        conflicts = Conflicts({}, [])
        for other in cluster.pods_with_volumes():
            if disks and any(is_conflict(disk, used) for disk in disks for used in other.pod.spec.volumes or ()):
                conflicts.disk_holders.setdefault(other.row, []).append(other.key)
            if exclusive and other.pod.metadata.namespace == pod.namespace and _uses_any(other.pod, exclusive):
                conflicts.claim_holders.append(other.key)
        return conflicts if conflicts.disk_holders or conflicts.claim_holders else SKIP

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Conflicts) -> Codes:
        codes = np.full(len(nodes), CLAIM_TAKEN if prepared.claim_holders else 0, np.int64)
        codes[np.isin(nodes.index, list(prepared.disk_holders))] = DISK_TAKEN
        return codes

    def rejection(self, pod: Shape, code: int) -> Rejection:
        return Rejection((REASONS[code],))

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: Conflicts) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """Stopping one pod opens the nodes on which no other is in the way."""
        opened: dict[str, list[int]] = {}
        for position, row in enumerate(nodes.index.tolist()):
            holders = {*prepared.disk_holders.get(row, ()), *prepared.claim_holders}
            if len(holders) == 1:
                opened.setdefault(holders.pop(), []).append(position)
        for key, positions in opened.items():
            yield f"stop pod {key}, which uses the same volume", np.array(positions, np.intp)


def is_disk(volume: Volume) -> bool:
    """Tell whether a volume is of a kind that two pods of one node may not be able to share."""
    kinds = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)
    return any(kind is not None for kind in kinds)


def is_conflict(wanted: Volume, used: Volume) -> bool:
    """Tell whether two volumes are the same disk, and not both of them only read."""
    if wanted.gce_persistent_disk is not None and used.gce_persistent_disk is not None:
        gce, other_gce = wanted.gce_persistent_disk, used.gce_persistent_disk
        return gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only)
    if wanted.aws_elastic_block_store is not None and used.aws_elastic_block_store is not None:
        # Even readers cannot share one of these.
        return wanted.aws_elastic_block_store.volume_id == used.aws_elastic_block_store.volume_id
    if wanted.iscsi is not None and used.iscsi is not None:
        iscsi, other_iscsi = wanted.iscsi, used.iscsi
        return iscsi.iqn == other_iscsi.iqn and not (iscsi.read_only and other_iscsi.read_only)
    if wanted.rbd is not None and used.rbd is not None:
        rbd, other_rbd = wanted.rbd, used.rbd
        is_same = (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image)
        have_overlap = not set(rbd.monitors).isdisjoint(other_rbd.monitors)
        return is_same and have_overlap and not (rbd.read_only and other_rbd.read_only)
    return False


def _uses_any(pod: Pod, claim_names: set[str]) -> bool:
    return any(
        volume.persistent_volume_claim is not None and volume.persistent_volume_claim.claim_name in claim_names
        for volume in pod.spec.volumes or ()
    )
