"""Which nodes to buy for pods that wait, and for pods of nodes that are on their way out."""

from dataclasses import dataclass

from mooring.actions.capacity.karpenter.evictions import Evictions
from mooring.actions.capacity.karpenter.requests import is_provisionable, is_valid
from mooring.actions.capacity.karpenter.simulation import Placed, Simulation
from mooring.actions.capacity.karpenter.situation import Situation
from mooring.actions.capacity.karpenter.snapshot import Snapshot
from mooring.model.api.pods import Pod


@dataclass(frozen=True, slots=True, eq=False)
class Provisioned:
    """What to buy, and for which pods."""

    placed: Placed
    ignored: tuple[Pod, ...]
    """Pending pods that are not Karpenter's business, or that ask for what is not theirs to choose."""


def provision(situation: Situation) -> Provisioned:
    """Plan nodes for all pods that need one."""
    snapshot = Snapshot(situation)
    pending = [pod for pod in situation.pending if is_wanted(pod)]
    kept = {id(pod) for pod in pending}
    ignored = tuple(pod for pod in situation.pending if id(pod) not in kept)
    evictions = Evictions(situation)
    leaving = [
        pod
        for machine in snapshot.machines
        if machine.is_deleting
        for pod in machine.pods
        if evictions.is_currently_reschedulable(pod)
    ]
    return Provisioned(Simulation(snapshot, [*pending, *leaving]).solve(), ignored)


def is_wanted(pod: Pod) -> bool:
    """Tell whether nodes are planned for a pending pod."""
    return is_provisionable(pod) and is_valid(pod)
