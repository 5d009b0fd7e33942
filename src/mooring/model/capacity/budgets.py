"""How many nodes of a pool may be disrupted now, by its budgets."""

from mooring.model.api.karpenter import Budget, NodePool
from mooring.model.capacity.cron import is_open

NO_LIMIT = 2**31 - 1


def allowed_disruptions(pool: NodePool, nodes: int, reason: str, now_seconds: float) -> int:
    """The smallest of the active budgets that name the reason, or no reason; zero if one of them cannot be read."""
    allowed = NO_LIMIT
    for budget in pool.spec.disruption.budgets:
        found = _allowed(budget, nodes, now_seconds)
        if found is None:
            return 0
        if budget.reasons is None or reason in budget.reasons:
            allowed = min(allowed, found)
    return allowed


def _allowed(budget: Budget, nodes: int, now_seconds: float) -> int | None:
    if budget.schedule is not None or budget.duration is not None:
        is_active = is_open(budget.schedule or "", budget.duration or "0s", now_seconds)
        if is_active is None:
            return None
        if not is_active:
            return NO_LIMIT
    return scaled_count(budget.nodes, nodes)


def scaled_count(given: str | int, nodes: int) -> int | None:
    """A number of nodes, or a percentage of them rounded up; None if it is neither."""
    text = str(given)
    percent = text.removesuffix("%")
    if not (percent.isascii() and percent.isdigit()):
        return None
    return -(-int(percent) * nodes // 100) if text.endswith("%") else int(text)
