"""Another order of trying devices: those first that break up as little as possible.

First fit takes whichever device comes first, and leaves every GPU with a hole. Here a device that draws on counters, or
is given out by amounts, comes first where most is gone already; of several cuts of one GPU the one comes first that
leaves the most, and the largest, of its other cuts possible. Whole devices keep their order, those that are part of
nothing first.
"""

from collections.abc import Mapping, Sequence

from mooring.model.devices.device import Device
from mooring.state.devices.table import DeviceState


def packed_order(state: DeviceState, positions: Sequence[int]) -> list[int]:
    """The same positions, the least harmful first."""
    free = _free_counters(state)
    devices = state.inventory.devices
    by_set: dict[tuple[int, str], list[Device]] = {}
    for position in positions:
        for name, _ in devices[position].consumes:
            by_set.setdefault((state.inventory.pool_of[position], name), []).append(devices[position])
    return sorted(positions, key=lambda position: _harm(state, position, free, by_set))


Free = dict[tuple[int, str], dict[str, int]]
"""By pool and counter set, what is left of each counter."""


def _harm(
    state: DeviceState, position: int, free: Free, by_set: Mapping[tuple[int, str], Sequence[Device]]
) -> tuple[float, ...]:
    device, pool = state.inventory.devices[position], state.inventory.pool_of[position]
    if device.is_shared:
        part = state.taken.part(position)
        held = dict(part.amounts) if part is not None else {}
        used = [held.get(name, 0) / each.value for name, each in device.capacity.items() if each.value]
        return (not used or part is None, -max(used, default=0.0), 0.0, position)
    if not device.consumes:
        return (0.0, 0.0, 0.0, position)
    fresh, left, lost = 0.0, 0.0, 0.0
    for name, counters in device.consumes:
        total, now = state.inventory.pools[pool].counter_sets[name], free[pool, name]
        fresh = max(fresh, float(all(now[each] == total[each] for each in now)))
        after = {each: now[each] - counters.get(each, 0) for each in now}
        left += sum(after[each] / total[each] for each in after if total[each])
        for other in by_set[pool, name]:
            size = _size(other, name, total)
            lost += size * size * (_fits(other, name, now) and not _fits(other, name, after))
    return (fresh, left, lost, position)


def _size(device: Device, name: str, total: Mapping[str, int]) -> float:
    """Which part of a counter set a device takes."""
    asked = dict(device.consumes)[name]
    return sum(amount / total[each] for each, amount in asked.items() if total.get(each)) / max(len(total), 1)


def _fits(device: Device, name: str, free: Mapping[str, int]) -> bool:
    asked = dict(device.consumes)[name]
    return all(amount <= free.get(each, 0) for each, amount in asked.items())


def _free_counters(state: DeviceState) -> Free:
    free: Free = {
        (index, name): dict(counters)
        for index, pool in enumerate(state.inventory.pools)
        for name, counters in pool.counter_sets.items()
    }
    for position, device in enumerate(state.inventory.devices):
        if state.in_use >> position & 1:
            for name, counters in device.consumes:
                for each, amount in counters.items():
                    free[state.inventory.pool_of[position], name][each] -= amount
    return free
