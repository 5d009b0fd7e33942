"""The devices of nodes that claims have, as a map: which device, what of it, and which pod's claim."""

from collections.abc import Iterator

from msgspec import Struct

from mooring.model.devices.device import Device
from mooring.model.devices.sharing_strategies import sharing_words
from mooring.model.values.quantity import quantity_text
from mooring.state.cluster import Cluster
from mooring.state.devices.table import DeviceShare


class DeviceHolder(Struct, rename="camel", omit_defaults=True):
    """A claim that has a device, or amounts of it."""

    claim: str
    """namespace/name"""
    pods: list[str]
    """namespace/name of those that the claim is reserved for."""
    amounts: dict[str, str] = {}
    sharing: str = ""
    """How its pods share it, if NVIDIA's driver is told so: TimeSlicing or MPS."""


class DeviceUse(Struct, rename="camel", omit_defaults=True):
    """One device."""

    name: str
    holders: list[DeviceHolder] = []
    taints: list[str] = []
    """key:effect"""
    drawn_on: bool = False
    """No claim has it, and none can: what it draws on, or something of its card, is taken by others."""


class DevicePool(Struct, rename="camel"):
    driver: str
    pool: str
    devices: list[DeviceUse]


class NodeDevices(Struct, rename="camel"):
    """The devices that a node reaches."""

    node: str
    pools: list[DevicePool]


def device_maps(cluster: Cluster) -> list[NodeDevices]:
    """The nodes on which any claim has a device, in the order of their names."""
    return sorted(_maps(cluster), key=lambda found: found.node)


def _maps(cluster: Cluster) -> Iterator[NodeDevices]:
    for row, found in cluster.devices.on_row.items():
        state = cluster.devices.of_row(row)
        if not any(state.in_use >> at & 1 and device.is_here for at, device in enumerate(found.inventory.devices)):
            continue
        pools = [
            DevicePool(pool.driver, name, [_use(cluster, row, name, each) for each in pool.devices if each.is_here])
            for pool, name in zip(found.inventory.pools, found.pool_names, strict=True)
        ]
        yield NodeDevices(cluster.nodes.name(row), [pool for pool in pools if pool.devices])


def _use(cluster: Cluster, row: int, pool: str, device: Device) -> DeviceUse:
    shares = cluster.devices.holders(device.driver, pool, device.name)
    return DeviceUse(
        device.name,
        [_holder(cluster, str(claim), device.name, share) for claim, share in shares.items()],
        [f"{taint.key}:{taint.effect}" for taint in device.taints],
        not shares and (_is_withheld(cluster, row, pool, device) or not _fits(cluster, row, pool, device)),
    )


def _holder(cluster: Cluster, claim: str, device: str, share: DeviceShare) -> DeviceHolder:
    amounts = {name: quantity_text(amount) for name, amount in share.amounts or ()}
    state = cluster.claims.state(claim)
    return DeviceHolder(claim, sorted(state.users), amounts, sharing_words(state.allocation, device))


def _is_withheld(cluster: Cluster, row: int, pool: str, device: Device) -> bool:
    """Whether pods have something of the card that a device is."""
    found = cluster.devices.on_row[row]
    position = found.inventory.position_of[found.pool_index[device.driver, pool], device.name]
    return bool(cluster.devices.of_row(row).taken.withheld >> position & 1)


def _fits(cluster: Cluster, row: int, pool_name: str, device: Device) -> bool:
    """Whether the counters that a device draws on still have as much."""
    found = cluster.devices.on_row[row]
    index = found.pool_index[device.driver, pool_name]
    pool = found.inventory.pools[index]
    for name, asked in device.consumes:
        left: dict[str, int] = dict(pool.counter_sets[name])
        for other in (*pool.devices, *pool.elsewhere):
            if cluster.devices.holders(device.driver, pool_name, other.name):
                for counter, amount in dict(other.consumes).get(name, {}).items():
                    left[counter] -= amount
        if any(amount > left[counter] for counter, amount in asked.items()):
            return False
    return True
