"""What to do, as values: a cycle returns them and a driver carries them out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import Struct

from mooring.model.api.claims import AllocationResult, ResourceClaimSpec
from mooring.model.node_offer import NodeOffer
from mooring.model.pod_patch import ContainerResources, PodPatch

Written: TypeAlias = tuple[tuple[str, str], ...]
"""Keys and values that are to be written to an object."""


@dataclass(frozen=True, slots=True)
class ClaimReservation:
    """Reserve this claim for the pod that is bound; allocate it before, if it is not allocated yet.

    The driver writes it into the claim's status before it binds the pod: `allocation` where there is none (with the
    finalizer resource.kubernetes.io/delete-protection), and the pod behind the others in `reservedFor`. Devices with
    binding conditions must have them all true before the pod is bound, and none of their failure conditions. If any of
    this fails, or takes longer than `binding_seconds`, the pod is not bound: the driver takes back what it wrote, so
    that the pod may get other devices, and reports that the bind Failed.
    """

    claim: str
    """namespace/name"""
    allocation: AllocationResult | None = None
    """What it gets; None if the world knows that already."""
    template: str = ""
    """namespace/name of the template, where the claim itself is still to be made, with the pod as its owner."""
    spec: ResourceClaimSpec | None = None
    """Of the claim for extended resources that a class serves, which is to be made by the driver: with the pod as its
    owner and the annotation resource.kubernetes.io/extended-resource-claim."""
    binding_seconds: float = 600.0
    """How long its devices may take to have their binding conditions: `bindingTimeout` of DynamicResources."""
    mappings: tuple[tuple[str, str, str], ...] = ()
    """Of that claim: (container, resource, request), for the pod's status.extendedResourceClaimStatus."""


class Bind(Struct, frozen=True):  # one a pod: a frozen dataclass takes several times as long to make
    """Run this pod on that node, with all that it reserves; if anything of that fails, so does the whole."""

    pod: str
    """namespace/name"""
    node: str
    annotations: Written = ()
    """To be written to the pod with the binding: the devices that it gets, for whoever hands them out on the node."""
    labels: Written = ()
    claims: tuple[ClaimReservation, ...] = ()
    """The pod's claims, in its order."""
    instances: tuple[tuple[str, int], ...] = ()
    """Resources that the node has to offer first, and how many: the MIG instances that its GPUs are to be cut into."""


class Wait(Struct, frozen=True):  # one a pod: a frozen dataclass takes several times as long to make
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
    successor: str = ""
    """The node that has room for the pod that its controller makes in its place, if it is to move there."""
    via: Literal["delete", "eviction"] = "delete"
    """A voluntary disruption goes by the Eviction API, so that the API server holds the budgets; preemption deletes."""


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
    pod_patches: tuple[tuple[str, PodPatch], ...] = ()
    """By pod set, what its flavors and admission checks give its pods; pod sets that are given nothing are left out."""


class Defer(Struct, frozen=True):  # one for each that waits in a long line
    """Nothing can be done for this workload now; its Workload is to say why. Only the last word counts."""

    workload: str
    """namespace/name"""
    reason: str
    """Of the QuotaReserved condition, which is false."""
    message: str


PREEMPTED = "Preempted"


@dataclass(frozen=True, slots=True)
class Suspend:
    """Take this workload's quota back: its pods stop, each with an Evict of its own, and wait again."""

    workload: str
    """namespace/name"""
    reason: str
    """Of a preempted workload, that of its Preempted condition; of any other, that of the Evicted condition."""
    message: str
    preemptor: str = ""
    """namespace/name of the workload that gets the quota"""

    @property
    def evicted_reason(self) -> str:
        """Of the Evicted condition, and of the metrics that count evictions."""
        return PREEMPTED if self.preemptor else self.reason


@dataclass(frozen=True, slots=True)
class Notice:
    """Tell this workload that it will lose its quota: nothing happens to it before then."""

    workload: str
    """namespace/name"""
    message: str
    at: float
    """When, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Let this gang in: its controller may make its pods. The phase of its PodGroup of Volcano becomes Inqueue."""

    gang: str
    """The key of the gang: kind.group/namespace/name"""


@dataclass(frozen=True, slots=True)
class KeepOut:
    """This gang is not let in yet; its PodGroup stays Pending, and is to say why. Only the last word counts."""

    gang: str
    message: str


@dataclass(frozen=True, slots=True)
class Instance:
    """A part of a GPU: its MIG profile, and the slice that it begins at."""

    profile: str
    start: int


@dataclass(frozen=True, slots=True)
class Partition:
    """Cut this GPU of a node so: instances that stay are in it, and those that nobody uses are not."""

    node: str
    gpu: int
    """Its index on the node."""
    instances: tuple[Instance, ...]
    annotations: Written = ()
    """What to write to the node, for the agent there that cuts it; what is empty is to be taken away."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Get a node of this kind. The state has a row for it already, under this name."""

    node: str
    """The name that the node is to have."""
    offer: NodeOffer


@dataclass(frozen=True, slots=True)
class Terminate:
    """Let this node go: the pods that were to leave it have left."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resize:
    """Give the containers of this pod these amounts, where it runs."""

    pod: str
    """namespace/name"""
    resources: tuple[ContainerResources, ...]


PodDecision: TypeAlias = Bind | Wait | Evict | Resize
WorkloadDecision: TypeAlias = Admit | Defer | Suspend | Notice
GangDecision: TypeAlias = Enqueue | KeepOut
NodeDecision: TypeAlias = Partition | Launch | Terminate
Decision: TypeAlias = PodDecision | WorkloadDecision | GangDecision | NodeDecision
