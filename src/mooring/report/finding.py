"""What `mooring explain` finds out about one pod."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.model.api.pods import Pod

if TYPE_CHECKING:
    from mooring.actions.gangs.explain import GangExplanation
    from mooring.engine.explain import Explanation

AS_MET = "as the scheduler met it in queue order: the pods before it have their places, those behind it do not"
AT_THE_END = "as things stand at the end, when every pod that fits has its place"
WITHOUT_IT = "as things stand at the end, had this pod no place yet"
WHEN_PLACED = "as things stood when it had just got its place, had it none yet"


@dataclass
class Finding:
    """What became of one pod, and why."""

    pod: Pod
    state: str
    """placed, waiting, forbidden, gated, running, evicted, lost, gone, not ours, leaving or finished"""
    node: str = ""
    message: str = ""
    as_of: str = ""
    explanation: "Explanation | None" = None
    row: int = -1
    gang: "GangExplanation | None" = None
    preemption: str = ""
    """What evicting others would do for it."""
    evicted: tuple[str, ...] = ()
    """The pods that went for it, or for its gang, before it got its place."""
    gang_place: str = ""
    """What its gang asks of the topology, if that decides between nodes before points do."""
    is_capped: bool = False
    """It waits for something that no change to nodes would bring, such as its queue's share."""

    @property
    def wants_a_node(self) -> bool:
        """Whether it waits for want of a node, so that a change to one could help."""
        if self.state not in ("waiting", "gated") or self.explanation is None or self.is_capped:
            return False
        return not len(self.explanation.evaluation.feasible)
