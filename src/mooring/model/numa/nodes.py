"""How the cluster comes to know a node's kubelet: two annotations of the Node, or a NodeResourceTopology.

What a pod is given goes back as an annotation with its binding: `ALLOCATION`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from mooring.model.api.node_resource_topology import Attribute, NodeResourceTopology, Zone
from mooring.model.numa.ask import HUGEPAGES
from mooring.model.numa.documents import (
    KubeletDocument,
    MachineDocument,
    machine_of,
    settings_of,
)
from mooring.model.numa.kubelet import Kubelet
from mooring.model.numa.machine import Core, Device, Machine, NumaNode, bits
from mooring.model.numa.settings import CPU_OPTIONS, KubeletSettings
from mooring.model.numa.zones import NODE_ZONE, POLICIES, UNKNOWN_DISTANCE, zone_number, zones_of
from mooring.model.values.quantity import QuantityError, parse_quantity, to_units
from mooring.model.values.requests import CPU, MEMORY

MACHINE = "mooring.dev/machine"
KUBELET = "mooring.dev/kubelet"
ALLOCATION = "mooring.dev/numa-allocation"


class WrongAnnotation(ValueError):
    """An annotation of a Node that cannot be used: which, what was expected, what was found."""

    def __init__(self, key: str, expected: str, found: str) -> None:
        super().__init__(f"{key}: expected {expected}, found {found}")
        self.key, self.expected, self.found = key, expected, found


def kubelet_of_annotations(annotations: Mapping[str, str]) -> Kubelet | None:
    """Raise WrongAnnotation if they make no kubelet; None if they say nothing.

    Equal ones get one and the same kubelet.
    """
    machine, settings = annotations.get(MACHINE), annotations.get(KUBELET)
    if machine is None and settings is None:
        return None
    return _kubelet_of(machine or "", settings or "")


def kubelet_of_topology(found: NodeResourceTopology) -> Kubelet | None:
    """What of a kubelet's managers can be read off its zones; None without zones."""
    try:
        return _kubelet_of_zones(
            msgspec.msgpack.encode((found.topology_policies, found.attributes, _plain(found.zones)))
        )
    except QuantityError:
        return None  # refused where it comes from a file; a cluster's may have it, and says nothing by it


def _plain(zones: list[Zone] | None) -> list[Zone]:
    """Zones without what changes with every pod: what is taken is counted here."""
    plain = []
    for zone in zones or ():
        resources = [replace(resource, available="0") for resource in zone.resources or ()]
        plain.append(replace(zone, resources=resources))
    return plain


@lru_cache(maxsize=1024)
def _kubelet_of(machine: str, settings: str) -> Kubelet:
    """From the texts of the two annotations."""
    if not machine:
        raise WrongAnnotation(MACHINE, f"a machine, since {KUBELET} is given", "none")
    described = _decode(MACHINE, machine, MachineDocument)
    if not described.numa and described.regular is None:
        raise WrongAnnotation(MACHINE, "`numa` or `regular`", "neither")
    built = machine_of(described)
    if not built.cores:
        raise WrongAnnotation(MACHINE, "at least one core", "none")
    configured = _decode(KUBELET, settings, KubeletDocument) if settings else KubeletDocument()
    if configured.topology_manager_policy not in POLICIES:
        raise WrongAnnotation(
            KUBELET, f"topologyManagerPolicy {' or '.join(POLICIES)}", configured.topology_manager_policy
        )
    for name in configured.cpu_manager_policy_options:
        if name not in CPU_OPTIONS:
            raise WrongAnnotation(KUBELET, f"cpuManagerPolicyOptions of {', '.join(CPU_OPTIONS)}", name)
    read = settings_of(configured)
    problem = read.refuses_to_start(built)
    if problem:
        raise WrongAnnotation(KUBELET, "a configuration with which a kubelet starts", problem)
    return Kubelet(built, read)


_DECODER = msgspec.msgpack.Decoder(tuple[list[str] | None, list[Attribute] | None, list[Zone]])
_Read = TypeVar("_Read")


def _decode(key: str, text: str, type_: type[_Read]) -> _Read:
    try:
        return msgspec.json.decode(text, type=type_, strict=True)
    except (msgspec.DecodeError, ValueError) as error:
        raise WrongAnnotation(key, f"a JSON document ({type_.__name__})", str(error)) from error


@lru_cache(maxsize=1024)
def _kubelet_of_zones(text: bytes) -> Kubelet | None:
    """Zones say how many CPUs they have, not which: one core each, numbered zone by zone."""
    policies, attributes, listed_zones = _DECODER.decode(text)
    found = NodeResourceTopology(topology_policies=policies, attributes=attributes, zones=listed_zones)
    described = zones_of(found)
    zones = [zone for zone in found.zones or () if zone.type == NODE_ZONE and zone_number(zone.name) is not None]
    if not zones:
        return None
    nodes: list[NumaNode] = []
    cores: list[Core] = []
    devices: dict[str, list[Device]] = {}
    reserved_cpus, reserved_memory = 0, dict[int, dict[str, int]]()
    for zone, left in zip(zones, described.zones, strict=True):
        number = left.number
        pinned: dict[str, int] = {}
        for resource in zone.resources or ():
            has = to_units(parse_quantity(resource.capacity))
            usable = to_units(parse_quantity(resource.allocatable))
            if resource.name == CPU:
                first = len(cores)
                cores += [Core(1 << cpu, number, number, number) for cpu in range(first, first + has)]
                reserved_cpus |= bits(range(first, first + has - usable))
            elif resource.name == MEMORY or resource.name.startswith(HUGEPAGES):
                pinned[resource.name] = has
                reserved_memory.setdefault(number, {})[resource.name] = has - usable
            else:
                listed = devices.setdefault(resource.name, [])
                listed += [Device(f"{resource.name}-{number}-{n}", 1 << number) for n in range(usable)]
        pages = tuple((name, size) for name, size in pinned.items() if name != MEMORY)
        distances = tuple(left.distances.get(other.number, UNKNOWN_DISTANCE) for other in described.zones)
        nodes.append(NumaNode(number, pinned.get(MEMORY, 0) + sum(size for _, size in pages), pages, distances))
    settings = KubeletSettings(
        topology_policy=described.policy,
        topology_scope=described.scope,
        max_numa_nodes=max(described.most_numa_nodes, len(nodes)),
        static_cpus=bool(cores),
        reserved_cpus=reserved_cpus,
        static_memory=any(node.memory for node in nodes),
        reserved_memory=reserved_memory,
    )
    machine = Machine(tuple(nodes), tuple(cores), {name: tuple(listed) for name, listed in devices.items()})
    return Kubelet(machine, settings)
