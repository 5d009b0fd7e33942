"""What the NUMA zones of a node lend to batch pods: as the node does, with everything divided among its zones."""

from collections.abc import Iterable, Sequence

import msgspec

from mooring.model.api.meta import KubeObject
from mooring.model.api.node_resource_topology import NodeResourceTopology, Zone
from mooring.model.api.pods import Pod
from mooring.model.colocation.amounts import NOTHING, Amount, amount_of
from mooring.model.colocation.classes import MID, PROD
from mooring.model.colocation.node_resources import Situation, Sums, Use
from mooring.model.values.requests import CPU, MEMORY

RESOURCE_STATUS_ANNOTATION = "scheduling.koordinator.sh/resource-status"


class _NumaNode(KubeObject):
    node: int = 0


class _ResourceStatus(KubeObject):
    numa_node_resources: list[_NumaNode] | None = None


def zones_of(topology: NodeResourceTopology | None) -> list[Zone]:
    """The zones that have CPU or memory; each is the NUMA node of its position."""
    found = (topology.zones or ()) if topology is not None else ()
    return [zone for zone in found if any(one.name in (CPU, MEMORY) for one in zone.resources or ())]


def zone_sums(of: Situation, zones: Sequence[Zone]) -> list[Sums]:
    """What is taken off in each zone, in their order."""
    count = len(zones)
    reserved, system = of.reserved.divided(count), of.system(PROD, MID).divided(count)
    requested, used, most = ([NOTHING] * count for _ in range(3))
    for use in of.uses:
        inside = _numa_nodes(use, count)
        for index in inside:
            requested[index] = requested[index].plus(use.requested.divided(len(inside)))
            used[index] = used[index].plus(use.used.divided(len(inside)))
            most[index] = most[index].plus(use.most.divided(len(inside)))
    taken = zip(zones, requested, used, most, strict=True)
    return [Sums(_capacity(zone), reserved, system, *sums) for zone, *sums in taken]


def _capacity(zone: Zone) -> Amount:
    return amount_of({one.name: one.allocatable for one in zone.resources or ()})


def _numa_nodes(use: Use, count: int) -> Sequence[int]:
    """Where a pod was given its CPUs and memory; in all zones alike if nobody says."""
    named = _named(use.pod) if use.pod is not None else ()
    return sorted({index for index in named if 0 <= index < count}) if named else range(count)


def _named(pod: Pod) -> Iterable[int]:
    text = (pod.metadata.annotations or {}).get(RESOURCE_STATUS_ANNOTATION)
    if not text:
        return ()
    try:
        status = msgspec.json.decode(text, type=_ResourceStatus)
    except msgspec.DecodeError:
        return ()
    return [found.node for found in status.numa_node_resources or ()]
