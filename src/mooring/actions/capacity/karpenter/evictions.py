"""Which pods may be evicted, at which cost, and which of them come back and need a place."""

from collections.abc import Iterable
from contextlib import suppress

from mooring.actions.capacity.karpenter.situation import Situation
from mooring.actions.capacity.karpenter.snapshot import is_owned_by
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.capacity.labels import DISRUPTED, DISRUPTION_COST, DO_NOT_DISRUPT, POD_DELETION_COST
from mooring.model.values.durations import parse_duration
from mooring.model.values.selectors import Selector, compile_label_selector
from mooring.model.values.tolerations import is_tolerated

_DELETION_COST_UNIT = 2.0**27
_PRIORITY_UNIT = 2.0**25
_LARGEST_COST = 10.0


def eviction_cost(pod: Pod) -> float:
    """What it costs to evict a pod: 1 for one that says nothing of itself."""
    cost = 1.0
    annotations = pod.metadata.annotations or {}
    text = annotations.get(DISRUPTION_COST, annotations.get(POD_DELETION_COST))
    if text is not None:
        with suppress(ValueError):
            cost += float(text) / _DELETION_COST_UNIT
    if pod.spec.priority is not None:
        cost += pod.spec.priority / _PRIORITY_UNIT
    return min(max(cost, -_LARGEST_COST), _LARGEST_COST)


def is_active(pod: Pod) -> bool:
    return not pod.is_terminal and pod.metadata.deletion_timestamp is None


def is_reschedulable(pod: Pod) -> bool:
    """Tell whether a pod, once evicted, will need a place elsewhere."""
    is_leaving_set = pod.metadata.deletion_timestamp is not None and is_owned_by(pod, "apps/v1", "StatefulSet")
    return (
        (is_active(pod) or is_leaving_set)
        and not is_owned_by(pod, "apps/v1", "DaemonSet")
        and not is_owned_by(pod, "v1", "Node")
    )


class Evictions:
    """The disruption budgets and annotations of one situation."""

    def __init__(self, situation: Situation) -> None:
        self._now = situation.now
        self._budgets: dict[str, list[tuple[Selector, PodDisruptionBudget]]] = {}
        for budget in situation.budgets:
            selector = compile_label_selector(budget.spec.selector)
            self._budgets.setdefault(budget.metadata.namespace, []).append((selector, budget))

    def is_protected(self, pod: Pod) -> bool:
        """Tell whether a pod's annotation forbids to disrupt it, for good or for a while after it started."""
        text = (pod.metadata.annotations or {}).get(DO_NOT_DISRUPT)
        if text is None:
            return False
        if text == "true":
            return True
        duration = parse_duration(text)
        if not duration:
            return False
        start = timestamp_seconds(pod.status.start_time)
        return start is None or self._now - start < duration

    def is_disruptable(self, pod: Pod) -> bool:
        return not is_active(pod) or not self.is_protected(pod)

    def _is_evictable(self, pod: Pod) -> bool:
        """Tell whether a pod is evicted at all when its node goes."""
        return (
            is_active(pod)
            and not is_tolerated(pod.spec.tolerations or (), DISRUPTED)
            and not is_owned_by(pod, "v1", "Node")
            and not self.is_protected(pod)
        )

    def _blockers(self, pod: Pod) -> list[PodDisruptionBudget]:
        if not self._is_evictable(pod):
            return []
        labels = pod.metadata.labels or {}
        found = [
            budget for selector, budget in self._budgets.get(pod.metadata.namespace, ()) if selector.matches(labels)
        ]
        if len(found) == 1 and found[0].spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
            conditions = pod.status.conditions or ()
            if any(each.type == "Ready" and each.status == "False" for each in conditions):
                return []
        return found

    def can_evict(self, pods: Iterable[Pod]) -> bool:
        """Tell whether budgets let each of these pods go; the eviction API refuses pods that have two budgets."""
        for pod in pods:
            found = self._blockers(pod)
            if len(found) > 1:
                return False
            if any(budget.status is None or budget.status.disruptions_allowed == 0 for budget in found):
                return False
        return True

    def is_currently_reschedulable(self, pod: Pod) -> bool:
        """Tell whether a pod moves when its node goes: nothing blocks it for good."""
        if not is_reschedulable(pod) or not self.is_disruptable(pod):
            return False
        found = self._blockers(pod)
        return len(found) <= 1 and not any(_blocks_for_good(budget) for budget in found)


def _blocks_for_good(budget: PodDisruptionBudget) -> bool:
    return budget.spec.max_unavailable in (0, "0%") or budget.spec.min_available == "100%"
