"""What to do, as values: a cycle returns them and a driver carries them out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Bind:
    """Run this pod on that node."""

    pod: str
    """namespace/name"""
    node: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done for this pod now; the message says why, in kube-scheduler's words."""

    pod: str
    message: str
    plugins: tuple[str, ...] = ()
    """The plugins that refused it: an event that none of them cares for cannot help."""
    nominated_node: str = ""
    """The node on which room is being made for it, if that is so: status.nominatedNodeName."""
    reason: str = ""
    """Of a pod whose workload waits for quota: the reason of the workload's QuotaReserved condition."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Take this pod off that node: to make room for the preemptor, or because its workload is suspended."""

    pod: str
    """namespace/name"""
    node: str
    preemptor: str
    """namespace/name of the pod, or of the workload if its quota is wanted back; empty if nobody's sake it is"""
    reason: str
    """In the words of kube-scheduler's event on the victim, or of Kueue's on its workload."""


@dataclass(frozen=True, slots=True)
class TopologyDomain:
    """So many pods in the domain that has these values of the levels."""

    values: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class TopologyAssignment:
    """The domains that the pods of a pod set are assigned, in the order of their ranks."""

    levels: tuple[str, ...]
    """Keys of node labels, coarse to fine; the hostname alone where that is the lowest level."""
    domains: tuple[TopologyDomain, ...]


@dataclass(frozen=True, slots=True)
class PodSetFlavors:
    """So many pods of a pod set, by resource the flavor that each gets it from, and where they go."""

    name: str
    count: int
    flavors: Mapping[str, str]
    topology: TopologyAssignment | None = None
    """None: anywhere on the flavors' nodes."""


@dataclass(frozen=True, slots=True)
class Admit:
    """Give this workload quota; with no check pending, let its pods start."""

    workload: str
    """namespace/name"""
    cluster_queue: str
    podsets: tuple[PodSetFlavors, ...]
    message: str
    """In the words of Kueue's condition."""
    pending_checks: tuple[str, ...] = ()
    """The admission checks that must be ready before the pods may start; another Admit follows when they are."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """Take this workload's quota back: its pods stop, each with an Evict of its own, and wait again."""

    workload: str
    """namespace/name"""
    reason: str
    """Of the Evicted condition; of a preempted workload, of the Preempted condition."""
    message: str
    preemptor: str = ""
    """namespace/name of the workload that gets the quota"""


@dataclass(frozen=True, slots=True)
class Notice:
    """Tell this workload that it will lose its quota: nothing happens to it before then."""

    workload: str
    """namespace/name"""
    message: str
    at: float
    """When, in seconds since 1970."""


PodDecision: TypeAlias = Bind | Wait | Evict
WorkloadDecision: TypeAlias = Admit | Suspend | Notice
Decision: TypeAlias = PodDecision | WorkloadDecision
