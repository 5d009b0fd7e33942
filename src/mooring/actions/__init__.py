"""What a cycle may do, least disruptive first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mooring.actions.admit.action import Admit
from mooring.actions.batches import Batches
from mooring.actions.capacity.nodes.provision import Provision
from mooring.actions.capacity.nodes.release import DrainNodes, ReleaseNodes
from mooring.actions.gangs.keep_whole import KeepWhole
from mooring.actions.gangs.placing import GangPlacer
from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.actions.gangs.reservation import Reservation
from mooring.actions.move_back.action import MoveBack
from mooring.actions.partition import PartitionGpus
from mooring.actions.place.action import Place
from mooring.actions.preempt.action import Preempt, Preemption
from mooring.actions.rebalance.action import Rebalance
from mooring.actions.resize.action import ResizePods
from mooring.actions.shares.action import Share
from mooring.actions.shares.elastic_quota.families import (
    ElasticQuotaFamily,
    KoordinatorFamily,
    elastic_quota_settings,
    koordinator_settings,
)
from mooring.actions.shares.family import Family
from mooring.actions.shares.kai.consolidate import Consolidate
from mooring.actions.shares.kai.family import KaiFamily, kai_settings
from mooring.actions.shares.let_in import LetIn
from mooring.actions.shares.reclaim import Reclaim
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.volcano.division import PROPORTION
from mooring.actions.shares.volcano.family import VolcanoFamily
from mooring.actions.shares.yunikorn.family import YuniKornFamily, yunikorn_settings
from mooring.config.batching import BatchingArgs
from mooring.config.capacity_policy import Capacity
from mooring.config.gangs import GangSchedulingArgs
from mooring.config.kai_shard import KaiShard
from mooring.config.node_pools import NodePoolsArgs
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.config.queueing import QueueingSettings
from mooring.config.rebalance_policy import Rebalancing
from mooring.config.tenant_policy import TenantPolicy
from mooring.engine.action import Action
from mooring.engine.profile import Profile
from mooring.engine.queue.shared import SharedQueues


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
    shares: ShareSettings = field(default_factory=lambda: ShareSettings(PROPORTION))
    kai: KaiShard | None = None
    node_pools: Mapping[str, NodePoolsArgs] = field(default_factory=dict)
    """By profile, where it has any."""
    rebalancing: Rebalancing | None = None
    """Which strategies move pods that run; None: none do."""
    capacity: Capacity | None = None
    """What nodes can be bought; None: none are bought or given back."""
    cached: bool = True
    """Whether answers are kept; without that everything is worked out from nothing, and decided the same."""
    clock: Callable[[], float] | None = None
    on_batch: Callable[[int, float], None] | None = None


def share_settings_by_family(volcano: ShareSettings, kai: KaiShard | None) -> dict[Family, ShareSettings]:
    """All families of queues, and how each is shared. A pod that more than one would have is the first one's."""
    return {
        VolcanoFamily(): volcano,
        KaiFamily(): kai_settings(volcano, kai),
        YuniKornFamily(): yunikorn_settings(volcano),
        ElasticQuotaFamily(): elastic_quota_settings(volcano),
        KoordinatorFamily(): koordinator_settings(volcano),
    }


def make_actions(settings: ActionSettings) -> tuple[Action, ...]:
    """The actions, in the order in which every cycle runs them."""
    batches = Batches(settings.batching, cached=settings.cached, clock=settings.clock)
    families = share_settings_by_family(settings.shares, settings.kai)
    shared = SharedQueues(tuple(families))
    placer = GangPlacer(batches, shared)
    rehearsal = Rehearsal(settings.profiles, placer)
    preemption = Preemption(settings.preemption_costs, placer)
    consolidates = settings.kai is None or settings.kai.consolidates
    shares = [Share(placer, found, family, shared, settings.profiles) for family, found in families.items()]
    return (
        # Nodes whose replacements are there are drained, before others have that room.
        *([DrainNodes(rehearsal)] if settings.capacity is not None else []),
        # Work that queues gets quota, or gives it back.
        Admit(settings.profiles, settings.queueing, settings.tenants, rehearsal),
        # Gangs that lost a member are completed, or released.
        KeepWhole(placer, settings.gangs.timeout_seconds, shares),
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
        # Jobs of KAI's queues closer together, where that makes room for another one.
        *(
            Consolidate(share, settings.profiles)
            for share in shares
            if consolidates and isinstance(share.family, KaiFamily)
        ),
        # What a queue holds beyond its share, back to one that starves within its own.
        *(Reclaim(share, placer) for share in shares),
        # Pods onto the room that was made for them; room for those that had no turn to make any.
        Preempt(preemption),
        # Pods that spilled over back to their node pools, where a pool asks for that.
        *(MoveBack(name, args, rehearsal, shared) for name, args in settings.node_pools.items() if args.moves_back),
        # Pods that run to where a DeschedulerPolicy would rather have them, at its own cadence.
        *(
            [Rebalance(settings.rebalancing, rehearsal, settings.profiles, shared)]
            if settings.rebalancing is not None
            else []
        ),
        # Pods that run get other amounts where they are; room for those that grow.
        ResizePods(settings.profiles, settings.preemption_costs, rehearsal),
        # Nodes for pods that no node fits, and nodes that can go, each at its own cadence.
        *(
            [
                Provision(settings.capacity, rehearsal),
                ReleaseNodes(settings.capacity, rehearsal, settings.profiles),
            ]
            if settings.capacity is not None
            else []
        ),
        # GPUs that are cut on demand, as those need them who got a place.
        PartitionGpus(),
    )
