"""ResourceSlices as a node sees them: which pools it can reach, whether they are whole, and what is in them.

The rules are those of Kubernetes' allocator. Of a pool the newest generation counts; it is complete if there are as
many slices of it as they say; slices that contradict each other make it invalid, and then nothing is allocated from it.
"""

from collections.abc import Iterable, Mapping, Sequence, Set

import msgspec
from msgspec.structs import replace

from mooring.model.api.devices import (
    Counter,
    DeviceAttribute,
    DeviceTaint,
    DeviceTaintRule,
    PublishedDevice,
    ResourceSlice,
)
from mooring.model.api.meta import Labels, NodeSelector
from mooring.model.devices.device import Attribute, Capacity, Counters, Device, Pool
from mooring.model.devices.joining import INDEXES
from mooring.model.devices.reading import EVERYTHING
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.selectors import compile_node_selector, matches_any_term

_encode = msgspec.msgpack.Encoder().encode


class PoolReader:
    """Makes pools of slices; equal ones become one object, and so do equal devices."""

    def __init__(self) -> None:
        self._devices: dict[tuple[str, bytes], tuple[Device, ...]] = {}
        self._pools: dict[tuple[object, ...], Pool] = {}
        self.rules: Mapping[str, DeviceTaintRule] = {}
        self._read = frozenset(INDEXES)

    def read(self, names: Set[str]) -> bool:
        """From now on devices differ also by these attributes; whether they did not before."""
        is_news = not names <= self._read and EVERYTHING not in self._read
        if is_news:
            self._read |= names
            self._devices.clear()
            self._pools.clear()
        return is_news

    def pool(self, slices: Sequence[ResourceSlice], node: str, labels: Labels) -> Pool | None:
        """One pool, given all of its slices, as a node sees it; None if it can reach nothing of it."""
        known = [found for found in slices if not _has_compatibility_groups(found)]
        relevant = [found for found in known if is_relevant(found, node, labels)]
        if not relevant:
            return None
        generation = max(found.spec.pool.generation for found in relevant)
        near = [found for found in relevant if found.spec.pool.generation == generation]
        count = near[0].spec.pool.resource_slice_count
        all_of_it = near
        if len(near) != count:
            if any(found.spec.pool.generation > generation for found in slices):
                return None  # the driver is replacing it, by one that this node does not see
            all_of_it = [found for found in known if found.spec.pool.generation == generation]
        name = "" if is_local(slices) else near[0].spec.pool.name
        return self._build(near, all_of_it, name, node, labels, is_complete=len(all_of_it) == count)

    def _build(
        self,
        near: Sequence[ResourceSlice],
        all_of_it: Sequence[ResourceSlice],
        name: str,
        node: str,
        labels: Labels,
        *,
        is_complete: bool,
    ) -> Pool:
        driver = near[0].spec.driver
        if not is_complete:
            return self._interned((driver, name, "incomplete"), Pool(driver, name, is_incomplete=True))
        near_names = {found.metadata.name for found in near}
        far = [found for found in all_of_it if found.metadata.name not in near_names]
        counting = [found for found in (*_by_name(near), *far) if found.spec.shared_counters]
        here = [self._devices_of(found, node, labels) for found in _by_name(near) if not found.spec.shared_counters]
        elsewhere = [self._devices_of(found, node, labels) for found in far if not found.spec.shared_counters]
        counters = _encode([found.spec.shared_counters for found in counting])
        key = (driver, name, tuple(map(id, here)), tuple(map(id, elsewhere)), counters)
        known = self._pools.get(key)
        if known is not None:
            return known
        devices = tuple(device for part in here for device in part)
        others = tuple(device for part in elsewhere for device in part)
        sets, invalid = _counter_sets(counting)
        invalid = _duplicate(devices) or invalid or _unknown_counter(sets, (*devices, *others))
        made = Pool(driver, name, invalid=invalid) if invalid else Pool(driver, name, devices, others, sets)
        return self._interned(key, made)

    def _interned(self, key: tuple[object, ...], pool: Pool) -> Pool:
        return self._pools.setdefault(key, pool)

    def _devices_of(self, found: ResourceSlice, node: str, labels: Labels) -> tuple[Device, ...]:
        """The devices of one slice; equal slices give the same tuple, whichever node they are on."""
        spec = found.spec
        is_picky = bool(spec.per_device_node_selection)
        ruled = self._ruled(found)
        devices = [self._as_read(each) for each in spec.devices or ()]
        key = (
            spec.driver,
            _encode((devices, ruled, bool(spec.node_name), spec.node_selector, node if is_picky else "")),
        )
        known = self._devices.get(key)
        if known is None or is_picky:
            known = tuple(
                _device(found, each, ruled.get(each.name, ()), is_here=not is_picky or _here(each, node, labels))
                for each in devices
            )
            self._devices[key] = known
        return known

    def _as_read(self, device: PublishedDevice) -> PublishedDevice:
        """A device with those of its attributes that anybody reads."""
        attributes = device.attributes
        if not attributes or EVERYTHING in self._read:
            return device
        kept = {name: value for name, value in attributes.items() if name.rpartition("/")[2] in self._read}
        return device if len(kept) == len(attributes) else replace(device, attributes=kept)

    def _ruled(self, found: ResourceSlice) -> dict[str, list[DeviceTaint]]:
        """The taints that rules put on devices of a slice, by device."""
        taints: dict[str, list[DeviceTaint]] = {}
        for _, rule in sorted(self.rules.items()):
            selector = rule.spec.device_selector
            if selector is not None and (
                selector.driver not in (None, found.spec.driver) or selector.pool not in (None, found.spec.pool.name)
            ):
                continue
            for device in found.spec.devices or ():
                if selector is None or selector.device in (None, device.name):
                    taints.setdefault(device.name, []).append(rule.spec.taint)
        return taints


def is_local(slices: Iterable[ResourceSlice]) -> bool:
    """Whether all slices of a pool are on one and the same node."""
    names = {found.spec.node_name for found in slices}
    return len(names) == 1 and None not in names and "" not in names


def is_relevant(found: ResourceSlice, node: str, labels: Labels) -> bool:
    """Whether a node can reach anything of a slice."""
    spec = found.spec
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return _matches(node, labels, spec.node_name, spec.all_nodes, spec.node_selector)
    return bool(spec.per_device_node_selection) and any(_here(device, node, labels) for device in spec.devices or ())


def _here(device: PublishedDevice, node: str, labels: Labels) -> bool:
    return _matches(node, labels, device.node_name, device.all_nodes, device.node_selector)


def _matches(
    node: str, labels: Labels, name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    if name:
        return name == node
    if all_nodes:
        return True
    return selector is not None and matches_any_term(compile_node_selector(selector), node, labels)


def _device(found: ResourceSlice, published: PublishedDevice, ruled: Sequence[DeviceTaint], *, is_here: bool) -> Device:
    spec = found.spec
    picky = bool(spec.per_device_node_selection)
    return Device(
        published.name,
        spec.driver,
        {name: value for name, each in (published.attributes or {}).items() if (value := attribute_value(each))},
        {
            name: Capacity(parse_quantity(each.value), each.request_policy)
            for name, each in (published.capacity or {}).items()
        },
        tuple((each.counter_set, _amounts(each.counters)) for each in published.consumes_counters or ()),
        (*(published.taints or ()), *ruled),
        is_shared=bool(published.allow_multiple_allocations),
        binding_conditions=tuple(published.binding_conditions or ()),
        binding_failure_conditions=tuple(published.binding_failure_conditions or ()),
        is_tied=bool(published.node_name if picky else spec.node_name) or bool(published.binds_to_node),
        node_selector=published.node_selector if picky else spec.node_selector,
        is_here=is_here,
    )


def attribute_value(found: DeviceAttribute) -> Attribute | None:
    if found.int_value is not None:
        return "int", found.int_value
    if found.bool_value is not None:
        return "bool", found.bool_value
    if found.string_value is not None:
        return "string", found.string_value
    return ("version", found.version_value) if found.version_value is not None else None


def _amounts(counters: Mapping[str, Counter] | None) -> Counters:
    return {name: parse_quantity(each.value) for name, each in (counters or {}).items()}


def _by_name(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    return sorted(slices, key=lambda found: found.metadata.name)


def _has_compatibility_groups(found: ResourceSlice) -> bool:
    """Devices that may not be used together in ways of a version to come: their slices are left out."""
    devices = found.spec.devices or ()
    return any(each.compatibility_groups for device in devices for each in device.consumes_counters or ())


def _counter_sets(slices: Iterable[ResourceSlice]) -> tuple[dict[str, Counters], str]:
    sets: dict[str, Counters] = {}
    for found in slices:
        for each in found.spec.shared_counters or ():
            if each.name in sets:
                return {}, f"duplicate counter set name {each.name}"
            sets[each.name] = _amounts(each.counters)
    return sets, ""


def _duplicate(devices: Iterable[Device]) -> str:
    seen = set[str]()
    for device in devices:
        if device.name in seen:
            return f"duplicate device name {device.name}"
        seen.add(device.name)
    return ""


def _unknown_counter(sets: Mapping[str, Counters], devices: Iterable[Device]) -> str:
    for device in devices:
        for name, counters in device.consumes:
            if name not in sets:
                return f"counter set {name} not found"
            missing = next((each for each in counters if each not in sets[name]), None)
            if missing is not None:
                return f"counter {missing} not found in counter set {name}"
    return ""


def has_binding_conditions(pool: Pool) -> bool:
    return any(device.binding_conditions for device in pool.devices)


def in_order(pools: Iterable[tuple[str, Pool]]) -> list[tuple[str, Pool]]:
    """Pools, each with its name, in the order in which they are tried: those whose devices wait for something last."""
    return sorted(pools, key=lambda named: (has_binding_conditions(named[1]), named[1].driver, named[0]))
