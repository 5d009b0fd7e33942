"""Nodes for a gang that fits nowhere: all that it needs, in one place of its topology, or none.

Karpenter knows no gangs. So the kinds of nodes that the NodePools allow are tried one after the other with the real
plugins: the heaviest NodePool first, then the cheapest, each instance type, zone, capacity type and domain by itself,
since the members want to be near one another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from mooring.actions.capacity.karpenter.shapes import requests_of
from mooring.actions.capacity.karpenter.situation import Situation
from mooring.actions.capacity.karpenter.snapshot import Snapshot
from mooring.actions.capacity.karpenter.templates import Template
from mooring.actions.capacity.nodes.offers import offer_of_type
from mooring.actions.capacity.nodes.picture import subject_of
from mooring.actions.gangs.rehearsal import Rehearsal, Rehearsed
from mooring.engine.action import Cycle
from mooring.engine.disruption import begin
from mooring.engine.queue.entries import GangEntry
from mooring.engine.queue.queue import Queue
from mooring.model.api.pods import Pod
from mooring.model.capacity.instance_types import InstanceType, Offering, amounts_of
from mooring.model.capacity.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, WELL_KNOWN, ZONE
from mooring.model.decisions import Decision, Wait
from mooring.model.node_offer import NodeOffer
from mooring.model.values.requests import PODS
from mooring.state.cluster import Cluster
from mooring.state.plans import Held, Plan, Reason
from mooring.state.pods import UNBOUND

MOST_DOMAINS = 64
"""So many domains of one instance type are tried at most."""
MOST_TRIES = 128
"""So many kinds of nodes are tried for one gang at most."""


@dataclass(frozen=True, slots=True)
class Lot:
    """So many nodes of one kind."""

    template: Template
    kind: InstanceType
    offering: Offering
    labels: Mapping[str, str]
    count: int

    @property
    def price(self) -> float:
        return self.count * self.offering.price


def waiting_gangs(queue: Queue) -> list[GangEntry]:
    """The gangs that fit nowhere as a whole."""
    return [parked.gang for parked in queue.parked() if parked.gang is not None and not parked.is_fault]


def has_orphans(cluster: Cluster) -> bool:
    """Tell whether a node is on its way that no plan waits for: a gang may need fewer nodes once it is there."""
    return any(
        not claim.is_true("Registered") and not cluster.is_launching(claim.name)
        for claim in cluster.related.node_claims.values()
    )


def buy_for_gang(
    cycle: Cycle, rehearsal: Rehearsal, gang: GangEntry, situation: Situation, timeout: float
) -> list[Decision]:
    """Ask for all nodes that a gang needs, and let its members hold them; nothing if no kind of node would do."""
    cluster = cycle.cluster
    pods = [entry.record.pod for entry in gang.entries.values()]
    snapshot = Snapshot(situation)
    lots = sorted(_lots(snapshot, pods), key=lambda lot: (-lot.template.pool.spec.weight, lot.price, lot.kind.name))
    for lot in islice(lots, MOST_TRIES):
        offer = offer_of_type(lot.template.pool, lot.kind, lot.offering, lot.labels)
        found = _try(cluster, rehearsal, pods, lot, offer)
        if found is not None and _is_within_limits(snapshot, lot, len(set(found.offers.values()))):
            return _adopt(cycle, gang, lot, offer, found, timeout)
    return []


def _lots(snapshot: Snapshot, pods: Sequence[Pod]) -> Iterator[Lot]:
    """Every kind of node on which each member fits by its size, and how many of them the gang takes by itself."""
    requests = [requests_of(pod) for pod in pods]
    names = {name for each in requests for name in each}
    total = {name: sum(each.get(name, 0) for each in requests) for name in names}
    largest = {name: max(each.get(name, 0) for each in requests) for name in names}
    for template in snapshot.templates:
        for row in template.options.tolist():
            kind = template.columns.types[row]
            room = snapshot.resources.amounts(template.room[row])
            if any(amount > room.get(name, 0) for name, amount in largest.items()):
                continue
            together = min(room[name] // amount for name, amount in largest.items() if amount)
            by_size = max(-(-amount // room[name]) for name, amount in total.items() if amount)
            together = max(1, min(together, room.get(PODS, len(pods))))
            count = max(by_size, -(-len(pods) // together)) if len(set(map(_key, requests))) == 1 else by_size
            for offering in kind.offerings:
                if offering.available and template.requirements.accepts(offering.requirements, WELL_KNOWN):
                    for labels in _domains(template, kind):
                        yield Lot(template, kind, offering, labels, max(1, count))


def _key(requests: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(requests.items()))


def _domains(template: Template, kind: InstanceType) -> Iterator[dict[str, str]]:
    """The labels that nodes of a type can have, where there is a choice: each choice by itself."""
    allowed = template.requirements.merged(kind.requirements)
    choices = {
        key: sorted(requirement.values)
        for key, requirement in allowed.items()
        if not requirement.excludes and requirement.values and key not in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE, HOSTNAME)
    }
    combinations = product(*choices.values())
    return (dict(zip(choices, values, strict=True)) for values in islice(combinations, MOST_DOMAINS))


def _try(cluster: Cluster, rehearsal: Rehearsal, pods: Sequence[Pod], lot: Lot, offer: NodeOffer) -> Rehearsed | None:
    """Where the members would go with a lot; fewer nodes are tried first where there are some without pods."""
    idle = sum(
        not cluster.pods.on_row.get(row)
        and (cluster.nodes.node(row).metadata.labels or {}).get(INSTANCE_TYPE) == lot.kind.name
        for row in cluster.nodes.live_rows().tolist()
    )
    for count in sorted({max(1, lot.count - idle), lot.count}):
        with cluster.what_if():
            found = rehearsal.place(cluster, pods, None, [offer] * count)
        if not found.problem and len(found.rows) == len(pods):
            return found
    return None


def _is_within_limits(snapshot: Snapshot, lot: Lot, count: int) -> bool:
    """Tell whether a NodePool may have so many more nodes of a type."""
    limits = amounts_of(lot.template.pool.spec.limits)
    if not limits:
        return True
    used: dict[str, int] = {}
    for machine in snapshot.machines:
        if machine.pool == lot.template.name and not machine.is_deleting:
            for name, amount in machine.capacity.items():
                used[name] = used.get(name, 0) + amount
    more = {**{name: amount * count for name, amount in lot.kind.capacity.items()}, "nodes": count}
    return all(used.get(name, 0) + more.get(name, 0) <= limit for name, limit in limits.items())


def _adopt(
    cycle: Cycle, gang: GangEntry, lot: Lot, offer: NodeOffer, found: Rehearsed, timeout: float
) -> list[Decision]:
    """Let the members hold their nodes, together with the rows of nodes that exist."""
    used = {at: index for index, at in enumerate(sorted(set(found.offers.values())))}
    holds = tuple(
        Held(key, UNBOUND, offer=used[found.offers[key]]) if key in found.offers else Held(key, row)
        for key, row in found.rows.items()
    )
    message = (
        f"gang {gang.name} waits for {len(used)} new nodes of NodePool {lot.template.name} "
        f"({lot.kind.name}, {lot.offering.zone}, {lot.offering.capacity_type})"
    )
    plan = Plan(
        Reason.SCALE_UP,
        holds,
        gang=gang.root.key,
        opens=(offer,) * len(used),
        until=cycle.now + timeout,
        message=message,
        subject=subject_of(lot.template.name),
        cost=lot.offering.price * len(used),
    )
    entries = [gang.entries[key] for key in found.rows]
    cycle.queue.take(gang)
    for entry in entries:
        cycle.queue.set_aside(entry)
    return [*begin(cycle.cluster, plan)[1], *(Wait(entry.record.key, message) for entry in entries)]
