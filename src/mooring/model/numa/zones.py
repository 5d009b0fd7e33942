"""A NodeResourceTopology read as NodeResourceTopologyMatch reads it: zones, policy and scope."""

from dataclasses import dataclass, field

from mooring.model.api.node_resource_topology import NodeResourceTopology
from mooring.model.values.quantity import parse_quantity

NODE_ZONE = "Node"
UNKNOWN_DISTANCE = 255
SINGLE_NUMA_NODE = "single-numa-node"
POLICIES = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
SCOPES = ("container", "pod")
MOST_NUMA_NODES = 8

# The older field says policy and scope in one word.
OLD_POLICIES = {
    "SingleNUMANodePodLevel": (SINGLE_NUMA_NODE, "pod"),
    "SingleNUMANodeContainerLevel": (SINGLE_NUMA_NODE, "container"),
    "SingleNUMANode": (SINGLE_NUMA_NODE, "container"),
    "Restricted": ("restricted", "container"),
    "RestrictedContainerLevel": ("restricted", "container"),
    "RestrictedPodLevel": ("restricted", "pod"),
    "BestEffort": ("best-effort", "container"),
    "BestEffortContainerLevel": ("best-effort", "container"),
    "BestEffortPodLevel": ("best-effort", "pod"),
}


@dataclass
class ZoneLeft:
    """What is left in one zone, in billionths."""

    number: int
    left: dict[str, int]
    distances: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeZones:
    policy: str
    scope: str
    most_numa_nodes: int
    zones: tuple[ZoneLeft, ...]
    """In the order of the object's list."""

    def copies(self) -> list[ZoneLeft]:
        return [ZoneLeft(zone.number, dict(zone.left), zone.distances) for zone in self.zones]


def zones_of(found: NodeResourceTopology) -> NodeZones:
    policy, scope = OLD_POLICIES.get((found.topology_policies or [""])[0], ("none", "container"))
    most = MOST_NUMA_NODES
    for attribute in found.attributes or ():
        if attribute.name == "topologyManagerPolicy" and attribute.value in POLICIES:
            policy = attribute.value
        elif attribute.name == "topologyManagerScope" and attribute.value in SCOPES:
            scope = attribute.value
        elif attribute.name == "topologyManagerMaxNUMANodes" and attribute.value.isdigit() and int(attribute.value) > 1:
            most = int(attribute.value)
    zones = []
    for zone in found.zones or ():
        number = zone_number(zone.name)
        if zone.type == NODE_ZONE and number is not None:
            left = {resource.name: int(parse_quantity(resource.available)) for resource in zone.resources or ()}
            named = [(zone_number(cost.name), cost.value) for cost in zone.costs or ()]
            zones.append(ZoneLeft(number, left, {other: cost for other, cost in named if other is not None}))
    return NodeZones(policy, scope, most, tuple(zones))


def zone_number(name: str) -> int | None:
    """`node-3` is NUMA node 3."""
    prefix, _, number = name.rpartition("-")
    return int(number) if prefix == "node" and number.isdigit() else None
