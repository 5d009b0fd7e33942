"""A node can attach only so many volumes of each CSI driver."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import SKIP, Change, Codes, Depends, PreFilter, Skip
from mooring.engine.verdict import Rejection
from mooring.model.api.pods import Pod
from mooring.model.api.volumes import CsiNode, PersistentVolumeClaim
from mooring.plugins.volume_claims import CLAIM, claim_key, claim_name, class_of, is_made_for, not_found
from mooring.state.columns import Interner
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, RelatedView

TOO_MANY = 1
NO_CLAIM, NO_DRIVER = 2, 3
"""The lowest two bits of the other codes; the rest is the volume's index in the pod, or the driver's code."""

Identity = tuple[str, str, str]
"""(driver, handle, claim): the handle of a volume that exists, or the claim of one that is still to be made."""


@dataclass(frozen=True, slots=True)
class WantedVolumes:
    """What a pod would attach, and how to find what its node has attached already."""

    cluster: ClusterView
    identities: frozenset[Identity]
    missing_claim: int | None
    """The index of the first volume whose claim does not exist."""
    demanded_drivers: tuple[str, ...]
    """The drivers that must be installed on the node beforehand."""
    attached_by_node: Mapping[str, frozenset[Identity]]
    """The volumes that the cluster has attached to each node, used by a pod or not."""


@dataclass(frozen=True, slots=True)
class Excess:
    """By how much a node would exceed its limit of one driver, and how much it has attached now."""

    driver: str
    count: int
    attached: int


class NodeVolumeLimits(PreFilter):
    depends_on = Depends.NODE | Depends.RELATED | Depends.PODS
    helped_by = Change.NODE | Change.POD_GONE | Change.RELATED
    skip_is_settled = True
    reason = "node(s) exceed max volume count"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._drivers = Interner()

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> WantedVolumes | Skip:
        if not any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.spec.volumes or ()):
            return SKIP
        related = cluster.related
        identities = frozenset(attachable_volumes(pod.sample, related))
        missing = _missing_claim(pod.sample, related)
        if missing is None and not identities:
            return SKIP
        drivers = sorted({driver for driver, _, _ in identities})
        demanded = (
            driver
            for driver in drivers
            if driver in related.csi_drivers and related.csi_drivers[driver].spec.prevent_pod_scheduling_if_missing
        )
        return WantedVolumes(cluster, identities, missing, tuple(demanded), _attached_by_node(related, set(drivers)))

    def filter(self, pod: Shape, nodes: NodeRows, prepared: WantedVolumes) -> Codes:
        if prepared.missing_claim is not None:
            return np.full(len(nodes), NO_CLAIM | prepared.missing_claim << 2, np.int64)
        codes = np.zeros(len(nodes), np.int64)
        for position, (row, name) in enumerate(zip(nodes.index.tolist(), nodes.names, strict=True)):
            csi_node = prepared.cluster.related.csi_nodes.get(name)
            absent = _absent_driver(csi_node, prepared.demanded_drivers)
            if absent is not None:
                codes[position] = NO_DRIVER | self._drivers.code(absent) << 2
            elif _excesses(prepared, csi_node, row, name):
                codes[position] = TOO_MANY
        return codes

    def rejection(self, pod: Shape, code: int) -> Rejection:
        if code == TOO_MANY:
            return Rejection((self.reason,))
        if code & 3 == NO_DRIVER:
            return Rejection((f"{self._drivers.values[code >> 2]} CSI driver is not installed on the node",))
        name = claim_name(pod.sample, (pod.spec.volumes or ())[code >> 2]) or ""
        looked_up = f"looking up PVC {pod.namespace}/{name}: {not_found(CLAIM, name)}"
        return Rejection((looked_up,), unresolvable=True)

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: WantedVolumes) -> Iterator[tuple[str, NDArray[np.intp]]]:
        if prepared.missing_claim is not None:
            return
        opened: dict[str, list[int]] = {}
        for position, (row, name) in enumerate(zip(nodes.index.tolist(), nodes.names, strict=True)):
            csi_node = prepared.cluster.related.csi_nodes.get(name)
            if _absent_driver(csi_node, prepared.demanded_drivers) is not None:
                continue
            excesses = _excesses(prepared, csi_node, row, name)
            if len(excesses) == 1 and excesses[0].count <= excesses[0].attached:
                count, driver = excesses[0].count, excesses[0].driver
                noun = "volume" if count == 1 else "volumes"
                opened.setdefault(f"detach {count} {noun} of {driver} from the node", []).append(position)
        for change, positions in opened.items():
            yield change, np.array(positions, np.intp)


def attachable_volumes(pod: Pod, related: RelatedView) -> Iterator[Identity]:
    """The volumes that a CSI driver has to attach for a pod, as far as their claims are known."""
    for volume in pod.spec.volumes or ():
        name = claim_name(pod, volume)
        claim = related.persistent_volume_claims.get(f"{pod.metadata.namespace}/{name}") if name else None
        if claim is None or (volume.ephemeral is not None and not is_made_for(claim, pod)):
            continue
        identity = _identity(claim, related)
        if identity is not None:
            yield identity


def _identity(claim: PersistentVolumeClaim, related: RelatedView) -> Identity | None:
    volume = related.persistent_volumes.get(claim.spec.volume_name)
    if volume is not None:
        csi = volume.spec.csi
        return (csi.driver, csi.volume_handle, "") if csi and csi.driver and csi.volume_handle else None
    storage_class = related.storage_classes.get(class_of(claim))
    if storage_class is None or not storage_class.provisioner:
        return None
    return storage_class.provisioner, "", claim_key(claim)


def _missing_claim(pod: Pod, related: RelatedView) -> int | None:
    for index, volume in enumerate(pod.spec.volumes or ()):
        name = claim_name(pod, volume)
        if name is not None and f"{pod.metadata.namespace}/{name}" not in related.persistent_volume_claims:
            return index
    return None


def _attached_by_node(related: RelatedView, drivers: set[str]) -> dict[str, frozenset[Identity]]:
    found: dict[str, set[Identity]] = {}
    for attachment in related.volume_attachments.values():
        spec = attachment.spec
        volume = related.persistent_volumes.get(spec.source.persistent_volume_name)
        if spec.attacher in drivers and volume is not None and volume.spec.csi is not None:
            found.setdefault(spec.node_name, set()).add((spec.attacher, volume.spec.csi.volume_handle, ""))
    return {name: frozenset(identities) for name, identities in found.items()}


def _absent_driver(csi_node: CsiNode | None, demanded: tuple[str, ...]) -> str | None:
    installed = {driver.name for driver in csi_node.spec.drivers} if csi_node is not None and demanded else set()
    return next((driver for driver in demanded if driver not in installed), None)


def _excesses(wanted: WantedVolumes, csi_node: CsiNode | None, row: int, name: str) -> list[Excess]:
    """The drivers of the pod's volumes of which the node would have more than its limit."""
    limits = {
        driver.name: driver.allocatable.count
        for driver in (csi_node.spec.drivers if csi_node is not None else ())
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    if not any(driver in limits for driver, _, _ in wanted.identities):
        return []
    in_use = _in_use(wanted.cluster, row)
    new = Counter(driver for driver, _, _ in wanted.identities - in_use)
    # An attachment that no pod uses counts even if this pod wants the very volume, as it does in kube-scheduler.
    attached = Counter(driver for driver, _, _ in in_use | wanted.attached_by_node.get(name, frozenset()))
    return [
        Excess(driver, attached[driver] + count - limits[driver], attached[driver])
        for driver, count in sorted(new.items())
        if driver in limits and attached[driver] + count > limits[driver]
    ]


def _in_use(cluster: ClusterView, row: int) -> set[Identity]:
    in_use: set[Identity] = set()
    for pod in cluster.pods_on(row):
        if pod.shape.has_volumes:
            in_use.update(attachable_volumes(pod.pod, cluster.related))
    return in_use
