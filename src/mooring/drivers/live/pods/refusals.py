"""How long to wait before something is tried again that the world refuses again and again.

A node to which the API server binds no pods is left out for a while, after some refusals in a row. A pod may be at
fault itself, so that only refusals of different pods count that no other node refused. One bind that succeeds clears
the node. The scheduler sees a node that is left out as cordoned.
"""

from collections import OrderedDict

from msgspec.structs import replace

from mooring.model.api.nodes import Node
from mooring.model.decisions import Decision

FIRST_PENALTY, LONGEST_PENALTY = 0.5, 30.0
FORGOTTEN_SECONDS = 300.0
"""Who was not refused for so long begins anew, and is not kept in mind."""
MOST_KEPT = 10_000
"""With more than these, the oldest are forgotten before their time is over."""


def refused_key(decision: Decision, about: str) -> str:
    """What is counted: decisions of one kind about one object."""
    return f"{type(decision).__name__} {about}"


class Refusals:
    """Counts, for each pod or workload, how often in a row a decision about it was refused."""

    def __init__(self) -> None:
        self._times: dict[str, tuple[int, float]] = {}
        """By whom: how often, and when last."""

    def __len__(self) -> int:
        return len(self._times)

    def note(self, who: str, now: float, at_once: int = 1) -> float:
        """It was refused now. Return the seconds to wait, none for the first `at_once` times."""
        times, last = self._times.pop(who, (0, now))
        times = times + 1 if now - last < FORGOTTEN_SECONDS else 1
        self._times[who] = (times, now)
        self._forget_old(now)
        return _penalty(times, at_once)

    def pause(self, who: str, now: float) -> float | None:
        """The seconds that are left until it is tried again; None if it was not refused."""
        found = self._times.get(who)
        if found is None:
            return None
        times, last = found
        return max(0.0, last + _penalty(times, 1) - now)

    def forget(self, who: str) -> None:
        """It was not refused any more."""
        self._times.pop(who, None)

    def _forget_old(self, now: float) -> None:
        """Let go of the oldest, which stand first: those whose time is over, and whoever is one too many."""
        while self._times:
            who, (_, last) = next(iter(self._times.items()))
            if now - last < FORGOTTEN_SECONDS and len(self._times) <= MOST_KEPT:
                return
            del self._times[who]


def _penalty(times: int, at_once: int) -> float:
    return 0.0 if times <= at_once else min(FIRST_PENALTY * 2.0 ** (times - at_once - 1), LONGEST_PENALTY)


MOST_PODS = 4096
"""Pods of which it is remembered which node refused them first."""
PODS = 3
"""So many different pods in a row, and the node is left out."""


class RefusingNodes:
    """Counts refused binds by node."""

    def __init__(self) -> None:
        self._first: OrderedDict[str, str] = OrderedDict()
        """By uid of a pod, the node that refused it first."""
        self._refused: dict[str, set[str]] = {}
        """By node, the uids of the pods that were refused since a bind to it succeeded."""
        self._times = Refusals()
        self._left_out: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._left_out)

    def bound(self, node: str) -> None:
        """A pod was bound to a node."""
        if self._refused or len(self._times):
            self._refused.pop(node, None)
            self._times.forget(node)

    def refused(self, node: str, uid: str, now: float) -> float:
        """A bind to a node was refused. Return for how many seconds to leave the node out, if it comes to that now."""
        first = self._first.setdefault(uid, node)
        if len(self._first) > MOST_PODS:
            self._first.popitem(last=False)
        pods = self._refused.setdefault(node, set())
        if first == node:
            pods.add(uid)
        if len(pods) < PODS or node in self._left_out:
            return 0.0
        del self._refused[node]
        self._left_out.add(node)
        return self._times.note(node, now, at_once=0)

    def try_again(self, node: str) -> None:
        """The time of a node is over."""
        self._left_out.discard(node)

    def as_seen(self, node: Node) -> Node:
        """A node as the scheduler is to see it."""
        if node.metadata.name not in self._left_out:
            return node
        return replace(node, spec=replace(node.spec, unschedulable=True))
