"""Reservation (scheduling.koordinator.sh): room on a node that is kept for pods to come."""

import msgspec

from mooring.model.api.meta import KubeObject, LabelSelector, NodeSelectorTerm, ObjectMeta, Resources
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import PodTemplateSpec, Toleration

RESERVATION_GROUP = "scheduling.koordinator.sh"
ALIGNED, RESTRICTED = "Aligned", "Restricted"
AVAILABLE = "Available"

AFFINITY_ANNOTATION = f"{RESERVATION_GROUP}/reservation-affinity"
ALLOCATED_ANNOTATION = f"{RESERVATION_GROUP}/reservation-allocated"
EXACT_MATCH_ANNOTATION = f"{RESERVATION_GROUP}/exact-match-reservation"
RESTRICTED_OPTIONS_ANNOTATION = f"{RESERVATION_GROUP}/reservation-restricted-options"
ORDER_LABEL = f"{RESERVATION_GROUP}/reservation-order"
IGNORED_LABEL = f"{RESERVATION_GROUP}/reservation-ignored"


class OwnerObject(KubeObject):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class OwnerController(KubeObject):
    kind: str = ""
    name: str = ""
    namespace: str = ""
    controller: bool | None = None


class ReservationOwner(KubeObject):
    """Which pods may use it: all parts that are given must hold."""

    object: OwnerObject | None = None
    controller: OwnerController | None = None
    label_selector: LabelSelector | None = None


class ReservationSpec(KubeObject):
    template: PodTemplateSpec = msgspec.field(default_factory=PodTemplateSpec)
    owners: list[ReservationOwner] | None = None
    ttl: str = ""
    expires: str | None = None
    allocate_once: bool = True
    """Whether it is gone, with what is left of it, after the first pod that uses it."""
    allocate_policy: str = ""
    """Aligned: what it lacks comes from the rest of the node. Restricted: only what it has itself."""
    unschedulable: bool = False
    taints: list[Taint] | None = None


class ReservationStatus(KubeObject):
    phase: str = ""
    node_name: str = ""
    allocatable: Resources | None = None


class Reservation(KubeObject):
    api_version: str = f"{RESERVATION_GROUP}/v1alpha1"
    kind: str = "Reservation"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ReservationSpec = msgspec.field(default_factory=ReservationSpec)
    status: ReservationStatus = msgspec.field(default_factory=ReservationStatus)


class SelectorTerms(KubeObject):
    reservation_selector_terms: list[NodeSelectorTerm] | None = None


class ReservationAffinity(KubeObject):
    """A pod's annotation: it goes where a reservation like this is, or nowhere."""

    name: str = ""
    reservation_selector: dict[str, str] | None = None
    required: SelectorTerms | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    tolerations: list[Toleration] | None = None


class ResourceNames(KubeObject):
    """What exact matches, or restricted options, are about."""

    resource_names: list[str] | None = None
    resources: list[str] | None = None


class AllocatedReservation(KubeObject):
    name: str = ""
    uid: str = ""
