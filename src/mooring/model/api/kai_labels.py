"""The labels by which pods are KAI's, and say whether they may be evicted."""

from collections.abc import Mapping

from mooring.model.api.pods import PodSpec

SCHEDULER = "kai-scheduler"
QUEUE = "kai.scheduler/queue"
PREEMPTIBILITY = "kai.scheduler/preemptibility"
PREEMPTIBLE, NON_PREEMPTIBLE, SEMI_PREEMPTIBLE = "preemptible", "non-preemptible", "semi-preemptible"
PREEMPTIBILITIES = (PREEMPTIBLE, NON_PREEMPTIBLE, SEMI_PREEMPTIBLE)
_LEAST_NON_PREEMPTIBLE = 100
"""From this priority on, whoever says nothing else may not be evicted."""


def is_kai_pod(spec: PodSpec, labels: Mapping[str, str] | None) -> bool:
    return spec.scheduler_name == SCHEDULER or bool(labels and QUEUE in labels)


def may_kai_evict(preemptibility: str | None, priority: int | None) -> bool:
    """Whether a pod or group of KAI may be a victim: as it says, or else by its priority."""
    if preemptibility in PREEMPTIBILITIES:
        return preemptibility != NON_PREEMPTIBLE
    return (priority or 0) < _LEAST_NON_PREEMPTIBLE
