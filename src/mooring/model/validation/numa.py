"""Checks of NodeResourceTopology: what a node says of its NUMA zones."""

from mooring.model.api.node_resource_topology import NodeResourceTopology, Zone
from mooring.model.numa.zones import NODE_ZONE, OLD_POLICIES, zone_number
from mooring.model.places import show
from mooring.model.validation.terms import Subject, check_choice, check_quantity


def check_node_topology(subject: Subject, found: NodeResourceTopology) -> None:
    """Attributes may say anything: who reads them passes over what it does not know."""
    for index, policy in enumerate(found.topology_policies or ()):
        check_choice(subject, f"topologyPolicies[{index}]", policy, ("None", *OLD_POLICIES))
    seen: set[str] = set()
    for index, zone in enumerate(found.zones or ()):
        path = f"zones[{index}]"
        if zone.name in seen:
            subject.refuse(f"{path}.name", expected="a name of its own", found=show(zone.name))
        seen.add(zone.name)
        _check_zone(subject, path, zone)


def _check_zone(subject: Subject, path: str, zone: Zone) -> None:
    if zone.type == NODE_ZONE and zone_number(zone.name) is None:
        subject.refuse(f"{path}.name", expected="the number of a NUMA node, such as node-0", found=show(zone.name))
    for index, resource in enumerate(zone.resources or ()):
        for field in ("capacity", "allocatable", "available"):
            nanos = check_quantity(subject, f"{path}.resources[{index}].{field}", getattr(resource, field))
            if nanos < 0:
                subject.refuse(
                    f"{path}.resources[{index}].{field}", expected="0 or more", found=show(getattr(resource, field))
                )
    for index, cost in enumerate(zone.costs or ()):
        if cost.value < 0:
            subject.refuse(f"{path}.costs[{index}].value", expected="0 or more", found=show(cost.value))
