"""A cluster whose pods are rebalanced, cycle after cycle: evicted pods are made anew, and the scheduler places them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mooring.actions.rebalance.action import Rebalance
from mooring.actions.rebalance.planned.steps import RebalancePlan
from mooring.assembly import assemble
from mooring.config.descheduler import parse_descheduler_policy
from mooring.config.low_node_load import NAME, LowNodeLoadArgs
from mooring.config.rebalance_policy import RebalancePolicy
from mooring.config.scheduler import SchedulerConfig, parse_config
from mooring.config.settings import Settings
from mooring.drivers.offline.driver import Offline
from mooring.engine.action import Cycle
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision, Evict
from mooring.model.events import GangSeen, Related
from mooring.model.gangs.gang import Gang
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import Manifests
from mooring.model.objects.kinds import kind_of_type
from mooring.observe.progress import Progress
from mooring.testing.builders import make_config, make_owner, make_pod, make_profile

START = 1_800_000_000.0
TWO_HOURS = 7200.0

MOST_ALLOCATED = make_profile(
    args={
        "NodeResourcesFit": {
            "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]},
        }
    },
    plugins={"multiPoint": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
)
"""A profile that fills nodes."""


def policy_of(args: Mapping[str, Mapping[str, Any]], **limits: int) -> dict[str, Any]:
    """A DeschedulerPolicy with these strategies and their arguments."""
    balance = {
        "RemoveDuplicates",
        "LowNodeUtilization",
        "LowNodeLoad",
        "HighNodeUtilization",
        "RemovePodsViolatingTopologySpreadConstraint",
    }
    enabled = [name for name in args if name != "DefaultEvictor"]
    plugins = {
        "deschedule": {"enabled": [name for name in enabled if name not in balance]},
        "balance": {"enabled": [name for name in enabled if name in balance]},
    }
    config = [{"name": name, "args": dict(given)} for name, given in args.items()]
    profile = {"name": "default", "pluginConfig": config, "plugins": plugins}
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile], **limits}


def replica(name: str, node: str = "", *, of: str = "web", kind: str = "ReplicaSet", **given: Any) -> Pod:
    """A pod of a controller, running since long ago."""
    pod = make_pod(name, node=node, owner=make_owner(of, kind=kind), phase="Running" if node else "", **given)
    pod.metadata.uid = name
    for owner in pod.metadata.owner_references or ():
        owner.uid = of
    pod.metadata.creation_timestamp = "2020-01-01T00:00:00Z"
    if node:
        pod.status.start_time = "2020-01-01T00:00:00Z"
    return pod


def make_world(
    nodes: Sequence[Node],
    pods: Sequence[Pod],
    policy: Mapping[str, Any],
    *,
    profile: Mapping[str, Any] | None = None,
    related: Iterable[Related] = (),
    gangs: Iterable[Gang] = (),
    **given: Any,
) -> Offline:
    """A driver that has decided nothing yet; `given` is what the RebalancePolicy says."""
    config = parse_config(make_config(profile), "profile") if profile else SchedulerConfig()
    settings = Settings(
        config,
        descheduler=parse_descheduler_policy(policy, "policy", {NAME: LowNodeLoadArgs}),
        rebalance=RebalancePolicy(**given),
    )
    manifests = Manifests(nodes=list(nodes), pods=list(pods))
    for found in related:
        kind = kind_of_type(type(found))
        assert kind is not None
        (getattr(manifests, kind.list_name) if kind.list_name else manifests.of(kind.type)).append(found)
    scheduler = assemble(settings).new_scheduler()
    scheduler.load(manifests, START)
    scheduler.handle(*map(GangSeen, gangs))
    return Offline(scheduler, START, manifests)


def let_run(world: Offline, seconds: float = TWO_HOURS) -> list[Decision]:
    """Everything that is decided at once and while time passes."""
    return [*world.decide(Progress()), *world.pass_time(seconds, Progress())]


def evictions(decisions: Iterable[Decision]) -> list[tuple[str, str, str]]:
    """Pod, node and held target of every eviction, in order."""
    return [(found.pod, found.node, found.successor) for found in decisions if isinstance(found, Evict)]


def places(world: Offline) -> dict[str, str]:
    """The node of every pod."""
    records = world.scheduler.cluster.pods.records
    return {key: records[PodKey(key)].node_name for key in sorted(records)}


def plan_of(world: Offline) -> RebalancePlan:
    """What the next run would do."""
    scheduler = world.scheduler
    action = next(action for action in scheduler.actions if isinstance(action, Rebalance))
    return action.plan(Cycle(scheduler.cluster, scheduler.queue, world.now))
