"""A device, the pools of devices that a node can reach, and an inventory of all of them: values without a node's name.

Thousands of nodes have the same devices, so inventories are interned: what is computed for one serves all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from mooring.model.api.devices import CapacityRequestPolicy, DeviceTaint
from mooring.model.api.meta import NodeSelector
from mooring.model.values.quantity import Nanos

Attribute: TypeAlias = tuple[Literal["int", "bool", "string", "version"], int | bool | str]
"""A value with its type: values of different types are never equal."""
Counters: TypeAlias = Mapping[str, Nanos]


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much of something a device has, and which requests for a part of it are allowed."""

    value: Nanos
    policy: CapacityRequestPolicy | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Device:
    """One device as it is described; which node it is on is not part of it. Two are the same only as one object."""

    name: str
    driver: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    """By name, with the domain where it was written with one."""
    capacity: Mapping[str, Capacity] = field(default_factory=dict)
    consumes: tuple[tuple[str, Counters], ...] = ()
    """(counter set, how much of each of its counters)."""
    taints: tuple[DeviceTaint, ...] = ()
    is_shared: bool = False
    """allowMultipleAllocations: it is given out by amounts."""
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    is_tied: bool = True
    """Whoever has it has to run on this very node; else wherever `node_selector` allows."""
    node_selector: NodeSelector | None = None
    is_here: bool = True
    """False for a device of a slice with per-device node selection that cannot be reached from this node."""

    def attribute(self, name: str) -> Attribute | None:
        """Look up an attribute by its full name; what the driver wrote without a domain is in the driver's."""
        found = self.attributes.get(name)
        if found is not None:
            return found
        domain, slash, short = name.partition("/")
        return self.attributes.get(short) if slash and domain == self.driver else None


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """The devices of one pool as far as a node can reach them."""

    driver: str
    name: str
    """Empty if the pool is on one node only: then its name is the node's business (`NodeDevices.pool_names`)."""
    devices: tuple[Device, ...] = ()
    elsewhere: tuple[Device, ...] = ()
    """Those that this node cannot reach; they draw on the same counters."""
    counter_sets: Mapping[str, Counters] = field(default_factory=dict)
    is_incomplete: bool = False
    """Some of its slices are not there yet: nothing is allocated from it."""
    invalid: str = ""
    """Why nothing is allocated from it, if its slices contradict each other."""

    @property
    def is_usable(self) -> bool:
        return not self.is_incomplete and not self.invalid


@dataclass(frozen=True, eq=False)
class Inventory:
    """All pools that a node can reach, in the order in which devices are tried.

    Devices are numbered through, pool by pool, those elsewhere last: a set of them is an integer, one bit a device.
    """

    number: int
    pools: tuple[Pool, ...]

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """By position."""
        here = [device for pool in self.pools for device in pool.devices]
        return (*here, *(device for pool in self.pools for device in pool.elsewhere))

    @cached_property
    def pool_of(self) -> tuple[int, ...]:
        """By position, which pool."""
        here = [index for index, pool in enumerate(self.pools) for _ in pool.devices]
        return (*here, *(index for index, pool in enumerate(self.pools) for _ in pool.elsewhere))

    @cached_property
    def position_of(self) -> Mapping[tuple[int, str], int]:
        """By pool and the device's name; if one elsewhere is called the same, the one that can be reached."""
        names = zip(self.pool_of, (device.name for device in self.devices), strict=True)
        return {each: position for position, each in reversed(list(enumerate(names)))}

    @cached_property
    def driving_away(self) -> tuple[tuple[int, DeviceTaint], ...]:
        """By position, taints that whoever has the device may have to leave for."""
        listed = [(position, taint) for position, device in enumerate(self.devices) for taint in device.taints]
        return tuple((position, taint) for position, taint in listed if taint.effect == "NoExecute")

    @cached_property
    def here(self) -> int:
        """How many devices can be reached; their positions come first."""
        return sum(len(pool.devices) for pool in self.pools)


NO_DEVICES = Inventory(0, ())
