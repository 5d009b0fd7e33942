"""Whether a pod fits a node with its reservations, which of them it uses, and what that is worth."""

from collections.abc import Mapping, Sequence

from mooring.model.reservations.accounts import Account, Amounts, NodeBooks, take
from mooring.model.values.requests import PODS

NO_MATCH = "node(s) no reservations match reservation affinity"
NOT_CHOSEN = "not among the nodes of PreFilter"
NONE_FITS = "node(s) no reservation(s) to meet the requirements"
FIRST_IN_ORDER = 1000
"""The score of the node with the reservation that is to be used up first."""


def shortage(request: Mapping[str, int], books: NodeBooks) -> list[str]:
    """Why a node is too small, whatever is reserved there for the pod; in the words of NodeResourcesFit."""
    taken = books.base
    for account in books.matching:
        taken = take(taken, account.amounts)
    found = [f"Insufficient {name}" for name in _lacking(request, books.allocatable, taken)]
    return found + (["Too many pods"] if books.pod_count + 1 > books.pods_allowed else [])


def _lacking(request: Mapping[str, int], allocatable: Amounts, taken: Mapping[str, int]) -> list[str]:
    return [
        name
        for name, amount in request.items()
        if name != PODS and amount > allocatable.get(name, 0) - taken.get(name, 0)
    ]


def refusals(request: Mapping[str, int], books: NodeBooks, account: Account, *, is_named: bool) -> list[str]:
    """Why a pod cannot use a matching reservation; nothing if it can. Named ones say more."""
    taken = take(books.base_without_users, account.left)
    by_node = [f"Insufficient {name} by node" for name in _lacking(request, books.allocatable, taken)]
    if books.pod_count - len(books.matching) + 1 > books.pods_allowed:
        by_node.append("Too many pods by node")
    return by_node + (_own_refusals(request, account, is_named=is_named) if account.is_restricted else [])


def _own_refusals(request: Mapping[str, int], account: Account, *, is_named: bool) -> list[str]:
    found = []
    for name, amount in request.items():
        if name in account.names:
            used, capacity = account.allocated.get(name, 0), account.amounts[name]
            if amount > capacity - used:
                more = f", requested: {amount}, used: {used}, capacity: {capacity}" if is_named else ""
                found.append(f"Reservation(s) Insufficient {name}{more}")
    most = account.amounts.get(PODS)
    if most is not None and account.users + 1 > most:
        more = f", requested: 1, used: {account.users}, capacity: {most}" if is_named else ""
        found.append(f"Reservation(s) Too many pods{more}")
    return found


def fitting(request: Mapping[str, int], books: NodeBooks, *, has_affinity: bool) -> list[Account]:
    """The matching reservations that a pod could use on a node."""
    asked = _asked(request, books, has_affinity=has_affinity)
    return [account for account in asked if not refusals(request, books, account, is_named=False)]


def _asked(request: Mapping[str, int], books: NodeBooks, *, has_affinity: bool) -> list[Account]:
    """Without an affinity, reservations of other resources than those requested are passed over."""
    return [account for account in books.matching if has_affinity or account.names & request.keys()]


def node_refusals(
    request: Mapping[str, int], books: NodeBooks, *, has_affinity: bool, is_named: bool = False
) -> list[str]:
    """Why none of a node's matching reservations takes a pod; nothing if one does, or the pod fits beside them."""
    asked = _asked(request, books, has_affinity=has_affinity)
    reasons = [refusals(request, books, account, is_named=is_named) for account in asked]
    if not all(reasons):
        return []
    found = sorted({reason for one in reasons for reason in one})
    if has_affinity:
        return found or [NONE_FITS]
    by_node = [reason for reason in found if reason.endswith(" by node")]
    if by_node:
        return by_node
    lacking = _lacking(request, books.allocatable, books.base_without_users)
    return [f"Insufficient {name} by node" for name in lacking]


def nominate(request: Mapping[str, int], books: NodeBooks, *, has_affinity: bool) -> Account | None:
    """The reservation that a pod uses on a node."""
    if has_affinity and len(books.matching) == 1:
        return books.matching[0]
    candidates = fitting(request, books, has_affinity=has_affinity)
    ordered = [account for account in candidates if account.order is not None]
    if ordered:
        return min(ordered, key=lambda account: (account.order or 0, account.name))
    return min(candidates, key=lambda account: (-worth(request, account), account.name), default=None)


def worth(request: Mapping[str, int], account: Account) -> int:
    """How much of a reservation is in use with the pod, 0 to 100: the fullest is used up first."""
    amounts = {name: amount for name, amount in account.amounts.items() if amount}
    total = 0
    for name, amount in amounts.items():
        used = account.allocated.get(name, 0) + request.get(name, 0)
        total += 100 * used // amount if used <= amount else 0
    return total // len(amounts) if amounts else 0


def scores(request: Mapping[str, int], nodes: Sequence[NodeBooks], *, has_affinity: bool) -> list[int]:
    """The scores of feasible nodes, in the order given, 0 to 100."""
    orders = [
        min((account.order for account in books.matching if account.order is not None), default=None) for books in nodes
    ]
    first = min((order for order in orders if order is not None), default=None)
    found = []
    for books, order in zip(nodes, orders, strict=True):
        nominated = nominate(request, books, has_affinity=has_affinity)
        if order is not None and order == first and FIRST_IN_ORDER not in found:
            found.append(FIRST_IN_ORDER)
        else:
            found.append(worth(request, nominated) if nominated is not None else 0)
    most = max(found, default=0)
    return [score * 100 // most if most else 0 for score in found]
