"""What `mooring explain` says of one pod, as values: what json and yaml print, and what the table is drawn from."""

from msgspec import UNSET, Struct, UnsetType


class NodeVerdict(Struct, rename="camel"):
    """Why a plugin refuses a node, or all of them."""

    plugin: str
    reasons: list[str]
    unresolvable: bool
    """Evicting pods from the node would not help."""


class RefusalCount(Struct, rename="camel"):
    """A reason, and on how many nodes it is given."""

    plugin: str
    reason: str
    nodes: int
    alone: int
    """On how many of these nothing else is in the way."""


class Remedy(Struct, rename="camel"):
    """One change, and the nodes that it alone opens."""

    plugin: str
    change: str
    opens: int
    nodes: list[str]


class PluginScore(Struct, rename="camel"):
    score: int
    weight: int
    weighted: int


class NodeAnswer(Struct, rename="camel"):
    """What all plugins say to the pod about one node."""

    node: str
    feasible: bool
    verdicts: list[NodeVerdict]
    passed: list[str]
    """The filters that were asked and had no objection."""
    scores: dict[str, PluginScore] | UnsetType = UNSET
    """By plugin, for a node that will do."""
    total: int | UnsetType = UNSET


class RunnerUp(Struct, rename="camel"):
    node: str
    total: int


class Choice(Struct, rename="camel"):
    """The node that a pod got, and the best of the others."""

    node: str
    total: int
    runner_up: RunnerUp | None
    lead: int
    lead_by_plugin: dict[str, int]
    equal_totals: int
    """How many other nodes have as many points: between them, the seed decides."""
    alignment: list[str] = []
    """Container by container, which NUMA nodes, CPUs and devices the kubelet will give it."""


class Room(Struct, rename="camel"):
    node: str
    room: int


class LevelRoom(Struct, rename="camel"):
    """A level of the topology: what its largest domain holds, and what one would have to hold."""

    level: str
    title: str
    domains: int
    largest: str
    holds: int
    needed: int | None
    """Members that have to share a domain of this level; None if none have to."""


class GroupRoom(Struct, rename="camel"):
    """Members of one role and shape, and the room there is for them."""

    role: str
    requests: dict[str, int]
    waiting: int
    needed: int
    fitting: int
    """How many of those needed fit if no other group were there."""
    nodes: list[Room]
    """The nodes with room, the roomiest first."""
    levels: list[LevelRoom]


class Leaver(Struct, rename="camel", omit_defaults=True):
    """A pod that runs where a gang could go."""

    pod: str
    """namespace/name"""
    node: str
    end: str = ""
    """When it is over, if it says so."""


class GangAhead(Struct, rename="camel"):
    gang: str
    members: int
    message: str
    has_reservation: bool


class GangStatus(Struct, rename="camel", omit_defaults=True):
    """The gang that a pod waits with."""

    name: str
    minimum: int
    members: int
    running: int
    message: str
    wants: str
    """What it asks of the topology, in words."""
    groups: list[GroupRoom]
    ahead: list[GangAhead]
    lacks: dict[str, int] = {}
    """What those members ask for, in a column's units, that find no room now."""
    never_fits: str = ""
    """Why it could not start even if nothing else ran; empty if it could."""
    starts_without: list[Leaver] = []
    """Who would have to be gone for it to start, in the order in which they are likely to end."""


class PoolStanding(Struct, rename="camel", omit_defaults=True):
    """A node pool, as it looks to one pod."""

    pool: str
    policy: str
    standing: str
    """own: one of its pools, where it is, or may go first. spilled: one of its pools, and it is outside of all of them.
    allowed: a pool of others that takes it. not allowed: one that does not, or it has a dedicated pool elsewhere."""
    is_there: bool = False
    """Whether it runs in this pool."""
    reserved_percent: int = 0
    moves_back: bool = False


class PodExplanation(Struct, rename="camel", omit_defaults=True):
    """What became of one pod, and why."""

    pod: str
    namespace: str
    state: str
    """placed, waiting, forbidden, gated, running, evicted, lost, gone, not ours, leaving or finished"""
    node: str
    message: str
    as_of: str
    """The moment that is shown; empty if no node was asked."""
    scheduler_name: str
    priority: int
    requests: dict[str, int]
    nodes_in_all: int
    feasible: int
    refused: NodeVerdict | None
    """Who refused it before any node was looked at."""
    refusals: list[RefusalCount]
    """The reason of most nodes first."""
    remedies: list[Remedy]
    """The one that opens most nodes first."""
    choice: Choice | None
    weights: dict[str, int]
    nodes: list[NodeAnswer]
    """The best first, then the others, those nearest to fitting first."""
    hint: str = ""
    """Where to learn more of what it waits for."""
    preemption: str = ""
    """What evicting others would do for it."""
    evicted: list[str] = []
    """The pods that went for it, or for its gang, before it got its place."""
    gang_place: str = ""
    """What its gang asks of the topology, if that decides between nodes before points do."""
    gang: GangStatus | None = None
    is_capped: bool = False
    """It waits for something that no change to nodes would bring, such as its queue's share."""
    wants_node: bool = False
    """It waits for want of a node, so that a change to one could help."""
    pools: list[PoolStanding] = []
    """The node pools of its profile, its own first."""
