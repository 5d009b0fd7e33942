"""For how long after a pod came or went a node is left alone."""

from mooring.model.api.karpenter import NEVER, NodeClaim, NodePool
from mooring.model.api.meta import timestamp_seconds
from mooring.model.values.durations import parse_duration


def consolidate_after(pool: NodePool) -> float | None:
    """The pool's consolidateAfter in seconds; None if nodes are never consolidated."""
    text = pool.spec.disruption.consolidate_after
    return None if text == NEVER else parse_duration(text)


def is_under_consolidate_after(pool: NodePool | None, claim: NodeClaim | None, now: float) -> bool:
    """Tell whether a node is still inside its pool's consolidateAfter window."""
    if pool is None or claim is None or not claim.is_true("Initialized"):
        return False
    window = consolidate_after(pool)
    initialized = claim.condition("Initialized")
    if not window or initialized is None:
        return False
    since = timestamp_seconds(claim.status.last_pod_event_time or initialized.last_transition_time)
    return since is not None and now - since < window


def is_consolidatable(pool: NodePool | None, claim: NodeClaim, now: float) -> bool:
    """Tell whether a claim carries the condition Consolidatable."""
    if pool is None or claim.metadata.deletion_timestamp is not None or not claim.is_true("Initialized"):
        return False
    return consolidate_after(pool) is not None and not is_under_consolidate_after(pool, claim, now)
