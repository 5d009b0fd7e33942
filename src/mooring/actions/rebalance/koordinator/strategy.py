"""LowNodeLoad as a strategy of a policy, with what it has to remember from one run to the next in the state."""

from collections.abc import Sequence
from dataclasses import dataclass

from mooring.actions.rebalance.descheduler.evictor import Evictor, Outcome
from mooring.actions.rebalance.koordinator.low_node_load import Detector, LowNodeLoad
from mooring.config.low_node_load import NAME, AnomalyCondition, LowNodeLoadArgs
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.state.remembered import OverloadedNodes

PROD = "prod"


@dataclass(frozen=True, slots=True)
class Remembered:
    """Counts in the state how often in a row a node was found overloaded."""

    nodes: OverloadedNodes
    kind: str = ""

    def mark(self, name: str, condition: AnomalyCondition) -> bool:
        """Count a node once more; tell whether that is often enough."""
        most = condition.consecutive_abnormalities
        times = min(self.nodes.times(self.kind, name), most) + 1
        self.nodes.note(self.kind, name, times)
        return times > most

    def reset(self, name: str) -> None:
        """Forget how often a node was found overloaded."""
        self.nodes.note(self.kind, name, 0)


@dataclass(frozen=True, slots=True)
class Believing:
    """Believes what is found at once: a file with measurements is all that will ever be known."""

    def mark(self, name: str, condition: AnomalyCondition) -> bool:
        """Tell that an overloaded node is one."""
        return True

    def reset(self, name: str) -> None:
        """Nothing is counted."""


def balance_load(
    evictor: Evictor, nodes: Sequence[Node], args: LowNodeLoadArgs, detector: Detector, prod_detector: Detector
) -> None:
    """Let pods leave those of some nodes that are measured to be too loaded; all nodes may take them."""
    situation, names = evictor.situation, {node.metadata.name for node in nodes}

    def evict(pod: Pod) -> bool:
        return pod.spec.node_name in names and evictor.evict(pod, NAME) is Outcome.DONE

    LowNodeLoad(args, detector, prod_detector).balance(situation, situation.measured, evict)
