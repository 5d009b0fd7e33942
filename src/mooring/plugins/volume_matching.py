"""Finding volumes for claims that wait for their pod: volumes that exist first, then volumes to be made.

What does not depend on the node is settled once for a pod (`unbound_claim`); the rest is asked of many rows at once
(`match_claims`): per claim and candidate one pass over the rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import Codes, Mask
from mooring.model.api.meta import NodeSelector, QuantityText, Resources
from mooring.model.api.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.model.values.quantity import Nanos, parse_quantity, to_units
from mooring.model.values.selectors import (
    NodeTerm,
    Requirement,
    Selector,
    compile_label_selector,
    compile_node_selector,
    make_selector,
)
from mooring.plugins.node_matching import match_selector, match_terms
from mooring.plugins.volume_claims import claim_key, class_of
from mooring.state.rows import NodeRows
from mooring.state.views import RelatedView

NODE_CONFLICT, BIND_CONFLICT, NO_SPACE, NO_VOLUME = 1, 2, 4, 8
"""The bits of a refusal."""
NONE = -1
"""Instead of a candidate's index: none was found."""

SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
STORAGE = "storage"

Terms = tuple[NodeTerm, ...]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A volume that a claim could be bound to, if the node can reach it."""

    volume: str
    capacity_bytes: int
    reachable_from: Terms | None
    """Any of these terms; None for every node."""
    is_prebound: bool
    """Made for this claim: it gets this volume or none."""


@dataclass(frozen=True, slots=True)
class StoragePool:
    """A CSIStorageCapacity in which a claim's volume would fit, and the nodes that can reach it."""

    capacity_bytes: int
    reachable_from: Selector


@dataclass(frozen=True, slots=True)
class Provisioning:
    """How a class makes volumes."""

    topologies: tuple[Selector, ...] | None
    """Where: any of these; None for everywhere."""
    pools: tuple[StoragePool, ...] | None
    """In which pools this claim fits; None where the driver does not say what it has left."""


@dataclass(frozen=True, slots=True)
class UnboundClaim:
    """A claim that is bound when its pod has a node."""

    key: str
    class_name: str
    size: Nanos
    size_text: QuantityText
    selected_node: str | None
    """The node for which a volume is being made already."""
    candidates: tuple[Candidate, ...]
    """The best first: made for the claim, then the smallest."""
    provisioning: Provisioning | None
    """None if the class makes no volumes."""

    @property
    def size_bytes(self) -> int:
        return to_units(self.size)


@dataclass(frozen=True, slots=True)
class BoundVolume:
    """The volume that a claim is bound to already."""

    volume: str
    claim: str
    exists: bool
    reachable_from: Terms | None


@dataclass(frozen=True, slots=True)
class Matches:
    """What became of each claim, row by row."""

    codes: Codes
    found: list[tuple[UnboundClaim, Indices]]
    """Claims with the index of the candidate chosen on each row, or NONE."""
    made: list[tuple[UnboundClaim, Mask, Indices]]
    """Claims, the rows on which a volume would be made, and the index of the pool it would come from, or NONE."""


# What does not depend on the node.


def reachability(volume: PersistentVolume) -> Terms | None:
    affinity = volume.spec.node_affinity
    required: NodeSelector | None = affinity.required if affinity is not None else None
    if required is None:
        return None
    # Only labels count: kube-scheduler matches volumes against a node without a name, which skips matchFields.
    return tuple(NodeTerm(term.labels, is_empty=term.is_empty) for term in compile_node_selector(required))


def bound_volume(claim: PersistentVolumeClaim, related: RelatedView) -> BoundVolume:
    name = claim.spec.volume_name
    volume = related.persistent_volumes.get(name)
    terms = reachability(volume) if volume is not None else None
    return BoundVolume(name, claim_key(claim), volume is not None, terms)


def unbound_claim(claim: PersistentVolumeClaim, storage_class: StorageClass, related: RelatedView) -> UnboundClaim:
    class_name = class_of(claim)
    requests = claim.spec.resources.requests if claim.spec.resources is not None else None
    return UnboundClaim(
        key=claim_key(claim),
        class_name=class_name,
        size=_storage(requests),
        size_text=(requests or {}).get(STORAGE, 0),
        selected_node=(claim.metadata.annotations or {}).get(SELECTED_NODE),
        candidates=_candidates(claim, class_name, _storage(requests), related.persistent_volumes.values()),
        provisioning=_provisioning(storage_class, _storage(requests), STORAGE in (requests or {}), related),
    )


def _storage(resources: Resources | None) -> Nanos:
    return parse_quantity((resources or {}).get(STORAGE, 0))


def _candidates(
    claim: PersistentVolumeClaim, class_name: str, size: Nanos, volumes: Iterable[PersistentVolume]
) -> tuple[Candidate, ...]:
    selector = compile_label_selector(claim.spec.selector) if claim.spec.selector is not None else Selector()
    modes = set(claim.spec.access_modes or ())
    found: list[tuple[bool, Nanos, PersistentVolume]] = []
    for volume in volumes:
        capacity = _storage(volume.spec.capacity)
        if class_of(volume) != class_name or capacity < size or not _can_serve(volume, claim):
            continue
        is_prebound = volume.spec.claim_ref is not None
        if not is_prebound:
            if volume.status.phase != "Available" or not modes.issubset(volume.spec.access_modes or ()):
                continue
            if not selector.matches(volume.metadata.labels or {}):
                continue
        found.append((is_prebound, capacity, volume))
    found.sort(key=lambda item: (not item[0], item[1], item[2].metadata.name))
    return tuple(
        Candidate(volume.metadata.name, to_units(capacity), reachability(volume), is_prebound)
        for is_prebound, capacity, volume in found
    )


def _can_serve(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """What is asked even of a volume that was made for the claim."""
    owner, spec = volume.spec.claim_ref, claim.spec
    if owner is not None:
        if (owner.namespace, owner.name) != (claim.metadata.namespace, claim.metadata.name):
            return False
        if owner.uid and owner.uid != claim.metadata.uid:
            return False
    return (
        volume.metadata.deletion_timestamp is None
        and (spec.volume_mode or "Filesystem") == (volume.spec.volume_mode or "Filesystem")
        and (spec.volume_attributes_class_name or "") == (volume.spec.volume_attributes_class_name or "")
    )


def _provisioning(
    storage_class: StorageClass, size: Nanos, has_size: bool, related: RelatedView
) -> Provisioning | None:
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return None
    topologies: tuple[Selector, ...] | None = None
    if storage_class.allowed_topologies:
        topologies = tuple(
            make_selector(Requirement(label.key, "In", frozenset(label.values)) for label in labels)
            for labels in (term.match_label_expressions for term in storage_class.allowed_topologies)
            if labels
        )
    driver = related.csi_drivers.get(storage_class.provisioner)
    is_limited = has_size and driver is not None and driver.spec.storage_capacity
    return Provisioning(topologies, _pools(storage_class.metadata.name, size, related) if is_limited else None)


def _pools(class_name: str, size: Nanos, related: RelatedView) -> tuple[StoragePool, ...]:
    pools: list[StoragePool] = []
    for _, capacity in sorted(related.csi_storage_capacities.items()):
        limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
        if capacity.storage_class_name != class_name or limit is None or capacity.node_topology is None:
            continue
        if to_units(parse_quantity(limit)) >= to_units(size):
            total = to_units(parse_quantity(capacity.capacity if capacity.capacity is not None else 0))
            pools.append(StoragePool(total, compile_label_selector(capacity.node_topology)))
    return tuple(pools)


# What does.


def match_bound(nodes: NodeRows, volumes: Sequence[BoundVolume]) -> Codes:
    """Check the volumes that claims are bound to; the first one in the way gives a row's reason."""
    codes = np.zeros(len(nodes), np.int64)
    for volume in volumes:
        if not volume.exists:
            codes[codes == 0] = NO_VOLUME
        elif volume.reachable_from is not None:
            codes[(codes == 0) & ~match_terms(nodes, volume.reachable_from)] = NODE_CONFLICT
    return codes


def match_claims(nodes: NodeRows, claims: Sequence[UnboundClaim]) -> Matches:
    """Choose a volume for each claim on each row: the smallest claim first, and no volume twice on a row."""
    selected = [claim for claim in claims if claim.selected_node is not None]
    searching = sorted((claim for claim in claims if claim.selected_node is None), key=lambda claim: claim.size)
    is_open = np.ones(len(nodes), np.bool_)
    for claim in selected:
        is_open &= nodes.index == nodes.row_of(claim.selected_node or "")
    matches = Matches(np.where(is_open, 0, BIND_CONFLICT).astype(np.int64), [], [])
    taken: dict[str, Mask] = {}
    reached: dict[Terms, Mask] = {}
    for claim in searching:
        matches.found.append((claim, _choose(nodes, claim, taken, reached)))
    to_make = [(claim, is_open) for claim in selected]
    to_make += [(claim, is_open & (chosen == NONE)) for claim, chosen in matches.found]
    for claim, wanted in to_make:
        _make(nodes, claim, wanted & (matches.codes == 0), matches)
    return matches


def _choose(nodes: NodeRows, claim: UnboundClaim, taken: dict[str, Mask], reached: dict[Terms, Mask]) -> Indices:
    chosen = np.full(len(nodes), NONE, np.intp)
    undecided = np.ones(len(nodes), np.bool_)
    for index, candidate in enumerate(claim.candidates):
        free = undecided.copy()
        if candidate.volume in taken:
            free &= ~taken[candidate.volume]
        match = free
        if candidate.reachable_from is not None:
            if candidate.reachable_from not in reached:
                reached[candidate.reachable_from] = match_terms(nodes, candidate.reachable_from)
            match = free & reached[candidate.reachable_from]
        chosen[match] = index
        taken[candidate.volume] = taken[candidate.volume] | match if candidate.volume in taken else match
        undecided &= ~(free if candidate.is_prebound else match)
        if not undecided.any():
            break
    return chosen


def _make(nodes: NodeRows, claim: UnboundClaim, wanted: Mask, matches: Matches) -> None:
    """Let a volume be made for a claim on the wanted rows, or write down why it cannot."""
    provisioning = claim.provisioning
    if provisioning is None:
        matches.codes[wanted] = BIND_CONFLICT
        return
    if provisioning.topologies is not None and wanted.any():
        allowed = np.zeros(len(nodes), np.bool_)
        for topology in provisioning.topologies:
            allowed |= match_selector(nodes, topology)
        matches.codes[wanted & ~allowed] = BIND_CONFLICT
        wanted = wanted & allowed
    pool_of_row = np.full(len(nodes), NONE, np.intp)
    if provisioning.pools is not None and wanted.any():
        for index, pool in enumerate(provisioning.pools):
            pool_of_row[(pool_of_row == NONE) & match_selector(nodes, pool.reachable_from)] = index
        matches.codes[wanted & (pool_of_row == NONE)] = NO_SPACE
        wanted = wanted & (pool_of_row != NONE)
    matches.made.append((claim, wanted, pool_of_row))
