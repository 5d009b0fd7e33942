"""Answer recorded scenarios of Koordinator's Reservations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.reservation import Reservation
from mooring.model.reservations.accounts import (
    Account,
    NodeBooks,
    node_books,
    open_account,
    request_of,
    reservation_used,
)
from mooring.model.reservations.fitting import (
    NO_MATCH,
    NOT_CHOSEN,
    node_refusals,
    nominate,
    scores,
    shortage,
)
from mooring.model.reservations.matching import affinity_of, is_ignoring, matches

Json = dict[str, Any]


@dataclass
class _World:
    nodes: list[Node]
    accounts: dict[str, Account]
    bound: dict[str, list[Pod]]

    def books(self, pod: Pod) -> list[NodeBooks]:
        """Every node as it is for one pod, in the order of names."""
        request = request_of(pod)
        found = []
        for node in sorted(self.nodes, key=lambda node: node.name):
            own = [one for one in self.accounts.values() if one.reservation.status.node_name == node.name]
            matching = [
                account
                for account in own
                if account.is_usable
                and (is_ignoring(pod) or matches(account.reservation, node, pod, request, account.amounts))
            ]
            found.append(node_books(node, [request_of(one) for one in self.bound[node.name]], own, matching))
        return found

    def place(self, pod: Pod, node: str, used: Account | None) -> None:
        self.bound[node].append(pod)
        if used is not None:
            self.accounts[used.name] = used.used_by(request_of(pod))


def answer_reservations(scenario: Json) -> Json:
    """Which pods may use which reservation, one after another."""
    pods = msgspec.convert(scenario["pods"], list[Pod])
    nodes = msgspec.convert(scenario["nodes"], list[Node])
    reservations = msgspec.convert(scenario["reservations"], list[Reservation])
    users = {
        one.metadata.name: [pod for pod in pods if reservation_used(pod) == one.metadata.name] for one in reservations
    }
    world = _World(
        nodes,
        {one.metadata.name: open_account(one, users[one.metadata.name]) for one in reservations},
        {node.name: [pod for pod in pods if pod.spec.node_name == node.name] for node in nodes},
    )
    return {"steps": [_step(world, pod) for pod in msgspec.convert(scenario["try"], list[Pod])]}


def _step(world: _World, pod: Pod) -> Json:
    request, affinity = request_of(pod), affinity_of(pod)
    has_affinity = affinity is not None
    books = world.books(pod)
    rejected = {one.node.name: reasons for one in books if (reasons := _refusals(pod, one, books))}
    feasible = [one for one in books if one.node.name not in rejected]
    is_scored = len(feasible) > 1 and not is_ignoring(pod) and any(one.is_concerned for one in books)
    found = _scores(request, feasible, has_affinity=has_affinity) if is_scored else {}
    chosen = max(feasible, key=lambda one: found.get(one.node.name, 0), default=None)
    used = None
    if chosen is not None:
        used = None if is_ignoring(pod) else nominate(request, chosen, has_affinity=has_affinity)
        world.place(pod, chosen.node.name, used)
    allocated = {
        name: {resource: amount for resource, amount in account.allocated.items() if amount}
        for name, account in world.accounts.items()
    }
    if used is not None and used.reservation.spec.allocate_once:
        del world.accounts[used.name]
    return {
        "pod": pod.metadata.name,
        "feasible": [one.node.name for one in feasible],
        "rejected": {name: sorted(reasons) for name, reasons in rejected.items()},
        "scores": found,
        "node": chosen.node.name if chosen is not None else "",
        "reservation": used.name if used is not None else "",
        "allocated": allocated,
    }


def _refusals(pod: Pod, books: NodeBooks, every: Sequence[NodeBooks]) -> list[str]:
    request, affinity = request_of(pod), affinity_of(pod)
    if affinity is not None and not books.matching:
        return [NOT_CHOSEN if any(one.matching for one in every) else NO_MATCH]
    short = shortage(request, books)
    if not books.matching or is_ignoring(pod):
        return short
    return short + node_refusals(
        request, books, has_affinity=affinity is not None, is_named=affinity is not None and bool(affinity.name)
    )


def _scores(request: dict[str, int], feasible: Sequence[NodeBooks], *, has_affinity: bool) -> dict[str, int]:
    found = scores(request, feasible, has_affinity=has_affinity)
    return {one.node.name: score for one, score in zip(feasible, found, strict=True)}
