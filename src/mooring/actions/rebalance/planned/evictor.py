"""What one profile may evict, where every eviction is a move that was rehearsed, and worth its cost."""

from collections.abc import Callable, Sequence

from mooring.actions.rebalance.descheduler.evictor import Evictor, Limits, Outcome
from mooring.actions.rebalance.descheduler.situation import Situation
from mooring.actions.rebalance.planned.mover import Mover, Why
from mooring.actions.rebalance.planned.worth import WHOLE
from mooring.config.descheduler import DefaultEvictorArgs
from mooring.config.low_node_load import NAME as LOW_NODE_LOAD
from mooring.model.api.meta import Resources
from mooring.model.api.pods import Pod
from mooring.model.values.quantity import parse_quantity
from mooring.state.pods import PodRecord

Gain = Callable[[PodRecord, int], float]

RENEWED = {
    "PodLifeTime": "it has lived for as long as the policy lets it",
    "RemoveFailedPods": "it has failed",
}
"""Strategies that want a pod gone wherever its successor goes, and why."""
RESTARTED = "RemovePodsHavingTooManyRestarts"
DUPLICATES = "RemoveDuplicates"


class PlanningEvictor(Evictor):
    """The descheduler's evictor: limits and protections are the same, and a pod leaves only if the mover agrees."""

    def __init__(
        self, situation: Situation, limits: Limits, args: DefaultEvictorArgs, profile: str, mover: Mover
    ) -> None:
        super().__init__(situation, limits, args, profile)
        self._mover = mover

    def evict(self, pod: Pod, strategy: str) -> Outcome:
        """Move a pod to wherever the scheduler puts it."""
        if strategy in RENEWED or pod.is_terminal:
            return self._renew(pod, strategy)
        why = Why(strategy, self.profile)
        if strategy == RESTARTED:
            why = Why(
                strategy,
                self.profile,
                "it restarts too often here",
                self._others(pod),
                lambda *_: WHOLE,
                elsewhere=True,
            )
        elif strategy == DUPLICATES:
            reason = "others of its controller are on the same node"
            why = Why(strategy, self.profile, reason, gain=self._gain_of_spreading(pod))
        elif strategy == LOW_NODE_LOAD:
            gain = self._measured_share(pod)
            reason = f"node {pod.spec.node_name} is measured to be overloaded"
            why = Why(strategy, self.profile, reason, gain=lambda *_: gain)
        return self._move([pod], why)

    def evict_together(
        self, pods: Sequence[Pod], strategy: str, reason: str, rows: frozenset[int], gain: Gain
    ) -> Outcome:
        """Move pods to some rows, all of them or none."""
        return self._move(pods, Why(strategy, self.profile, reason, rows, gain))

    @property
    def is_exhausted(self) -> bool:
        return not self._mover.left or super().is_exhausted

    def row_of(self, node: str) -> int:
        return self._mover.cycle.cluster.nodes.row_of[node]

    def _move(self, pods: Sequence[Pod], why: Why) -> Outcome:
        reached = self._reached(pods)
        if reached is not None:
            return reached
        moved = self._mover.move(pods, why, self._may_leave)
        if moved is None:
            return Outcome.REFUSED
        for key, target in moved.items():
            left = self.situation.move(key, target)
            self._limits.count(left, why.strategy, self.profile)
        return Outcome.DONE

    def _renew(self, pod: Pod, strategy: str) -> Outcome:
        reached = self._reached([pod])
        if reached is not None:
            return reached
        reason = RENEWED.get(strategy, "it has ended")
        gone = self._mover.renew(pod, Why(strategy, self.profile, reason), self._may_leave)
        if gone is None:
            return Outcome.REFUSED
        for key in gone:
            self._limits.count(self.situation.remove(key), strategy, self.profile)
        return Outcome.DONE

    def _may_leave(self, pod: Pod) -> bool:
        """Whether a pod may leave; the situation has it with its node."""
        found = self.situation.find(pod.key)
        return found is not None and self.may_evict(found)

    def _reached(self, pods: Sequence[Pod]) -> Outcome | None:
        if self._mover.cycle.is_over() or not self._mover.left:
            return Outcome.TOTAL_LIMIT
        return self._limits.reached(*pods)

    def _others(self, pod: Pod) -> frozenset[int]:
        row_of = self._mover.cycle.cluster.nodes.row_of
        return frozenset(row for name, row in row_of.items() if name != pod.spec.node_name)

    def _measured_share(self, pod: Pod) -> float:
        """The largest percentage of its node that a pod was measured to use of any resource."""
        nodes = self._mover.cycle.cluster.nodes
        allocatable = nodes.node(nodes.row_of[pod.spec.node_name]).status.allocatable or {}
        used = self.situation.uses(pod, measured=True)
        shares = [100.0 * amount / whole for name, amount in used.items() if (whole := _nanos(allocatable, name))]
        return max(shares, default=0.0)

    def _gain_of_spreading(self, pod: Pod) -> Gain:
        """The share of a controller's pods that no longer goes down with one node."""
        nodes = self._mover.cycle.cluster.nodes
        places = self.situation.places(pod)

        def gain(record: PodRecord, row: int) -> float:
            fewer = places[record.node_name] - 1 - places[nodes.name(row)]
            return WHOLE / places.total() if fewer > 0 else 0.0

        return gain


def _nanos(resources: Resources, name: str) -> int:
    return parse_quantity(resources[name]) if name in resources else 0
