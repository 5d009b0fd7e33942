"""Why a workload waits, in Kueue's words: the reason of its QuotaReserved condition, and the message.

Messages are made when somebody asks for them. Most of what is found out in a cycle, nobody does.
"""

from typing import NamedTuple

from mooring.model.values.requests import CPU, EPHEMERAL_STORAGE, MEMORY

_BINARY = (("Ei", 1 << 60), ("Pi", 1 << 50), ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_DECIMAL = (("E", 10**18), ("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))

PENDING_EVALUATION = "PendingEvaluation"
WAITING_FOR_QUOTA = "WaitingForQuota"
WAITING_FOR_PREEMPTED_WORKLOADS = "WaitingForPreemptedWorkloads"
WAITING_FOR_PODS_READY = "WaitingForPodsReady"
WAITING_FOR_PLACEMENT = "WaitingForPlacement"
MISCONFIGURED = "Misconfigured"
SUSPENDED = "Suspended"
ADMISSION_GATED = "AdmissionGated"

NO_FLAVORS = "couldn't assign flavors"
NAMESPACE_MISMATCH = "Workload namespace doesn't match ClusterQueue selector"
NO_LONGER_FITS = "Workload no longer fits after processing another workload"
OVERLAPPING_TARGETS = "Workload has overlapping preemption targets with another workload"
PODS_NOT_READY = "waiting for all admitted workloads to be in PodsReady condition"


class Shortage(NamedTuple):
    """Quota that is there, and in use."""

    resource: str
    flavor: str
    missing: int

    def __str__(self) -> str:
        missing = quantity_text(self.resource, self.missing)
        return f"insufficient unused quota for {self.resource} in flavor {self.flavor}, {missing} more needed"


class TooMuch(NamedTuple):
    """More than there could ever be."""

    resource: str
    flavor: str
    before: int
    """What the pod sets before this one asked for."""
    wanted: int
    most: int

    def __str__(self) -> str:
        before, wanted, most = (
            quantity_text(self.resource, amount) for amount in (self.before, self.wanted, self.most)
        )
        return (
            f"insufficient quota for {self.resource} in flavor {self.flavor}, previously considered podsets requests "
            f"({before}) + current podset request ({wanted}) > maximum capacity ({most})"
        )


Note = Shortage | TooMuch | str
"""One thing that stands in the way of a pod set."""


def pod_sets_message(notes: list[tuple[str, list[Note]]]) -> str:
    """What stands in the way of each pod set, by its name."""
    return "; ".join(
        f"{NO_FLAVORS} to pod set {name}: {', '.join(sorted({str(note) for note in found}))}" for name, found in notes
    )


def quantity_text(resource: str, amount: int) -> str:
    """An amount in column units as Kubernetes writes it: the largest unit of which it is a whole number.

    >>> quantity_text("cpu", 1500), quantity_text("cpu", 2000), quantity_text("memory", 3 << 30)
    ('1500m', '2', '3Gi')
    >>> quantity_text("nvidia.com/gpu", 8), quantity_text("pods", 2000), quantity_text("memory", 1000)
    ('8', '2k', '1000')
    """
    if resource == CPU:
        if amount % 1000:
            return f"{amount}m"
        amount //= 1000
    is_binary = resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-")
    for suffix, unit in _BINARY if is_binary else _DECIMAL:
        if amount and amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return str(amount)
