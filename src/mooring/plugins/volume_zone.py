"""A volume that is labelled with a zone or a region can be used only there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import SKIP, Change, Depends, Mask, PreFilter, Skip
from mooring.engine.verdict import Rejection
from mooring.model.api.volumes import PersistentVolume
from mooring.model.values.selectors import Requirement
from mooring.plugins.node_matching import match_requirement
from mooring.plugins.volume_claims import CLAIM, CLASS, VOLUME, class_of, named_claims, not_found, waits_for_consumer
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
SUCCESSOR = {BETA_ZONE: ZONE, BETA_REGION: REGION}
TOPOLOGY_KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)


@dataclass(frozen=True, slots=True)
class VolumeTopology:
    """One label of a volume: the zones or regions in which it is available."""

    volume: str
    key: str
    values: frozenset[str]

    def match(self, nodes: NodeRows) -> Mask:
        """Which rows are there; a node that has only the newer form of an old label is asked for that."""
        mask = match_requirement(nodes, Requirement(self.key, "In", self.values))
        newer = SUCCESSOR.get(self.key)
        if newer is not None:
            mask |= ~nodes.has_label(self.key) & match_requirement(nodes, Requirement(newer, "In", self.values))
        return mask


class VolumeZone(PreFilter):
    depends_on = Depends.NODE | Depends.RELATED
    helped_by = Change.NODE | Change.RELATED
    skip_is_settled = True
    reads = frozenset(("volumes",))
    reason = "node(s) had no available volume zone"
    unresolvable = True

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> list[VolumeTopology] | Skip | Rejection:
        related = cluster.related
        topologies: list[VolumeTopology] = []
        for name, claim in named_claims(pod.sample, related.persistent_volume_claims):
            if not name:
                return _refused("PersistentVolumeClaim had no name")
            if claim is None:
                return _refused(not_found(CLAIM, name))
            volume_name = claim.spec.volume_name
            if not volume_name:
                class_name = class_of(claim)
                if not class_name:
                    return _refused("PersistentVolumeClaim had no pv name and storageClass name")
                storage_class = related.storage_classes.get(class_name)
                if storage_class is None:
                    return _refused(not_found(CLASS, class_name))
                if not waits_for_consumer(storage_class):
                    return _refused("PersistentVolume had no name")
                continue
            volume = related.persistent_volumes.get(volume_name)
            if volume is None:
                return _refused(not_found(VOLUME, volume_name))
            topologies += volume_topologies(volume)
        return topologies or SKIP

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Sequence[VolumeTopology]) -> Mask:
        mask = np.ones(len(nodes), np.bool_)
        for topology in prepared:
            mask &= topology.match(nodes)
        return mask | _is_nowhere(nodes)

    def remedies(
        self, pod: Shape, nodes: NodeRows, prepared: Sequence[VolumeTopology]
    ) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """Moving one volume opens the nodes on which only that volume is in the way."""
        is_nowhere = _is_nowhere(nodes)
        missed_by: dict[str, Mask] = {}
        for topology in prepared:
            missed = ~topology.match(nodes) & ~is_nowhere
            missed_by[topology.volume] = missed_by.get(topology.volume, False) | missed
        single = np.sum(list(missed_by.values()), axis=0) == 1
        for volume, missed in missed_by.items():
            positions = np.flatnonzero(missed & single)
            if len(positions):
                where = sorted({v for t in prepared if t.volume == volume for v in t.values})
                yield f"move volume {volume} from {', '.join(where)} to where the node is", positions


def volume_topologies(volume: PersistentVolume) -> Iterator[VolumeTopology]:
    """The zones and regions that a volume's labels name, several separated by `__`; an empty name voids a label."""
    labels = volume.metadata.labels or {}
    for key in TOPOLOGY_KEYS:
        values = [value.strip() for value in labels.get(key, "").split("__")]
        if all(values):
            yield VolumeTopology(volume.metadata.name, key, frozenset(values))


def _is_nowhere(nodes: NodeRows) -> Mask:
    """Nodes without any such label: a cluster in one place, where every volume is available."""
    mask = np.ones(len(nodes), np.bool_)
    for key in TOPOLOGY_KEYS:
        mask &= ~nodes.has_label(key)
    return mask


def _refused(reason: str) -> Rejection:
    return Rejection((reason,), unresolvable=True)
