"""A plan of rebalancing as data: which pods leave, where they go, why, and what that is worth."""

from dataclasses import dataclass, field

from mooring.model.keys import PodKey


@dataclass(frozen=True, slots=True)
class Step:
    """One pod that leaves its node. The pods of a gang or of a node that is emptied leave together, or not at all."""

    pod: PodKey
    node: str
    target: str
    """The node that is held for its successor; empty if none is."""
    strategy: str
    profile: str
    reason: str
    gain: float
    """In points; pods that leave together share what they gain together."""
    cost: float
    together: int
    """The number of the move: equal for pods that leave together."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A pod that a strategy would evict, and why it stays where it is."""

    pod: PodKey
    node: str
    strategy: str
    reason: str


@dataclass(frozen=True, slots=True)
class RebalancePlan:
    """What one run of the strategies comes to."""

    steps: list[Step] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    nodes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """By strategy: the names of nodes, by what it found them to be."""
