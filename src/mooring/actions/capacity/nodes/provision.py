"""Buy nodes for the pods that no node fits.

What to buy is decided as Karpenter decides it, on the one state: pods that wait, nodes that exist, and nodes that were
asked for before. Every node that it plans is tried with the real plugins before it is asked for. The row of a node that
is not there yet is held by its pods, so that nothing is bought twice for them.
"""

from collections.abc import Mapping

from mooring.actions.capacity.karpenter.planned import NewNode, launchable
from mooring.actions.capacity.karpenter.provisioning import provision
from mooring.actions.capacity.nodes.gangs import buy_for_gang, has_orphans, waiting_gangs
from mooring.actions.capacity.nodes.offers import best_of, offer_of
from mooring.actions.capacity.nodes.picture import pools_of, situation_of, subject_of, waiting_for_nodes
from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.config.capacity_policy import Capacity
from mooring.engine.action import Action, Cycle
from mooring.engine.disruption import begin
from mooring.engine.queue.entries import Entry
from mooring.model.decisions import Decision, Wait
from mooring.model.keys import PodKey
from mooring.state.plans import Held, Plan, Reason
from mooring.state.pods import UNBOUND


class Provision(Action):
    """Asks for nodes, at its own cadence, and only when no pod is left to be tried."""

    def __init__(self, capacity: Capacity, rehearsal: Rehearsal) -> None:
        self._capacity = capacity
        self._rehearsal = rehearsal
        self.every_seconds = capacity.policy.provision_interval_seconds

    def is_idle(self, cycle: Cycle) -> bool:
        return not cycle.queue.has_parked or not pools_of(cycle.cluster)

    def run(self, cycle: Cycle) -> list[Decision]:
        if len(cycle.queue):
            return []  # pods that may fit have their turns first
        return [*self._for_pods(cycle), *self._for_gangs(cycle)]

    def _for_gangs(self, cycle: Cycle) -> list[Decision]:
        """Buy for gangs, the first of the queue first; each has what those before it were planned with in its way."""
        decisions: list[Decision] = []
        gangs = [] if has_orphans(cycle.cluster) else waiting_gangs(cycle.queue)
        timeout = self._capacity.policy.registration_timeout_seconds
        for gang in sorted(gangs, key=lambda gang: (gang.key, gang.arrival)):
            situation = situation_of(cycle.cluster, self._capacity, (), cycle.now)
            decisions += buy_for_gang(cycle, self._rehearsal, gang, situation, timeout)
        return decisions

    def _for_pods(self, cycle: Cycle) -> list[Decision]:
        entries = {entry.record.key: entry for entry in waiting_for_nodes(cycle.queue)}
        if not entries:
            return []
        pods = [entry.record.pod for entry in entries.values()]
        situation = situation_of(cycle.cluster, self._capacity, pods, cycle.now)
        planned, _ = launchable(provision(situation).placed.new_nodes, strict=True)
        decisions: list[Decision] = []
        for node in planned:
            decisions += self._buy(cycle, node, entries)
        return decisions

    def _buy(self, cycle: Cycle, node: NewNode, entries: Mapping[PodKey, Entry]) -> list[Decision]:
        """Ask for one node, and let its pods hold it; nothing if a plugin would not have them there."""
        cluster, offer = cycle.cluster, offer_of(node)
        pods = [pod for pod in node.pods if pod.key in entries]
        if not pods:
            return []  # for pods of a node that goes: they are bought for when they wait
        with cluster.what_if():
            if self._rehearsal.place(cluster, pods, (), [offer]).problem:
                return []
        kind, offering = best_of(node)
        plan = Plan(
            Reason.SCALE_UP,
            tuple(Held(pod.key, UNBOUND, offer=0) for pod in pods),
            opens=(offer,),
            until=cycle.now + self._capacity.policy.registration_timeout_seconds,
            message=f"waits for a new node of NodePool {node.pool} ({kind.name}, {offering.zone})",
            subject=subject_of(node.pool),
            cost=offering.price,
        )
        for pod in pods:
            cycle.queue.set_aside(entries[pod.key])
        return [*begin(cluster, plan)[1], *(Wait(pod.key, plan.message) for pod in pods)]
