"""The action: run the strategies of a policy at their own cadence, and move the pods that they choose.

It runs last of all that place pods, and only when no pod is left to be tried and the moves before it are done: pods
that wait come before pods that have a place. Each move is a plan that holds its target, computed by what-if with the
real plugins; with `compatible`, pods are evicted as the descheduler evicts them, and nothing is held.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.actions.rebalance.descheduler.cycle import STRATEGIES, Strategy, deschedule
from mooring.actions.rebalance.descheduler.evictor import Eviction
from mooring.actions.rebalance.planned.evictor import PlanningEvictor
from mooring.actions.rebalance.planned.mover import Mover
from mooring.actions.rebalance.planned.steps import RebalancePlan, Stay, Step
from mooring.actions.rebalance.planned.utilization import HIGH, LOW, empty_idle_nodes, relieve_busy_nodes
from mooring.actions.rebalance.situation import situation_of
from mooring.config.rebalance_policy import Rebalancing
from mooring.engine.action import Action, Cycle
from mooring.engine.disruption import Refusal, Voluntary, disrupt
from mooring.engine.profile import Profile
from mooring.engine.queue.shared import SharedQueues
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision
from mooring.state.plans import Reason

PLANNED: Mapping[str, Strategy] = {**STRATEGIES, LOW: relieve_busy_nodes, HIGH: empty_idle_nodes}
"""The strategies that know where pods go, where they differ from the descheduler's."""
AS_TOLD = "the descheduler would evict it"
"""Why a pod leaves in the compatible mode, which weighs nothing."""


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
        return self._decide(cycle)[1]

    def plan(self, cycle: Cycle, ended: Iterable[Pod] = ()) -> RebalancePlan:
        """Return what a run would do now; nothing is decided."""
        with cycle.cluster.what_if():
            return self._decide(cycle, ended)[0]

    def _decide(self, cycle: Cycle, ended: Iterable[Pod] = ()) -> tuple[RebalancePlan, list[Decision]]:
        policy = self._settings.descheduler
        situation = situation_of(cycle.cluster, cycle.now, ended)
        if self._settings.policy.compatible:
            done = deschedule(policy, situation)
            steps, stays, decisions = _evict(cycle, done.evictions)
            return RebalancePlan(steps, stays, done.nodes), decisions
        mover = Mover(cycle, self._rehearsal, self._profiles, self._shared, self._settings.policy)
        done = deschedule(policy, situation, partial(PlanningEvictor, mover=mover), PLANNED)
        return RebalancePlan(mover.steps, mover.stays, done.nodes), mover.decisions


def _evict(cycle: Cycle, evictions: Iterable[Eviction]) -> tuple[list[Step], list[Stay], list[Decision]]:
    """Evict pods wherever they go then; what the one gate for evictions refuses stays."""
    steps: list[Step] = []
    stays: list[Stay] = []
    decisions: list[Decision] = []
    for number, one in enumerate(evictions, 1):
        record = cycle.cluster.pods.records.get(one.pod)
        if record is not None:
            made = disrupt(cycle.cluster, cycle.queue, [record], Voluntary(one.strategy))
            if isinstance(made, Refusal):
                stays.append(Stay(one.pod, one.node, one.strategy, made.message))
                continue
            decisions += made.decisions
        steps.append(Step(one.pod, one.node, "", one.strategy, one.profile, AS_TOLD, 0.0, 0.0, number))
    return steps, stays, decisions
