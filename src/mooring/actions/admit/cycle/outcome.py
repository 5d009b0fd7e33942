"""What became of an entry, in words."""

from mooring.actions.admit.cycle.nominate import Entry
from mooring.actions.admit.cycle.pending import Requeue
from mooring.actions.admit.lifecycle.conditions import (
    MISCONFIGURED,
    NAMESPACE_MISMATCH,
    WAITING_FOR_PLACEMENT,
    WAITING_FOR_PODS_READY,
    WAITING_FOR_PREEMPTED_WORKLOADS,
    WAITING_FOR_QUOTA,
    Words,
)

QUOTA_RESERVED = "QuotaReserved"


def describe(entry: Entry) -> Words:
    """The reason and the message of a workload's QuotaReserved condition after its turn."""
    message = entry.message or entry.assignment.message
    match entry.requeue:
        case None:
            return Words(QUOTA_RESERVED, f"Quota reserved in ClusterQueue {entry.queue.name}")
        case Requeue.NAMESPACE_MISMATCH:
            return Words(MISCONFIGURED, NAMESPACE_MISMATCH)
        case Requeue.PENDING_PREEMPTION if entry.victims:
            message = f"{message}. Pending the preemption of {len(entry.victims)} workload(s)"
            return Words(WAITING_FOR_PREEMPTED_WORKLOADS, message)
        case Requeue.PENDING_PREEMPTION:
            return Words(WAITING_FOR_PREEMPTED_WORKLOADS, "Pending the preemption of workloads for the sake of others")
        case Requeue.NO_FIT if entry.assignment.reason:
            return Words(entry.assignment.reason.name, message)
        case Requeue.PODS_NOT_READY:
            return Words(WAITING_FOR_PODS_READY, message)
        case Requeue.NO_PLACE:
            return Words(WAITING_FOR_PLACEMENT, message)
        case _:
            return Words(WAITING_FOR_QUOTA, message)
