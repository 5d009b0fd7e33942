"""The nodes of a simulation as machines: whether they work, what the cluster sees of that, and which pods are there."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from mooring.drivers.sim.amounts import Held
from mooring.model.api.nodes import Node, Taint
from mooring.report.simulation.results import CORDONED, DOWN, UP

if TYPE_CHECKING:
    from mooring.drivers.sim.pods import SimulatedPod

UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
GONE = (Taint(key=UNREACHABLE, effect="NoSchedule"), Taint(key=UNREACHABLE, effect="NoExecute"))


class Machine:
    """One node, there or not."""

    __slots__ = (
        "daemons",
        "held",
        "images",
        "is_cordoned",
        "is_dead",
        "is_there",
        "is_unreachable",
        "node",
        "pods",
        "row",
    )

    def __init__(self, node: Node, row: int, held: Held) -> None:
        self.node = node
        """As it was given."""
        self.row = row
        """Of the results."""
        self.held = held
        self.pods: dict[str, SimulatedPod] = {}
        self.daemons: list[SimulatedPod] = []
        """Pods for this node alone that wait for it to come back."""
        self.images: set[str] = set()
        self.is_there = True
        """Whether the cluster has the node at all."""
        self.is_dead = False
        """Whether nothing runs on it; the cluster may not know yet."""
        self.is_unreachable = False
        """Whether the cluster knows."""
        self.is_cordoned = False

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def is_up(self) -> bool:
        return self.is_there and not self.is_dead

    @property
    def state(self) -> str:
        if not self.is_up:
            return DOWN
        return CORDONED if self.is_cordoned else UP

    def seen(self) -> Node:
        """The node as the cluster sees it now."""
        spec = self.node.spec
        taints = list(spec.taints or ())
        if self.is_unreachable:
            taints += GONE
        if self.is_cordoned and UNSCHEDULABLE not in taints:
            taints.append(UNSCHEDULABLE)
        if not self.is_unreachable and not self.is_cordoned:
            return self.node
        unschedulable = spec.unschedulable or self.is_cordoned
        return replace(self.node, spec=replace(spec, taints=taints, unschedulable=unschedulable))
