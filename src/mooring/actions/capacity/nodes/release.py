"""Give nodes back: empty ones, several for one that is cheaper, one by one, and those that are not what was asked for.

What could go is decided as Karpenter decides it. Before anything happens, a second what-if with the real plugins finds
a place for every pod that would have to move. A replacement is launched and there before the first pod is evicted; pods
leave through the Eviction API, and their successors hold their new places; a node is terminated once its pods are gone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mooring.actions.capacity.karpenter.consolidation import Command, Consolidation
from mooring.actions.capacity.karpenter.drift import replace_drifted
from mooring.actions.capacity.karpenter.planned import NewNode
from mooring.actions.capacity.karpenter.snapshot import Snapshot, is_owned_by
from mooring.actions.capacity.nodes.gangs import has_orphans, waiting_gangs
from mooring.actions.capacity.nodes.offers import best_of, offer_of
from mooring.actions.capacity.nodes.picture import pools_of, situation_of, waiting_for_nodes
from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.config.capacity_policy import Capacity
from mooring.engine.action import Action, Cycle
from mooring.engine.disruption import Refusal, Voluntary, as_created, begin, disrupt, successor_of
from mooring.model.api.karpenter import DRIFTED, EMPTY, UNDERUTILIZED
from mooring.model.api.meta import timestamp_seconds
from mooring.model.capacity.labels import CAPACITY_TYPE, ON_DEMAND
from mooring.model.capacity.requirements import is_in
from mooring.model.decisions import Decision, Terminate
from mooring.model.jobs.expansion import controller_of
from mooring.model.keys import PodKey
from mooring.model.node_offer import NodeOffer
from mooring.state.cluster import Cluster
from mooring.state.plans import Held, Plan, PlanId, Reason
from mooring.state.pods import PodRecord


class ReleaseNodes(Action):
    """Looks at its own cadence which nodes could go, and lets the first that it finds go."""

    def __init__(self, capacity: Capacity, rehearsal: Rehearsal, profiles: Iterable[str]) -> None:
        self._capacity = capacity
        self._rehearsal = rehearsal
        self._profiles = frozenset(profiles)
        self.every_seconds = capacity.policy.consolidation_interval_seconds

    def is_idle(self, cycle: Cycle) -> bool:
        return not cycle.cluster.related.node_claims

    def run(self, cycle: Cycle) -> list[Decision]:
        cluster, policy = cycle.cluster, self._capacity.policy
        decisions = [*self._forgotten(cycle)]
        is_busy = any(plan.reason in (Reason.SCALE_UP, Reason.CONSOLIDATION) for _, plan in cluster.plans())
        # After a restart, the nodes of a gang come one by one: those that are there are not empty for nothing.
        is_busy = is_busy or (has_orphans(cluster) and bool(waiting_gangs(cycle.queue)))
        if not policy.consolidate or len(cycle.queue) or is_busy or not pools_of(cluster):
            return decisions
        pending = [entry.record.pod for entry in waiting_for_nodes(cycle.queue)]
        situation = situation_of(cluster, self._capacity, pending, cycle.now, self._protection(cycle))
        snapshot = Snapshot(situation)
        methods = Consolidation(snapshot)
        for reason, find in (
            (EMPTY, methods.emptiness),
            (DRIFTED, lambda: replace_drifted(snapshot, methods)),
            (UNDERUTILIZED, methods.multi),
            (UNDERUTILIZED, methods.single),
        ):
            command = find()
            made = None if command is None else self._carry_out(cycle, command, reason)
            if made is not None:
                return [*decisions, *made]
        return decisions

    def _forgotten(self, cycle: Cycle) -> Iterable[Decision]:
        """Claims whose nodes have not appeared in time: nobody waits for them any more."""
        for claim in cycle.cluster.related.node_claims.values():
            created = timestamp_seconds(claim.metadata.creation_timestamp)
            if (
                created is not None
                and cycle.now - created >= self._capacity.policy.registration_timeout_seconds
                and not claim.is_true("Registered")
                and claim.metadata.deletion_timestamp is None
                and not cycle.cluster.is_launching(claim.name)
                and (claim.status.node_name or claim.name) not in cycle.cluster.nodes.row_of
            ):
                yield Terminate(claim.name, "its node has not appeared in time")

    def _protection(self, cycle: Cycle) -> "Protection":
        return Protection(cycle, self._profiles, self._capacity.policy.quiet_seconds)

    def _carry_out(self, cycle: Cycle, command: Command, reason: str) -> list[Decision] | None:
        """Begin with a command; None if the second what-if, or the gate for evictions, does not agree."""
        names = tuple(sorted(candidate.machine.name for candidate in command.candidates))
        message = f"{reason}: {', '.join(names)} can go, {command.savings:.4f} an hour less"
        if command.replacement is None:
            return drain(cycle, self._rehearsal, names, message, gain=command.savings)
        replacement = _launchable(command.replacement)
        if replacement is None:
            return None
        offer = offer_of(replacement)
        if places_for(cycle.cluster, self._rehearsal, names, [offer]) is None or not _may_leave(cycle, names, message):
            return None
        plan = Plan(
            Reason.CONSOLIDATION,
            opens=(offer,),
            drains=names,
            until=cycle.now + self._capacity.policy.registration_timeout_seconds,
            message=message,
            subject=f"Node/{names[0]}",
            gain=command.savings,
            cost=best_of(replacement)[1].price,
        )
        return begin(cycle.cluster, plan)[1]


def _may_leave(cycle: Cycle, names: Sequence[str], message: str) -> bool:
    """Tell whether the pods of nodes could be evicted now: nothing is bought for pods that may not leave."""
    records = [record for name in names for record in moving_pods(cycle.cluster, name)]
    with cycle.cluster.what_if():
        return not isinstance(disrupt(cycle.cluster, cycle.queue, records, Voluntary(message)), Refusal)


def _launchable(node: NewNode) -> NewNode | None:
    """A replacement that there are offerings of: where it is to be spot and no spot is on offer, on-demand.

    All its instance types are cheaper than what they replace, whichever way they are launched.
    """
    if node.offerings():
        return node
    node = replace(node, requirements=node.requirements.replaced(CAPACITY_TYPE, is_in(ON_DEMAND)))
    return node if node.offerings() else None


class Protection:
    """Which nodes are left alone beyond what Karpenter leaves alone."""

    def __init__(self, cycle: Cycle, profiles: frozenset[str], quiet_seconds: float) -> None:
        self._cluster = cycle.cluster
        self._now = cycle.now
        self._profiles = profiles
        claims = cycle.cluster.related.node_claims.values()
        self._created = {
            claim.status.node_name or claim.name: timestamp_seconds(claim.metadata.creation_timestamp)
            for claim in claims
        }
        self._quiet_seconds = quiet_seconds

    def __call__(self, node: str) -> bool:
        """Tell whether a node is new, or has pods that nothing would bring back, or that are not ours to place.

        A setback with an earlier try counts, too: it is left alone for a while.
        """
        moving = moving_pods(self._cluster, node)
        created = self._created.get(node)
        if moving and created is not None and self._now - created < self._quiet_seconds:
            return True
        setback = self._cluster.setbacks.get(f"Node/{node}")
        if setback is not None and self._now < setback.last + self._quiet_seconds:
            return True
        return any(not self._may_move(record) for record in moving)

    def _may_move(self, record: PodRecord) -> bool:
        if record.nominated or record.leaving is not None or record.assumed:
            return False
        if controller_of(record.pod.metadata) is None or self._cluster.gangs.of(record.key) is not None:
            return False  # nothing would bring it back, or its gang would be left without it
        return record.pod.spec.scheduler_name in self._profiles and record.key not in self._cluster.tenants.workload_of


class DrainNodes(Action):
    """Goes on with plans whose replacements are there: their predecessors are drained."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal

    def is_idle(self, cycle: Cycle) -> bool:
        return not any(plan.drains for _, plan in cycle.cluster.plans())

    def run(self, cycle: Cycle) -> list[Decision]:
        decisions: list[Decision] = []
        for plan_id, plan in list(cycle.cluster.plans()):
            if plan.drains and not cycle.cluster.awaits_nodes(plan):
                decisions += self._go_on(cycle, plan_id, plan)
        return decisions

    def _go_on(self, cycle: Cycle, plan_id: PlanId, plan: Plan) -> list[Decision]:
        """Let pods leave for the replacement; while that is not possible, the plan waits for it."""
        cluster = cycle.cluster
        with cluster.what_if() as trial:
            cluster.drop(plan_id, cycle.now, is_setback=False)
            names = tuple(name for name in plan.drains if name in cluster.nodes.row_of)
            made = drain(cycle, self._rehearsal, names, plan.message, gain=plan.gain) if names else []
            if made is None:
                return []
            trial.keep()
        return made


def drain(
    cycle: Cycle, rehearsal: Rehearsal, names: tuple[str, ...], message: str, *, gain: float
) -> list[Decision] | None:
    """Let the pods of nodes leave for places that are held for their successors, and the nodes go after them.

    None if a pod has no place, or may not be evicted.
    """
    cluster = cycle.cluster
    plan = Plan(Reason.CONSOLIDATION, closes=names, message=message, subject=f"Node/{names[0]}", gain=gain)
    records = [record for name in names for record in moving_pods(cluster, name)]
    if not records:
        begin(cluster, Plan(plan.reason, closes=names, is_closing=True, message=message, subject=plan.subject))
        return [Terminate(name, message) for name in names]
    rows = places_for(cluster, rehearsal, names)
    if rows is None:
        return None
    holds = tuple(Held(successor_of(cluster, record), rows[record.key]) for record in records)
    plan = Plan(
        plan.reason, holds=holds, closes=names, message=message, subject=plan.subject, gain=gain, cost=len(records)
    )
    made = disrupt(cluster, cycle.queue, records, Voluntary(message), plan)
    return None if isinstance(made, Refusal) else made.decisions


def places_for(
    cluster: Cluster, rehearsal: Rehearsal, names: Sequence[str], offers: Sequence[NodeOffer] = ()
) -> dict[PodKey, int] | None:
    """Where the pods of nodes would go without these nodes, by the real plugins; None if one has no place."""
    going = {cluster.nodes.row_of[name] for name in names}
    records = [record for name in names for record in moving_pods(cluster, name)]
    barred = going.union(cluster.barred_rows)
    rows = [row for row in cluster.nodes.live_rows().tolist() if row not in barred]
    pods = [as_created(record.pod) for record in records]
    with cluster.what_if():
        for record in records:
            cluster.release(record.key)
        placed = rehearsal.place(cluster, pods, rows, offers)
    if placed.problem or any(record.key not in placed.rows for record in records):
        return None
    return dict(placed.rows)


def moving_pods(cluster: Cluster, node: str) -> list[PodRecord]:
    """The pods of a node that need a place elsewhere when it goes."""
    return [
        record
        for record in cluster.pods.on(cluster.nodes.row_of[node])
        if not record.pod.is_terminal
        and not is_owned_by(record.pod, "apps/v1", "DaemonSet")
        and not is_owned_by(record.pod, "v1", "Node")
    ]
