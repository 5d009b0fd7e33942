"""Machines and kubelet configurations as documents.

A machine is a document of ours, since no Kubernetes kind says which CPU is in which core; a kubelet's settings are the
fields of a KubeletConfiguration, of which those that do not decide here are left alone.
"""

import msgspec

from mooring.model.api.meta import QuantityText, Resources
from mooring.model.numa.machine import Core, Device, Machine, NumaNode, bits, parse_cpu_set
from mooring.model.numa.settings import CPU_OPTIONS, MAX_NUMA_NODES, CpuOptions, KubeletSettings
from mooring.model.values.quantity import NANO, parse_quantity, to_units
from mooring.model.values.requests import CPU


class _Document(msgspec.Struct, rename="camel"):
    pass


class CoreDocument(_Document):
    cpus: list[int]
    socket: int = 0
    uncore_cache: int | None = None


class NumaDocument(_Document):
    id: int
    memory: QuantityText = "0"
    hugepages: dict[str, int] = {}
    distances: list[int] = []
    cores: list[CoreDocument] = []


class DeviceDocument(_Document):
    id: str
    numa: list[int] = []
    unhealthy: bool = False


class RegularDocument(_Document):
    """A machine whose NUMA nodes are all alike; CPUs are numbered as most machines do, second threads last."""

    sockets: int = 1
    numa_per_socket: int = 1
    cores_per_numa: int = 1
    threads_per_core: int = 2
    memory_per_numa: QuantityText = "0"
    devices_per_numa: dict[str, int] = {}


class MachineDocument(_Document):
    """Either every NUMA node by itself, or `regular`."""

    numa: list[NumaDocument] = []
    devices: dict[str, list[DeviceDocument]] = {}
    regular: RegularDocument | None = None


class MemoryReservation(_Document):
    numa_node: int
    limits: Resources


class KubeletDocument(_Document):
    """As in `kubelet.config.k8s.io/v1beta1`."""

    topology_manager_policy: str = "none"
    topology_manager_scope: str = "container"
    topology_manager_policy_options: dict[str, str] = {}
    cpu_manager_policy: str = "none"
    cpu_manager_policy_options: dict[str, str] = {}
    reserved_system_cpus: str = msgspec.field(default="", name="reservedSystemCPUs")
    kube_reserved: Resources = {}
    system_reserved: Resources = {}
    memory_manager_policy: str = "None"
    reserved_memory: list[MemoryReservation] = []


def machine_of(document: MachineDocument) -> Machine:
    if document.regular is not None:
        return _regular(document.regular)
    nodes = [
        NumaNode(
            number=node.id,
            memory=to_units(parse_quantity(node.memory)),
            hugepages=tuple(
                (f"hugepages-{size}", to_units(parse_quantity(size)) * pages) for size, pages in node.hugepages.items()
            ),
            distances=tuple(node.distances),
        )
        for node in document.numa
    ]
    cores = [
        Core(bits(core.cpus), core.socket, node.id, core.socket if core.uncore_cache is None else core.uncore_cache)
        for node in document.numa
        for core in node.cores
    ]
    devices = {
        resource: tuple(Device(each.id, bits(each.numa), healthy=not each.unhealthy) for each in listed)
        for resource, listed in document.devices.items()
    }
    return Machine(tuple(nodes), tuple(cores), devices)


def _regular(document: RegularDocument) -> Machine:
    count = document.sockets * document.numa_per_socket
    all_cores = count * document.cores_per_numa
    memory = to_units(parse_quantity(document.memory_per_numa))
    nodes, cores = [], []
    devices: dict[str, list[Device]] = {resource: [] for resource in document.devices_per_numa}
    for number in range(count):
        socket = number // document.numa_per_socket
        near = [
            10 if other == number else 12 if other // document.numa_per_socket == socket else 21
            for other in range(count)
        ]
        nodes.append(NumaNode(number, memory, distances=tuple(near)))
        for core in range(number * document.cores_per_numa, (number + 1) * document.cores_per_numa):
            threads = bits(core + thread * all_cores for thread in range(document.threads_per_core))
            cores.append(Core(threads, socket, number, socket))
        for resource, each in document.devices_per_numa.items():
            short = resource.rpartition("/")[2]
            devices[resource] += [Device(f"{short}-{number * each + n}", 1 << number) for n in range(each)]
    return Machine(tuple(nodes), tuple(cores), {resource: tuple(found) for resource, found in devices.items()})


def settings_of(document: KubeletDocument) -> KubeletSettings:
    options = document.topology_manager_policy_options
    reserved = [parse_quantity(amounts.get(CPU, "0")) for amounts in (document.kube_reserved, document.system_reserved)]
    return KubeletSettings(
        topology_policy=document.topology_manager_policy,
        topology_scope=document.topology_manager_scope,
        prefer_closest=_is_true(options.get("prefer-closest-numa-nodes", "")),
        max_numa_nodes=int(options.get("max-allowable-numa-nodes", MAX_NUMA_NODES)),
        static_cpus=document.cpu_manager_policy == "static",
        cpu_options=CpuOptions(
            **{CPU_OPTIONS[name]: _is_true(value) for name, value in document.cpu_manager_policy_options.items()}
        ),
        names_cpu_options=bool(document.cpu_manager_policy_options),
        reserved_cpus=parse_cpu_set(document.reserved_system_cpus),
        reserved_cpu_count=-(-sum(reserved) // NANO),
        static_memory=document.memory_manager_policy == "Static",
        reserved_memory={
            reservation.numa_node: {name: to_units(parse_quantity(text)) for name, text in reservation.limits.items()}
            for reservation in document.reserved_memory
        },
    )


def _is_true(value: str) -> bool:
    return value.lower() in ("true", "t", "1")
