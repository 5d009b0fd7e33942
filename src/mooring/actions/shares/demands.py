"""What shares are decided on: queues as they are meant to be, and what jobs ask for. Plain values, from any source.

Amounts are whole numbers by resource name, in the units of the state's columns: thousandths of a CPU, bytes, devices.
A resource is a name and no more, so that the memory of GPUs is one beside the GPUs themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mooring.errors import InvariantBroken
from mooring.model.api.volcano_queue import HierarchyStep
from mooring.model.values.requests import PODS

Amounts = Mapping[str, int]

LARGEST_DEMAND = 2**53
"""Demands are added up as int64: a thousand jobs of this size fit, and none of this size fits any cluster."""


@dataclass(frozen=True, slots=True)
class UserLimit:
    """The most that each of these users may hold in a queue, and each of these groups in all."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    amounts: Amounts = field(default_factory=dict)
    applications: int = 0
    """How many may hold anything at a time; 0: any number."""


@dataclass(frozen=True, slots=True)
class ApplicationRules:
    """What a queue says of applications, where jobs are parts of such."""

    most: int = 0
    """How many may hold anything in it, or below it; 0: any number."""
    sorts_fairly: bool = False
    """Whether the one that holds least comes first, not the oldest."""
    sorts_by_priority: bool = True
    """Whether priority goes before that, for applications and for queues below it."""
    priority_offset: int = 0
    """What is added to the priority of what waits in it, as others see it."""
    fences_priority: bool = False
    """Whether the offset is its priority, whatever waits in it."""
    limits: tuple[UserLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """One queue. A parent that is empty, or "root", is the root, which needs no spec."""

    name: str
    parent: str = ""
    weight: float = 1.0
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weights of single resources, where a division has such."""
    priority: int = 0
    created: float = 0.0
    capability: Amounts = field(default_factory=dict)
    """The most that it may hold; what is not named is limited by its parent only."""
    deserved: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)
    lends: bool = True
    """Whether others may use what it deserves and does not ask for."""
    own_total: Amounts | None = None
    """What it divides among those below it, beside what all others share; None for most."""
    applications: ApplicationRules = ApplicationRules()
    is_reclaimable: bool = True
    is_fence: bool = False
    """Whether queues below it reclaim only from one another."""
    reclaim_delay_seconds: float = 0.0
    """How long its jobs wait before they reclaim anything."""
    is_open: bool = True
    minimum_runtime_seconds: float | None = None
    """How long a job runs before anything can be reclaimed from it; None: as for the parent."""
    preempt_runtime_seconds: float | None = None
    """How long a job runs before a more important one of its queue takes its place; None: as for the parent."""
    hierarchy: tuple[HierarchyStep, ...] = ()
    """Its way from below the root for hierarchical dominant shares; empty: along the parents."""


@dataclass(frozen=True, slots=True)
class Role:
    """Members of a job that are alike."""

    request: Amounts
    """What one member asks for."""
    members: int = 1
    minimum: int = 0
    """How many of them the job cannot be without."""
    held: int = 0
    """How many of them run, or have their place."""
    kind: str = ""
    """Roles of one kind stand in for one another: together they have the sum of their minimums. Empty: none does."""

    @property
    def is_best_effort(self) -> bool:
        """Whether they ask for nothing but a place: such members wait for no share, they are backfilled."""
        return all(name == PODS or not amount for name, amount in self.request.items())


@dataclass(frozen=True, slots=True)
class JobDemand:
    """One job: its members, and how many of them make it whole."""

    key: str
    queue: str
    roles: tuple[Role, ...]
    min_members: int = 1
    turns: tuple[int, ...] = ()
    """The roles of members that wait, one for each member, in the order in which they are tried one by one; empty: all
    that it needs at once, role by role."""
    priority: int = 0
    created: float = 0.0
    started: float | None = None
    application: str = ""
    """What it is a part of, with others in the same queue; nothing for most."""
    user: str = ""
    groups: tuple[str, ...] = ()
    """Who submitted the application."""
    min_resources: Amounts | None = None
    """What it says that it needs at least, to be let in; None: what its minimum of members asks for."""
    leaving: Amounts = field(default_factory=dict)
    """What members ask for that are being evicted: they come back, and their queue goes on deserving it."""
    is_preemptible: bool = True
    takes_from_nobody: bool = False
    """Whether it waits for room rather than have it taken from others: its preemptionPolicy is Never."""
    is_firm: bool = False
    """Whether its pods can never be taken from it, which quotas may limit."""
    is_enqueued: bool = True
    """Whether it may be offered a turn; if not, it waits for `Sharing.enqueue`."""

    def __post_init__(self) -> None:
        for role in self.roles:
            if not 0 <= role.held <= role.members or not 0 <= role.minimum <= role.members:
                raise InvariantBroken(f"job {self.key}: a role of {role.members} members cannot have {role}")
            if any(amount < 0 for amount in role.request.values()):
                raise InvariantBroken(f"job {self.key}: a request is negative: {dict(role.request)}")

    @property
    def members(self) -> int:
        return sum(role.members for role in self.roles)
