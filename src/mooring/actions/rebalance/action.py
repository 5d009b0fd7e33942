"""The action: run the strategies of a policy at their own cadence, and move the pods that they choose.

It runs last of all that place pods, and only when no pod is left to be tried and the moves before it are done: pods
that wait come before pods that have a place. Each move is a plan that holds its target, computed by what-if with the
real plugins; with `compatible`, pods are evicted as the descheduler evicts them, and nothing is held.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.actions.rebalance.defragment.strategy import defragment
from mooring.actions.rebalance.descheduler.cycle import STRATEGIES, Strategy, deschedule
from mooring.actions.rebalance.descheduler.evictor import Eviction, Evictor, Limits
from mooring.actions.rebalance.descheduler.utilization import Classes
from mooring.actions.rebalance.koordinator.low_node_load import Detector
from mooring.actions.rebalance.koordinator.strategy import PROD, Believing, Remembered, balance_load
from mooring.actions.rebalance.planned.evictor import PlanningEvictor
from mooring.actions.rebalance.planned.mover import Mover
from mooring.actions.rebalance.planned.steps import RebalancePlan, Step
from mooring.actions.rebalance.planned.utilization import HIGH, LOW, empty_idle_nodes, relieve_busy_nodes
from mooring.actions.rebalance.situation import situation_of
from mooring.config.descheduler import DefaultEvictorArgs
from mooring.config.low_node_load import NAME as LOW_NODE_LOAD
from mooring.config.rebalance_policy import Rebalancing
from mooring.engine.action import Action, Cycle, Section
from mooring.engine.disruption import Refusal, Voluntary, disrupt
from mooring.engine.profile import Profile
from mooring.engine.queue.entries import GangEntry
from mooring.engine.queue.shared import SharedQueues
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision
from mooring.state.cluster import Cluster
from mooring.state.plans import Reason

PLANNED: Mapping[str, Strategy] = {**STRATEGIES, LOW: relieve_busy_nodes, HIGH: empty_idle_nodes}
"""The strategies that know where pods go, where they differ from the descheduler's."""
AS_TOLD = "the descheduler would evict it"
"""Why a pod leaves in the compatible mode, which weighs nothing."""


@dataclass(frozen=True, slots=True)
class RebalanceSection(Section):
    """What rebalancing shows of itself: its name, and what it would do now."""

    name: str
    plan: Callable[[Cycle, Iterable[Pod]], RebalancePlan]


class Rebalance(Action):
    """Moves pods that run to where they are better placed."""

    def __init__(
        self, settings: Rebalancing, rehearsal: Rehearsal, profiles: Mapping[str, Profile], shared: SharedQueues
    ) -> None:
        self._settings = settings
        self._rehearsal = rehearsal
        self._profiles = profiles
        self._shared = shared
        self.every_seconds = settings.policy.interval_seconds

    def run(self, cycle: Cycle) -> list[Decision]:
        cluster = cycle.cluster
        cluster.moves.forget_until(cycle.now - self._settings.policy.quiet_seconds)
        if len(cycle.queue) or any(plan.reason is Reason.MOVE for _, plan in cluster.plans()):
            return []
        if self._settings.policy.compatible:
            situation = situation_of(cluster, cycle.now)
            strategies = _with_load(STRATEGIES, *_remembered(cluster))
            done = deschedule(self._settings.descheduler, situation, strategies=strategies)
            return _evict(cycle, done.evictions)
        mover = self._move(cycle, _with_load(PLANNED, *_remembered(cluster)))[0]
        for turn, entries in mover.nominated:
            if isinstance(turn, GangEntry):
                cycle.queue.take(turn)
            for entry in entries:
                cycle.queue.set_aside(entry)
        return mover.decisions

    def report(self, cycle: Cycle) -> RebalanceSection:
        return RebalanceSection(self.name, self.plan)

    def plan(self, cycle: Cycle, ended: Iterable[Pod] = ()) -> RebalancePlan:
        """Return what the strategies would do now, and change nothing.

        What is measured now is believed at once, as nobody looks again.
        With `compatible` these are all evictions of the descheduler. Of those a run leaves out what the one gate for
        evictions refuses, such as parts of gangs.
        """
        with cycle.cluster.what_if():
            if not self._settings.policy.compatible:
                mover, nodes = self._move(cycle, _with_load(PLANNED, Believing(), Believing()), ended)
                return RebalancePlan(mover.steps, mover.stays, nodes)
            situation = situation_of(cycle.cluster, cycle.now, ended)
            strategies = _with_load(STRATEGIES, Believing(), Believing())
            done = deschedule(self._settings.descheduler, situation, strategies=strategies)
            steps = [
                Step(one.pod, one.node, "", one.strategy, one.profile, AS_TOLD, 0.0, 0.0, number)
                for number, one in enumerate(done.evictions, 1)
            ]
            return RebalancePlan(steps, [], done.nodes)

    def _move(
        self, cycle: Cycle, strategies: Mapping[str, Strategy], ended: Iterable[Pod] = ()
    ) -> tuple[Mover, dict[str, Classes]]:
        """Run the strategies; what is worth it is adopted."""
        mover = Mover(cycle, self._rehearsal, self._profiles, self._shared, self._settings.policy)
        situation = situation_of(cycle.cluster, cycle.now, ended)
        policy = self._settings.descheduler
        done = deschedule(policy, situation, partial(PlanningEvictor, mover=mover), strategies)
        if self._settings.policy.defragment_gpus:
            # What protects pods from the first profile protects them here, too.
            name, args = next(((one.name, one.evictor) for one in policy.profiles), ("", DefaultEvictorArgs()))
            defragment(mover, Evictor(situation, Limits(policy), args, name))
        return mover, done.nodes


def _with_load(strategies: Mapping[str, Strategy], detector: Detector, prod: Detector) -> dict[str, Strategy]:
    """The strategies, and the one that goes by measured load."""
    return {**strategies, LOW_NODE_LOAD: partial(balance_load, detector=detector, prod_detector=prod)}


def _remembered(cluster: Cluster) -> tuple[Detector, Detector]:
    return Remembered(cluster.overloaded), Remembered(cluster.overloaded, PROD)


def _evict(cycle: Cycle, evictions: Iterable[Eviction]) -> list[Decision]:
    """Evict pods wherever they go then; what the one gate for evictions refuses stays."""
    decisions: list[Decision] = []
    for one in evictions:
        record = cycle.cluster.pods.records[one.pod]
        made = disrupt(cycle.cluster, cycle.queue, [record], Voluntary(one.strategy))
        if not isinstance(made, Refusal):
            decisions += made.decisions
    return decisions
