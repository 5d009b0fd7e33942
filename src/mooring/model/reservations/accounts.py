"""What is reserved on a node and how much of it is used, in thousandths of CPUs and whole units of all else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.reservation import (
    ALLOCATED_ANNOTATION,
    AVAILABLE,
    ORDER_LABEL,
    RESTRICTED,
    RESTRICTED_OPTIONS_ANNOTATION,
    AllocatedReservation,
    Reservation,
    ResourceNames,
)
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import PODS, pod_requests, to_column_units
from mooring.model.values.selectors import parse_int64

Amounts = dict[str, int]


def amounts_of(resources: Mapping[str, str | int | float] | None) -> Amounts:
    return {name: to_column_units(name, parse_quantity(text)) for name, text in (resources or {}).items()}


def request_of(pod: Pod) -> Amounts:
    """What a pod asks for; resources of which it wants nothing are left out."""
    found = {name: to_column_units(name, nanos) for name, nanos in pod_requests(pod).items()}
    return {name: amount for name, amount in found.items() if amount}


def add(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def take(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    return {name: one.get(name, 0) - other.get(name, 0) for name in {**one, **other}}


@dataclass(frozen=True)
class Account:
    """One reservation: what it has, and what its users took of it."""

    reservation: Reservation
    amounts: Amounts
    names: frozenset[str]
    """The resources that count: all that it has, or those that its restricted options name."""
    allocated: Amounts
    users: int = 0

    @property
    def name(self) -> str:
        return self.reservation.metadata.name

    @property
    def is_available(self) -> bool:
        return self.reservation.status.phase == AVAILABLE

    @property
    def is_usable(self) -> bool:
        return self.is_available and not (self.reservation.spec.allocate_once and self.users)

    @property
    def is_restricted(self) -> bool:
        return self.reservation.spec.allocate_policy == RESTRICTED

    @property
    def left(self) -> Amounts:
        return {name: max(0, amount - self.allocated.get(name, 0)) for name, amount in self.amounts.items()}

    @property
    def order(self) -> int | None:
        """Its place among others by its label; None if it has none."""
        return parse_int64((self.reservation.metadata.labels or {}).get(ORDER_LABEL, "")) or None

    def used_by(self, request: Mapping[str, int]) -> "Account":
        """The account after one more pod took its request from it."""
        counted = {name: amount for name, amount in request.items() if name in self.names}
        return replace(self, allocated=add(self.allocated, counted), users=self.users + 1)


def open_account(reservation: Reservation, users: Iterable[Pod] = ()) -> Account:
    amounts = amounts_of(reservation.status.allocatable)
    account = Account(reservation, amounts, _names(reservation, amounts), {})
    for pod in users:
        account = account.used_by(request_of(pod))
    return account


def _names(reservation: Reservation, amounts: Amounts) -> frozenset[str]:
    names = frozenset(amounts)
    text = (reservation.metadata.annotations or {}).get(RESTRICTED_OPTIONS_ANNOTATION)
    if reservation.spec.allocate_policy != RESTRICTED or not text:
        return names
    try:
        options = msgspec.json.decode(text, type=ResourceNames)
    except msgspec.DecodeError:
        return names
    return names & frozenset(options.resources or ()) or names


def reservation_used(pod: Pod) -> str:
    """The name of the reservation that a pod was placed with; empty if it uses none."""
    text = (pod.metadata.annotations or {}).get(ALLOCATED_ANNOTATION)
    if not text:
        return ""
    try:
        return msgspec.json.decode(text, type=AllocatedReservation).name
    except msgspec.DecodeError:
        return ""


@dataclass(frozen=True)
class NodeBooks:
    """One node for one pod: what is taken there, and which of its reservations match the pod."""

    node: Node
    allocatable: Amounts
    base: Amounts
    """Requests of its pods and all that is reserved, users not counted twice."""
    pod_count: int
    """Its pods, and reservations that do not match, which count as one each."""
    matching: tuple[Account, ...]
    is_concerned: bool = False
    """Whether reservations change what the pod finds there: some match, or others have users."""

    @property
    def pods_allowed(self) -> int:
        return self.allocatable.get(PODS, 0)

    @property
    def base_without_users(self) -> Amounts:
        """What is taken if the users of the matching reservations are counted once."""
        taken = self.base
        for account in self.matching:
            taken = take(taken, account.allocated)
        return taken


def node_books(
    node: Node, requests: Sequence[Mapping[str, int]], accounts: Sequence[Account], matching: Sequence[Account]
) -> NodeBooks:
    """The books of a node with these requests of pods and these reservations."""
    base: Amounts = {}
    for request in requests:
        base = add(base, request)
    available = [account for account in accounts if account.is_available]
    chosen = {account.name for account in matching}
    others = [account for account in available if account.is_usable and account.name not in chosen]
    for account in available:
        base = add(base, account.amounts)
    for account in others:
        base = take(base, account.allocated)
    return NodeBooks(
        node,
        amounts_of(node.status.allocatable),
        base,
        len(requests) + len(available) - len(matching),
        tuple(matching),
        is_concerned=bool(matching) or any(account.users for account in others),
    )
