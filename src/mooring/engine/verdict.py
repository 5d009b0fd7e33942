"""Why a node, or the whole cluster, said no to a pod: values, not exceptions."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rejection:
    """A refusal, in the words of the plugin that gave it."""

    reasons: tuple[str, ...]
    unresolvable: bool = False
    """Evicting pods from the node cannot help."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What a permit plugin may answer: not yet. The pod keeps its place, and is given back after so many seconds."""

    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A refusal and the plugin behind it."""

    plugin: str
    rejection: Rejection
    hold_seconds: float | None = None
    """If a permit plugin lets the pod wait: for how long its place is to be held."""

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.rejection.reasons

    @property
    def unresolvable(self) -> bool:
        return self.rejection.unresolvable


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change that would make nodes acceptable to the plugin that now refuses them."""

    plugin: str
    change: str
    """What to change, in the imperative: `free 500m more cpu`."""
    nodes: tuple[str, ...]
    """The nodes that this change alone opens."""


def fit_message(node_count: int, counted: Iterable[tuple[Rejection, int]]) -> str:
    """Say why no node took the pod, as kube-scheduler says it: reasons with counts, sorted as text.

    >>> fit_message(3, [(Rejection(("Insufficient cpu",)), 2), (Rejection(("node(s) were unschedulable",)), 1)])
    '0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.'
    """
    if not node_count:
        return "no nodes available to schedule pods"
    count_of: Counter[str] = Counter()
    for rejection, count in counted:
        for reason in rejection.reasons:
            count_of[reason] += count
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in count_of.items()))
    return f"0/{node_count} nodes are available: {listed}." if listed else f"0/{node_count} nodes are available."
