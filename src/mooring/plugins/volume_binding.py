"""The volumes of a pod's claims: those it has must be reachable, those it lacks must be found or made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import SKIP, Change, Codes, Depends, Mask, PreFilter, PreScore, Reserve, Scores, Skip
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import KubeObject
from mooring.model.api.pods import Pod
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.defaults import BIND_COMPLETED
from mooring.model.events import Event
from mooring.plugins.resource_scoring import Problem, ShapeFunction, UtilizationPoint, round_half_up, validate_shape
from mooring.plugins.volume_claims import CLAIM, claim_name, class_of, is_made_for, not_found, waits_for_consumer
from mooring.plugins.volume_matching import (
    BIND_CONFLICT,
    NO_SPACE,
    NO_VOLUME,
    NODE_CONFLICT,
    NONE,
    BoundVolume,
    Matches,
    UnboundClaim,
    bound_volume,
    match_bound,
    match_claims,
    unbound_claim,
)
from mooring.plugins.volume_reservation import release_volumes, reserve_volumes
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView, RelatedView

REASONS = {
    NODE_CONFLICT: "node(s) didn't match PersistentVolume's node affinity",
    BIND_CONFLICT: "node(s) didn't find available persistent volumes to bind",
    NO_SPACE: "node(s) did not have enough free storage",
    NO_VOLUME: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class VolumeBindingArgs(KubeObject, forbid_unknown_fields=True):
    """VolumeBindingArgs of KubeSchedulerConfiguration."""

    api_version: str = ""
    kind: str = ""
    bind_timeout_seconds: int = 600
    shape: list[UtilizationPoint] = msgspec.field(
        default_factory=lambda: [UtilizationPoint(utilization=0, score=10), UtilizationPoint(utilization=100, score=0)]
    )

    def validate(self) -> Iterator[Problem]:
        if self.bind_timeout_seconds < 0:
            yield "bindTimeoutSeconds", "0 or more", str(self.bind_timeout_seconds)
        yield from validate_shape(self.shape, "shape")


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims, as far as they do not depend on the node."""

    bound: tuple[BoundVolume, ...]
    unbound: tuple[UnboundClaim, ...]


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """What has to happen to a pod's claims once it has its node."""

    bind: tuple[tuple[str, str], ...]
    """(claim, volume): the volume's claimRef is to name the claim."""
    provision: tuple[str, ...]
    """Claims whose selected-node annotation is to name the node."""


class VolumeBinding(PreFilter, PreScore, Reserve):
    depends_on = Depends.NODE | Depends.RELATED
    helped_by = Change.NODE | Change.RELATED
    args_type = VolumeBindingArgs
    skip_is_settled = True
    reads = frozenset(("volumes",))
    unresolvable = True

    def __init__(self, args: VolumeBindingArgs | None = None) -> None:
        super().__init__(args)
        self._score_of_use = ShapeFunction(self.args.shape)

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> PodClaims | Skip | Rejection:
        return gather_claims(pod.sample, cluster.related)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: PodClaims) -> Codes:
        codes = match_bound(nodes, prepared.bound)
        return codes | match_claims(nodes, prepared.unbound).codes if prepared.unbound else codes

    def rejection(self, pod: Shape, code: int) -> Rejection:
        return Rejection(tuple(reason for bit, reason in REASONS.items() if code & bit), unresolvable=True)

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> PodClaims | None:
        """Never SKIP: kube-scheduler scores also pods without claims, all nodes with 0."""
        claims = gather_claims(pod.sample, cluster.related)
        return claims if isinstance(claims, PodClaims) and claims.unbound else None

    def score(self, pod: Shape, nodes: NodeRows, prepared: PodClaims | None) -> Scores:
        if prepared is None:
            return np.zeros(len(nodes), np.int64)
        use = _storage_use(match_claims(nodes, prepared.unbound), len(nodes))
        total = np.zeros(len(nodes), np.int64)
        count = np.zeros(len(nodes), np.int64)
        for of_class in use.values():
            total += np.where(of_class.is_used, self._score_of_use.of_ratio(of_class.requested, of_class.capacity), 0)
            count += of_class.is_used
        return round_half_up(total / np.maximum(count, 1))

    def applies_to(self, pod: Shape) -> bool:
        return any(claim_name(pod.sample, volume) is not None for volume in pod.spec.volumes or ())

    def reserve(self, pod: PodView, cluster: ClusterView, row: int) -> Sequence[Event]:
        """Let the claims have their volumes, so that the next pod finds them taken."""
        planned = self.plan(pod.prepared, cluster, row)
        node = cluster.node_name(row)
        made = reserve_volumes(cluster.related, pod.key, node, bind=planned.bind, provision=planned.provision)
        return list(made)

    def unreserve(self, pod: PodView, cluster: ClusterView, row: int) -> Sequence[Event]:
        names = [claim_name(pod.pod, volume) for volume in pod.pod.spec.volumes or ()]
        claims = [f"{pod.pod.metadata.namespace}/{name}" for name in names if name is not None]
        return list(release_volumes(cluster.related, pod.key, claims))

    def plan(self, claims: PodClaims | None, cluster: ClusterView, row: int) -> VolumePlan:
        """What binding a pod with these claims to this row, which it passed, asks of them."""
        if claims is None:
            return VolumePlan((), ())
        matches = match_claims(cluster.rows(np.array([row], np.intp)), claims.unbound)
        chosen = [(claim, int(index[0])) for claim, index in matches.found if index[0] != NONE]
        return VolumePlan(
            tuple((claim.key, claim.candidates[index].volume) for claim, index in chosen),
            tuple(claim.key for claim, wanted, _ in matches.made if wanted[0]),
        )

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: PodClaims) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """One volume opens the nodes on which everything but that volume's claim is in order."""
        unbound = match_claims(nodes, prepared.unbound)
        for volume in prepared.bound:
            others = match_bound(nodes, [other for other in prepared.bound if other is not volume])
            failed = match_bound(nodes, [volume]) != 0
            positions = np.flatnonzero(failed & (others == 0) & (unbound.codes == 0))
            if len(positions):
                if volume.exists:
                    yield f"make volume {volume.volume} of claim {volume.claim} reachable from the node", positions
                else:
                    yield f"create volume {volume.volume}, to which claim {volume.claim} is bound", positions
        bound = match_bound(nodes, prepared.bound)
        for claim in prepared.unbound:
            without = match_claims(nodes, [other for other in prepared.unbound if other is not claim])
            opened = (unbound.codes != 0) & (without.codes == 0) & (bound == 0)
            for change, cause in _changes(claim):
                positions = np.flatnonzero(opened & (unbound.codes == cause))
                if len(positions):
                    yield change, positions


def gather_claims(pod: Pod, related: RelatedView) -> PodClaims | Skip | Rejection:
    """Sort a pod's claims into bound and not yet bound; refuse it if one of them cannot be used at all."""
    claims: list[PersistentVolumeClaim] = []
    for volume in pod.spec.volumes or ():
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim = related.persistent_volume_claims.get(f"{pod.metadata.namespace}/{name}")
        fault = _fault(claim, name, pod, is_ephemeral=volume.persistent_volume_claim is None)
        if claim is None or fault:
            return Rejection((fault,), unresolvable=True)
        claims.append(claim)
    if not claims:
        return SKIP
    bound, unbound = list[BoundVolume](), list[UnboundClaim]()
    for claim in claims:
        if claim.spec.volume_name and BIND_COMPLETED in (claim.metadata.annotations or {}):
            bound.append(bound_volume(claim, related))
            continue
        storage_class = related.storage_classes.get(class_of(claim))
        # Who names a volume wants it bound by the volume controller, whatever the class says.
        if storage_class is None or claim.spec.volume_name or not waits_for_consumer(storage_class):
            return Rejection(("pod has unbound immediate PersistentVolumeClaims",), unresolvable=True)
        unbound.append(unbound_claim(claim, storage_class, related))
    return PodClaims(tuple(bound), tuple(unbound))


def _fault(claim: PersistentVolumeClaim | None, name: str, pod: Pod, *, is_ephemeral: bool) -> str:
    if claim is None:
        if is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return not_found(CLAIM, name)
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if is_ephemeral and not is_made_for(claim, pod):
        key = f"{claim.metadata.namespace}/{name}"
        return f"PVC {key} was not created for pod {pod.key} (pod is not owner)"
    return ""


@dataclass(frozen=True, slots=True)
class StorageUse:
    """How much of a class's storage a pod would use on each row, and of how much."""

    is_used: Mask
    requested: NDArray[np.int64]
    capacity: NDArray[np.int64]


def _storage_use(matches: Matches, row_count: int) -> dict[str, StorageUse]:
    """Where volumes were found, they are what counts; else the pools from which volumes would be made."""
    use: dict[str, StorageUse] = {}

    def of_class(name: str) -> StorageUse:
        if name not in use:
            zeros = np.zeros(row_count, np.int64)
            use[name] = StorageUse(np.zeros(row_count, np.bool_), zeros, zeros.copy())
        return use[name]

    has_found = np.zeros(row_count, np.bool_)
    for claim, chosen in matches.found:
        rows = chosen != NONE
        found = of_class(claim.class_name)
        found.is_used[rows] = True
        found.requested[rows] += claim.size_bytes
        found.capacity[rows] += np.array([c.capacity_bytes for c in claim.candidates], np.int64)[chosen[rows]]
        has_found |= rows
    for claim, wanted, pool_of_row in matches.made:
        pools = claim.provisioning.pools if claim.provisioning is not None else None
        if pools is None:
            continue
        rows = wanted & ~has_found
        made = of_class(claim.class_name)
        made.is_used[rows] = True
        made.requested[rows] += claim.size_bytes
        made.capacity[rows] = np.array([pool.capacity_bytes for pool in pools], np.int64)[pool_of_row[rows]]
    return use


def _changes(claim: UnboundClaim) -> Iterator[tuple[str, int]]:
    """What would help a claim alone, with the kind of refusal that it helps against."""
    wanted = f"{claim.size_text} of class {claim.class_name}, reachable from the node, for claim {claim.key}"
    if claim.selected_node is None:
        yield f"create a volume with {wanted}", BIND_CONFLICT
    yield f"free storage for {wanted}", NO_SPACE
