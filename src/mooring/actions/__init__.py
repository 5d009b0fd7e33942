"""What a cycle may do, least disruptive first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mooring.actions.admit.action import Admit
from mooring.actions.gangs.keep_whole import KeepWhole
from mooring.actions.gangs.placing import GangPlacer
from mooring.actions.gangs.rehearsal import GangRehearsal
from mooring.actions.gangs.reservation import Reservation
from mooring.actions.move_back.action import MoveBack
from mooring.actions.partition import PartitionGpus
from mooring.actions.place.action import Place
from mooring.actions.place.batches import Batches
from mooring.actions.preempt.action import Preempt, Preemption
from mooring.actions.volcano.allocate import Share
from mooring.actions.volcano.enqueue import LetIn
from mooring.actions.volcano.families import OTHER_FAMILIES, family_settings
from mooring.actions.volcano.reclaim import Reclaim
from mooring.actions.volcano.settings import ShareSettings
from mooring.config.batching import BatchingArgs
from mooring.config.gangs import GangSchedulingArgs
from mooring.config.kai_shard import KaiShard
from mooring.config.node_pools import NodePoolsArgs
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.config.queueing import QueueingSettings
from mooring.config.tenant_policy import TenantPolicy
from mooring.engine.action import Action
from mooring.engine.profile import Profile


@dataclass(frozen=True)
class ActionSettings:
    """What actions are told when they are made."""

    profiles: Mapping[str, Profile]
    batching: Mapping[str, BatchingArgs] = field(default_factory=dict)
    """By profile, as are the costs of preemption."""
    preemption_costs: Mapping[str, PreemptionCostArgs] = field(default_factory=dict)
    gangs: GangSchedulingArgs = field(default_factory=GangSchedulingArgs)
    queueing: QueueingSettings = field(default_factory=QueueingSettings)
    tenants: TenantPolicy = field(default_factory=TenantPolicy)
    shares: ShareSettings = field(default_factory=ShareSettings)
    kai: KaiShard | None = None
    node_pools: Mapping[str, NodePoolsArgs] = field(default_factory=dict)
    """By profile, where it has any."""
    cached: bool = True
    """Whether answers are kept; without that everything is worked out from nothing, and decided the same."""
    clock: Callable[[], float] | None = None
    on_batch: Callable[[int, float], None] | None = None


def make_actions(settings: ActionSettings) -> tuple[Action, ...]:
    """The actions, in the order in which every cycle runs them."""
    batches = Batches(settings.batching, cached=settings.cached, clock=settings.clock)
    placer = GangPlacer(batches)
    preemption = Preemption(settings.preemption_costs, placer)
    shares = [Share(placer, settings.shares, names=settings.profiles)]
    shares += [
        Share(placer, family_settings(family, settings.shares, settings.kai), family) for family in OTHER_FAMILIES
    ]
    return (
        # Work that queues gets quota, or gives it back.
        Admit(settings.profiles, settings.queueing, settings.tenants, GangRehearsal(settings.profiles, placer)),
        # Gangs that lost a member are completed, or released.
        KeepWhole(placer, settings.gangs.timeout_seconds),
        # Pods and gangs of shared queues onto free capacity, in the order of the queues' shares.
        *shares,
        # Groups of Volcano without pods: their controllers make those once they are let in.
        LetIn(shares[0]),
        # Pods onto free capacity, batch by batch of equal shape; gangs whole; room for those that are refused.
        Place(
            placer,
            Reservation(placer, settings.gangs.reserve_after_seconds),
            preemption,
            settings.batching,
            clock=settings.clock,
            on_batch=settings.on_batch,
        ),
        # What a queue holds beyond its share, back to one that starves within its own.
        *(Reclaim(share, placer) for share in shares),
        # Pods onto the room that was made for them; room for those that had no turn to make any.
        Preempt(preemption),
        # Pods that spilled over back to their node pools, where a pool asks for that.
        *(
            MoveBack(settings.profiles[name], args, batches, preemption)
            for name, args in settings.node_pools.items()
            if args.moves_back
        ),
        # GPUs that are cut on demand, as those need them who got a place.
        PartitionGpus(),
    )
