"""What of a workload is to be placed in the topologies of its flavors, once it has these."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mooring.actions.admit.quota.structure import Queue
from mooring.actions.admit.quota.workload_info import PodSetClaim, PodSetRequest
from mooring.actions.admit.topology.assigner import PodSetNeed
from mooring.actions.admit.topology.flavor import FlavorTopology
from mooring.actions.admit.topology.request import PodSetTopologyRequest
from mooring.actions.admit.topology.usage import DomainUsage, TopologyUse
from mooring.model.decisions import PodSetFlavors


class Unplaceable(NamedTuple):
    """A pod set whose flavors leave it without a topology, or with more than one."""

    pod_set: str
    message: str


def request_in(queue: Queue, pod_set: PodSetRequest) -> PodSetTopologyRequest | None:
    """What a pod set asks of the topology in a queue; None if it is not placed there."""
    if pod_set.topology.is_explicit:
        return pod_set.topology
    return pod_set.topology.implied() if queue.is_topology_only else None


def flavor_mismatch(
    queue: Queue,
    flavor: str,
    covered: frozenset[str],
    pod_set: PodSetRequest,
    topologies: Mapping[str, FlavorTopology],
) -> str:
    """Say why pods cannot use a flavor because it has a topology or has none; empty if they can."""
    if flavor not in queue.topology_flavors:
        # A flavor of something that nodes do not have is for quota alone.
        may_use = not pod_set.topology.is_explicit or covered.isdisjoint(pod_set.on_node)
        return "" if may_use else f'Flavor "{flavor}" does not support TopologyAwareScheduling'
    if not pod_set.topology.is_explicit and not queue.is_topology_only:
        return f'Flavor "{flavor}" supports only TopologyAwareScheduling'
    if flavor not in topologies:
        return f'Flavor "{flavor}" information missing in TAS cache'
    if not pod_set.topology.is_within(topologies[flavor].levels):
        return f'Flavor "{flavor}" does not contain the requested level'
    return ""


def needs_of(
    queue: Queue, requests: Iterable[PodSetRequest], pod_sets: Sequence[PodSetFlavors]
) -> list[PodSetNeed] | Unplaceable:
    """The pod sets to be placed, with the flavors that they were given, in the order in which they are placed."""
    given = {found.name: found for found in pod_sets}
    needs = []
    for pod_set in requests:
        request, flavors = request_in(queue, pod_set), given.get(pod_set.name)
        if request is None or flavors is None or not flavors.count:
            continue
        named = sorted(queue.topology_flavors & set(flavors.flavors.values()))
        if not named:
            return Unplaceable(pod_set.name, "no TAS flavor assigned")
        if len(named) > 1:
            return Unplaceable(pod_set.name, f"more than one TAS flavor assigned: {', '.join(named)}")
        needs.append(
            PodSetNeed(pod_set.name, named[0], flavors.count, pod_set.on_node, pod_set.spec, pod_set.selection, request)
        )
    return needs


def held_use(
    usage: DomainUsage,
    topology_flavors: frozenset[str],
    requests: Iterable[PodSetRequest],
    claims: Iterable[PodSetClaim],
) -> TopologyUse:
    """What a workload uses of the domains that it was assigned."""
    per_pod = {found.name: found.on_node for found in requests}
    return tuple(
        use
        for claim in claims
        if claim.pods.topology is not None and claim.pods.name in per_pod
        for flavor in sorted(topology_flavors & set(claim.pods.flavors.values()))[:1]
        for use in usage.use_of(flavor, claim.pods.topology, per_pod[claim.pods.name])
    )
