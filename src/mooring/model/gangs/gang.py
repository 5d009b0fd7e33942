"""A gang in Mooring's own words: pods that start together or not at all, whichever dialect declared it."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from mooring.model.api.meta import Resources
from mooring.model.keys import NO_GANG, GangKey
from mooring.model.topology.requests import TopologyRequest


@dataclass(frozen=True, slots=True)
class Role:
    """One kind of member: a task, a clique, leader or workers."""

    name: str
    minimum: int
    """How many of its pods must run for the gang to be whole."""
    topology_request: TopologyRequest | None = None
    """Where its own pods want to be, inside the place that the gang as a whole gets."""


@dataclass(frozen=True, slots=True)
class RoleGroup:
    """Roles that share a place of their own inside the gang's: a scaling group of Grove."""

    roles: tuple[str, ...]
    topology_request: TopologyRequest


class Stage(Enum):
    """How far a group has come whose pods are made only once it is let in."""

    OUTSIDE = "outside"
    """It waits to be let in."""
    LET_IN = "let in"
    """Its pods are being made, or wait."""
    STARTED = "started"
    """Enough of them have run."""


@dataclass(frozen=True, slots=True)
class Gang:
    """What a gang asks for. Its members are the pods that name it, see `mooring.model.gangs.membership`."""

    key: GangKey
    """Unique among all dialects: kind.group/namespace/name."""
    name: str
    """namespace/name, for people"""
    minimum: int
    """How many members must run for it to be whole; with `of_gangs`, how many gangs inside it must be whole."""
    roles: tuple[Role, ...] = ()
    """Minimums of single kinds of members; pods of no listed role count for the gang only."""
    role_groups: tuple[RoleGroup, ...] = ()
    min_resources: Resources | None = None
    """What must be free, in all, before it is tried."""
    queue: str = ""
    """The queue that it belongs to, of the dialect that the key tells: a Queue of Volcano or of KAI."""
    priority: int | None = None
    """Its own; None: that of its most urgent member."""
    preemption_policy: str | None = None
    created: float | None = None
    """Seconds since the epoch; it queues since then."""
    timeout_seconds: float | None = None
    """How long it may be less than whole once its first member runs; None: the configured default."""
    topology_request: TopologyRequest | None = None
    parent: GangKey = NO_GANG
    """The key of the gang that this one is a part of: placed with it, at one moment, in one place."""
    of_gangs: bool = False
    """Its members are gangs."""
    after: GangKey = NO_GANG
    """The key of a gang that must run before this one may start, and whose place it shares where it wants one."""
    evicted_whole: bool = True
    """Whether it is a victim only as a whole (apart from what exceeds its minimum); else members go one by one."""
    restarts_whole: bool = False
    """Whether the loss of one member stops all: `PodEvicted: RestartJob`, RecreateGroupOnPodRestart."""
    once_satisfied: bool = False
    """Whether its minimum counts only for its start: once it runs, its members come and go one by one."""
    preemptible: bool = True
    """Whether it may be a victim at all."""
    stage: Stage | None = None
    """None: nobody waits for it to be let in."""
    scheduler_name: str = ""
    """Who its pods will wait for, where that is known before there are any."""

    @property
    def has_topology_request(self) -> bool:
        """Whether anything in it asks for a place in the topology."""
        return (
            self.topology_request is not None
            or bool(self.role_groups)
            or any(role.topology_request is not None for role in self.roles)
        )


def gang_key(kind: str, namespace: str, name: str) -> GangKey:
    """A gang's key; `kind` comes with its group, as in `PodGroup.scheduling.volcano.sh`."""
    return GangKey(f"{kind}/{namespace}/{name}")


class Membership(NamedTuple):
    """Which gang a pod belongs to, as what, and as which one."""

    gang: GangKey
    role: str = ""
    rank: int | None = None
    """Its place among its role's pods, where something says so: neighbours get near places."""
