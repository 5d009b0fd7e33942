"""Nodes that are not what their pool asks for any more, and nodes that have lived long enough."""

from mooring.actions.capacity.karpenter.candidates import Candidate, budgets_left
from mooring.actions.capacity.karpenter.consolidation import Command, Consolidation
from mooring.actions.capacity.karpenter.snapshot import Snapshot
from mooring.model.api.karpenter import DRIFTED, NEVER, NodeClaim, NodePool
from mooring.model.api.meta import timestamp_seconds
from mooring.model.capacity.instance_types import InstanceType
from mooring.model.capacity.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
    ON_DEMAND,
    RESERVATION_ID,
    RESERVED,
    WELL_KNOWN,
)
from mooring.model.capacity.requirements import from_labels, from_selector, is_in
from mooring.model.values.durations import parse_duration

NODE_POOL_DRIFTED = "NodePoolDrifted"
REQUIREMENTS_DRIFTED = "RequirementsDrifted"
INSTANCE_TYPE_NOT_FOUND = "InstanceTypeNotFound"
SETTLED_SECONDS = 3600.0
"""Before that, a type that is not in the catalogue may be missing only for a moment."""


def drift_reason(pool: NodePool, claim: NodeClaim, types: dict[str, InstanceType], now: float) -> str | None:
    """Why a claim is not what its pool would launch now; None if it is, or was not launched yet."""
    if not claim.is_true("Launched"):
        return None
    given, own = pool.metadata.annotations or {}, claim.metadata.annotations or {}
    versions = {each.get(NODE_POOL_HASH_VERSION) for each in (given, own)}
    hashes = {each.get(NODE_POOL_HASH) for each in (given, own)}
    # Hashes of different versions of the template say nothing about each other.
    if len(versions) == 1 and None not in versions | hashes and len(hashes) > 1:
        return NODE_POOL_DRIFTED
    labels = from_labels(claim.metadata.labels)
    if not labels.accepts(from_selector(pool.spec.template.spec.requirements)):
        return REQUIREMENTS_DRIFTED
    created = timestamp_seconds(claim.metadata.creation_timestamp)
    if created is not None and now - created > SETTLED_SECONDS and not _is_offered(claim, types):
        return INSTANCE_TYPE_NOT_FOUND
    return None


def _is_offered(claim: NodeClaim, types: dict[str, InstanceType]) -> bool:
    labels = claim.metadata.labels or {}
    instance_type = types.get(labels.get(INSTANCE_TYPE, ""))
    if instance_type is None:
        return False
    required = from_labels(labels)
    if labels.get(CAPACITY_TYPE) == RESERVED:
        # When a reservation ends, its nodes go on as on-demand ones.
        required = required.replaced(CAPACITY_TYPE, is_in(RESERVED, ON_DEMAND)).without(RESERVATION_ID)
    return any(required.accepts(offering.requirements, WELL_KNOWN) for offering in instance_type.offerings)


def drifted(snapshot: Snapshot, candidates: list[Candidate]) -> list[tuple[Candidate, str]]:
    """The candidates that drifted, with the reasons: those without pods first, then the oldest."""
    types = {each.name: each for each in snapshot.columns.types}
    found = []
    for candidate in candidates:
        claim = candidate.machine.claim
        if claim is None or candidate.pool.spec.replicas is not None:
            continue
        reason = drift_reason(candidate.pool, claim, types, snapshot.situation.now)
        if reason is not None:
            found.append((candidate, reason))
    return sorted(found, key=lambda each: (bool(each[0].pods), _since(each[0])))


def _since(candidate: Candidate) -> float:
    claim = candidate.machine.claim
    condition = claim.condition(DRIFTED) if claim is not None else None
    return timestamp_seconds(condition.last_transition_time if condition is not None else None) or float("inf")


def replace_drifted(snapshot: Snapshot, methods: Consolidation) -> Command | None:
    """Replace the first drifted node whose pods all find a place, at whatever price."""
    left = budgets_left(snapshot, DRIFTED)
    for candidate, _ in drifted(snapshot, methods.all_candidates):
        if not left[candidate.pool.name]:
            continue
        placed = methods.simulate([candidate], avoids_new=False)
        if placed is not None:
            replacement = placed.new_nodes[0] if placed.new_nodes else None
            return Command((candidate,), placed, replacement)
    return None


def is_expired(claim: NodeClaim, now: float) -> bool:
    """Tell whether a claim has outlived its expireAfter; it goes then, whatever budgets say."""
    if claim.spec.expire_after == NEVER:
        return False
    lifetime = parse_duration(claim.spec.expire_after)
    created = timestamp_seconds(claim.metadata.creation_timestamp)
    return lifetime is not None and created is not None and now - created >= lifetime
