"""Which pods a reservation is for: its owners, and what pods ask of reservations themselves."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from mooring.model.api.meta import LabelSelector
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.reservation import (
    AFFINITY_ANNOTATION,
    EXACT_MATCH_ANNOTATION,
    IGNORED_LABEL,
    OwnerController,
    OwnerObject,
    Reservation,
    ReservationAffinity,
    ReservationOwner,
    ResourceNames,
)
from mooring.model.values.selectors import compile_label_selector, compile_node_term, matches_any_term
from mooring.model.values.tolerations import UNSCHEDULABLE, is_tolerated, untolerated

FoundT = TypeVar("FoundT")


def affinity_of(pod: Pod) -> ReservationAffinity | None:
    """What a pod asks of reservations; None if it does not depend on any."""
    return _annotation(pod, AFFINITY_ANNOTATION, ReservationAffinity)


def is_ignoring(pod: Pod) -> bool:
    """Whether a pod may take reserved room without using any reservation."""
    return (pod.metadata.labels or {}).get(IGNORED_LABEL) == "true"


def matches(
    reservation: Reservation, node: Node, pod: Pod, request: Mapping[str, int], amounts: Mapping[str, int]
) -> bool:
    """Whether a pod may use a reservation; `request` and `amounts` are what it asks for and what is reserved."""
    owners = reservation.spec.owners or ()
    if not any(_is_owner(owner, pod) for owner in owners):
        return False
    affinity = affinity_of(pod)
    if affinity is not None and affinity.name:
        if affinity.name != reservation.metadata.name:
            return False
    elif not _is_open(reservation, node, affinity):
        return False
    exact = _annotation(pod, EXACT_MATCH_ANNOTATION, ResourceNames)
    return exact is None or _is_exact(exact.resource_names or [], request, amounts)


def _is_owner(owner: ReservationOwner, pod: Pod) -> bool:
    return (
        (owner.object is None or _is_object(owner.object, pod))
        and (owner.controller is None or _is_controlled(owner.controller, pod))
        and (owner.label_selector is None or _selects(owner.label_selector, pod))
    )


def _is_object(wanted: OwnerObject, pod: Pod) -> bool:
    metadata = pod.metadata
    pairs = ((wanted.name, metadata.name), (wanted.namespace, metadata.namespace), (wanted.uid, metadata.uid))
    return all(not want or want == have for want, have in pairs)


def _is_controlled(wanted: OwnerController, pod: Pod) -> bool:
    if wanted.namespace and wanted.namespace != pod.metadata.namespace:
        return False
    return any(
        (not wanted.kind or wanted.kind == owner.kind)
        and (not wanted.name or wanted.name == owner.name)
        and (wanted.controller is None or wanted.controller == owner.controller)
        for owner in pod.metadata.owner_references or ()
    )


def _selects(selector: LabelSelector, pod: Pod) -> bool:
    return compile_label_selector(selector).matches(pod.metadata.labels or {})


def _is_open(reservation: Reservation, node: Node, affinity: ReservationAffinity | None) -> bool:
    """Whether nothing keeps the pod away: marks and taints of the reservation, and the pod's own selectors."""
    tolerations = (affinity.tolerations if affinity is not None else None) or []
    if reservation.spec.unschedulable and not is_tolerated(tolerations, UNSCHEDULABLE):
        return False
    if affinity is None:
        return True
    if untolerated(tolerations, reservation.spec.taints or ()):
        return False
    labels = {**(node.metadata.labels or {}), **(reservation.metadata.labels or {})}
    wanted = affinity.reservation_selector or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    terms = affinity.required.reservation_selector_terms if affinity.required is not None else None
    return terms is None or matches_any_term(map(compile_node_term, terms), node.name, labels)


def _is_exact(names: list[str], request: Mapping[str, int], amounts: Mapping[str, int]) -> bool:
    for name in names:
        if name not in request and name not in amounts:
            return True  # as Koordinator has it: what follows is not looked at
        if request.get(name) != amounts.get(name):
            return False
    return True


def _annotation(found: Any, name: str, type_: type[FoundT]) -> FoundT | None:
    """What an annotation says; None if there is none, or none that can be read."""
    text = (found.metadata.annotations or {}).get(name)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=type_)
    except msgspec.DecodeError:
        return None
