"""The result of `mooring capacity` as a value: nodes to buy, nodes that could go, and why the others stay."""

from msgspec import Struct
from msgspec.structs import replace

from mooring.actions.capacity.karpenter.candidates import Candidate, blocked_by, unconsolidatable
from mooring.actions.capacity.karpenter.consolidation import Command, Consolidation
from mooring.actions.capacity.karpenter.drift import drifted, is_expired, replace_drifted
from mooring.actions.capacity.karpenter.evictions import Evictions
from mooring.actions.capacity.karpenter.planned import NewNode
from mooring.actions.capacity.karpenter.provisioning import Provisioned, provision
from mooring.actions.capacity.karpenter.situation import KarpenterSettings, Situation, make_machines
from mooring.actions.capacity.karpenter.snapshot import Snapshot
from mooring.engine.cycle import Scheduler
from mooring.errors import InputError
from mooring.model.api.karpenter import NodeClaim, NodePool, Provisioner, to_node_pool
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetStatus
from mooring.model.capacity.instance_types import InstanceType
from mooring.model.loading.manifests import Manifests
from mooring.model.values.requests import CPU
from mooring.model.values.selectors import compile_label_selector
from mooring.report.waiting import reasons
from mooring.state.budgets import desired_healthy

WORDS = {
    "taint": "it does not tolerate the taints of a NodePool",
    "requirements": "its node selector or affinity does not match a NodePool",
    "topology": "its spread, affinity or anti-affinity leaves no domain",
    "limits": "a NodePool's limits leave no instance type",
    "minValues": "too few instance types are left for a NodePool's minValues",
    "instanceTypes": "no instance type is large enough, matches and is on offer",
    "reserved": "it waits for reserved capacity to come free",
    "noTemplate": "no NodePool has an instance type",
}


class Bought(Struct, rename="camel"):
    """A node to buy."""

    node_pool: str
    instance_type: str
    """The cheapest of those that would do."""
    zone: str
    capacity_type: str
    price_per_hour: float
    instance_types: int
    """How many types would do."""
    requests: dict[str, str]
    """Of its pods and daemons."""
    pods: list[str]


class Unplaced(Struct, rename="camel"):
    """A pod that no node can be bought for."""

    pod: str
    reasons: list[str]


class Move(Struct, rename="camel"):
    """Nodes that could go together."""

    method: str
    """Empty, Underutilized or Drifted: the reason that budgets are asked for."""
    decision: str
    nodes: list[str]
    saves_per_hour: float
    replacement: Bought | None
    pods_to: dict[str, list[str]]
    """Where their pods would go, by node that exists."""


class Kept(Struct, rename="camel"):
    """A node that stays, and why."""

    node: str
    price_per_hour: float | None
    reason: str


class CapacityResult(Struct, rename="camel"):
    cost_per_hour: float
    """Of what is to be bought."""
    buy: list[Bought]
    fits: dict[str, list[str]]
    """Waiting pods that nodes which exist, or are on their way, have room for."""
    unplaced: list[Unplaced]
    ignored: list[str]
    """Waiting pods that are not bought for: nominated to a node, or asking for labels that only a provider sets."""
    moves: list[Move]
    """What each method would do if it were asked first; the first of them is done first."""
    kept: list[Kept]
    expired: list[str]
    """Nodes that have outlived expireAfter: they go whatever budgets say."""


def make_capacity_result(situation: Situation) -> CapacityResult:
    """Decide what to buy and what could go."""
    provisioned = provision(situation)
    snapshot = Snapshot(situation)
    methods = Consolidation(snapshot)
    moves = _moves(snapshot, methods)
    buy = [_bought(node) for node in provisioned.placed.new_nodes]
    return CapacityResult(
        cost_per_hour=sum(node.price_per_hour for node in buy),
        buy=buy,
        fits=_names(provisioned.placed.existing),
        unplaced=_unplaced(provisioned),
        ignored=sorted(pod.key for pod in provisioned.ignored),
        moves=moves,
        kept=_kept(snapshot, methods, moves),
        expired=sorted(
            machine.name
            for machine in snapshot.machines
            if machine.claim is not None and is_expired(machine.claim, situation.now)
        ),
    )


def _bought(node: NewNode) -> Bought:
    name, offering = min(node.offerings(), key=lambda each: (each[1].price, each[0], each[1].zone))
    return Bought(
        node_pool=node.pool,
        instance_type=name,
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        price_per_hour=offering.price,
        instance_types=len(node.options),
        requests={resource: _text(resource, amount) for resource, amount in node.requests.items()},
        pods=sorted(pod.key for pod in node.pods),
    )


def _text(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == CPU else str(amount)


def _names(existing: dict[str, tuple[Pod, ...]]) -> dict[str, list[str]]:
    return {name: sorted(pod.key for pod in pods) for name, pods in existing.items()}


def _unplaced(provisioned: Provisioned) -> list[Unplaced]:
    found = [
        Unplaced(pod.key, [WORDS[reason] for reason in sorted(reasons)])
        for pod, reasons in provisioned.placed.errors.values()
    ]
    return sorted(found, key=lambda each: each.pod)


def _moves(snapshot: Snapshot, methods: Consolidation) -> list[Move]:
    commands = (
        ("Empty", methods.emptiness()),
        ("Drifted", replace_drifted(snapshot, methods)),
        ("Underutilized", methods.multi()),
        ("Underutilized", methods.single()),
    )
    return [_move(method, command) for method, command in commands if command is not None]


def _move(method: str, command: Command) -> Move:
    return Move(
        method=method,
        decision=command.decision,
        nodes=sorted(candidate.machine.name for candidate in command.candidates),
        saves_per_hour=command.savings,
        replacement=None if command.replacement is None else _bought(command.replacement),
        pods_to={} if command.placed is None else _names(command.placed.existing),
    )


def _kept(snapshot: Snapshot, methods: Consolidation, moves: list[Move]) -> list[Kept]:
    going = {name for move in moves for name in move.nodes}
    evictions = Evictions(snapshot.situation)
    candidates = {candidate.row: candidate for candidate in methods.all_candidates}
    waiting = {candidate.row: reason for candidate, reason in drifted(snapshot, methods.all_candidates)}
    kept = []
    for row, machine in enumerate(snapshot.machines):
        if machine.name in going:
            continue
        candidate = candidates.get(row)
        if candidate is None:
            reason = blocked_by(snapshot, machine, evictions) or ""
            kept.append(Kept(machine.name, None, reason))
            continue
        reason = unconsolidatable(candidate, snapshot.situation.now) or _why_not(methods, candidate, waiting)
        kept.append(Kept(machine.name, candidate.price, reason))
    return kept


def _why_not(methods: Consolidation, candidate: Candidate, waiting: dict[int, str]) -> str:
    if candidate.row in waiting:
        return f"{waiting[candidate.row]}: it waits for its turn or for its NodePool's budget"
    if candidate.is_empty:
        return f"the budgets of NodePool {candidate.pool.name} let no more nodes go"
    return methods.why_not(candidate)


# What the decision is about.


def check_pools(manifests: Manifests) -> None:
    """Refuse manifests from which nothing can be bought."""
    if not manifests.of(NodePool) and not manifests.of(Provisioner):
        raise InputError("-f: expected at least one NodePool of karpenter.sh, found none")


def situation_of(
    scheduler: Scheduler, manifests: Manifests, instance_types: tuple[InstanceType, ...], now: float, spot_to_spot: bool
) -> Situation:
    """The cluster after the scheduler has placed what it could; pods that it found no node for are pending."""
    records = scheduler.cluster.pods.records.values()
    bound = [_on(record.pod, record.node_name) for record in records if record.node_name]
    pending = [entry.record.pod for entry, _, _ in reasons(scheduler)]
    return Situation(
        now=now,
        pools=(*manifests.of(NodePool), *map(to_node_pool, manifests.of(Provisioner))),
        instance_types=instance_types,
        machines=make_machines(manifests.nodes, manifests.of(NodeClaim), bound),
        pending=tuple(pending),
        daemon_sets=tuple(manifests.daemon_sets),
        budgets=tuple(_with_status(budget, bound) for budget in manifests.pod_disruption_budgets),
        namespaces=tuple(manifests.namespaces),
        settings=KarpenterSettings(spot_to_spot=spot_to_spot),
    )


def _on(pod: Pod, node: str) -> Pod:
    return pod if pod.spec.node_name == node else replace(pod, spec=replace(pod.spec, node_name=node))


def _with_status(budget: PodDisruptionBudget, bound: list[Pod]) -> PodDisruptionBudget:
    """Work out how many pods a budget lets go, where nobody has yet: pods on nodes count as healthy."""
    if budget.status is not None:
        return budget
    selector = compile_label_selector(budget.spec.selector)
    namespace = budget.metadata.namespace
    healthy = sum(
        not pod.is_terminal and pod.metadata.namespace == namespace and selector.matches(pod.metadata.labels or {})
        for pod in bound
    )
    allowed = max(healthy - desired_healthy(budget, healthy), 0)
    return replace(budget, status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, current_healthy=healthy))
