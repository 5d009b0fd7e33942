"""The device table: an inventory a row, and who holds what of it."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mooring.model.devices.device import NO_DEVICES, Inventory, Pool
from mooring.model.values.quantity import Nanos
from mooring.state.columns import Column
from mooring.state.undo import UndoLog

Holder: TypeAlias = Hashable
"""Who holds devices: a claim, or a pod."""
PoolId: TypeAlias = tuple[str, str]
"""(driver, name of the pool)"""
Amounts: TypeAlias = tuple[tuple[str, Nanos], ...]
"""Of a device's capacities, by name, in the order of names."""


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """A device that somebody holds, or amounts of it."""

    driver: str
    pool: str
    device: str
    amounts: Amounts | None = None
    """None for the whole device; of a device that is given out by amounts, what is held of each capacity."""


class PartlyTaken(NamedTuple):
    """What is taken of one device that is given out by amounts."""

    position: int
    holders: int
    amounts: Amounts


class Taken(NamedTuple):
    """What is taken of an inventory, by position."""

    whole: int = 0
    """One bit for each device that is taken whole."""
    parts: tuple[PartlyTaken, ...] = ()
    withheld: int = 0
    """One bit for each device of whose card pods have something that they asked for in another way."""

    @property
    def unavailable(self) -> int:
        """One bit for each device that no claim gets."""
        return self.whole | self.withheld

    def part(self, position: int) -> PartlyTaken | None:
        return next((part for part in self.parts if part.position == position), None)


NOTHING = Taken()


@dataclass(frozen=True, eq=False)
class DeviceState:
    """An inventory with what is taken of it; one object for all rows that are alike."""

    code: int
    inventory: Inventory
    taken: Taken

    @cached_property
    def in_use(self) -> int:
        """One bit for each device of which anything is taken."""
        bits = self.taken.whole
        for part in self.taken.parts:
            bits |= 1 << part.position
        return bits


NO_STATE = DeviceState(0, NO_DEVICES, NOTHING)


class NodeDevices:
    """What a row has: the inventory, and what its pools are called here."""

    __slots__ = ("inventory", "pool_index", "pool_names")

    def __init__(self, inventory: Inventory, pool_names: tuple[str, ...]) -> None:
        self.inventory = inventory
        self.pool_names = pool_names
        named = zip(inventory.pools, pool_names, strict=True)
        self.pool_index: Mapping[PoolId, int] = {(pool.driver, name): i for i, (pool, name) in enumerate(named)}


class DeviceTable:
    """All devices and who holds them; only the cluster writes to it."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self.version = 0
        """Rises whenever more changes than what pods on a row hold of that row's own devices."""
        self.code = Column(np.int32, 64)
        """One device state a row; 0 where there is nothing."""
        self.states: list[DeviceState] = [NO_STATE]
        """By code."""
        self.on_row: dict[int, NodeDevices] = {}
        self.held: dict[Holder, tuple[DeviceShare, ...]] = {}
        self._holders: dict[PoolId, dict[str, dict[Holder, DeviceShare]]] = {}
        """By pool and device."""
        self._rows_of: dict[PoolId, set[int]] = {}
        self._state_of: dict[tuple[int, Taken], DeviceState] = {(0, NOTHING): NO_STATE}
        self._inventories: dict[tuple[Pool, ...], Inventory] = {(): NO_DEVICES}
        self._withheld: dict[int, int] = {}
        self._watcher: Callable[[int], None] = lambda row: None

    def watch(self, watcher: Callable[[int], None]) -> None:
        """Tell somebody of each row whose devices, or their holders, change."""
        self._watcher = watcher

    # What there is.

    def put(self, row: int, pools: Sequence[tuple[str, Pool]]) -> None:
        """Let a row have these pools, each with its name here, in the order of trying."""
        if list(pools) == self.pools_of(row):
            return
        self.remove(row)
        if not pools:
            return
        found = NodeDevices(self.inventory(tuple(pool for _, pool in pools)), tuple(name for name, _ in pools))
        self.on_row[row] = found
        for pool_id in found.pool_index:
            self._rows_of.setdefault(pool_id, set()).add(row)
        if row >= len(self.code.values):
            self.code.grow(max(2 * len(self.code.values), row + 1))
        self._recount(row)
        self.version += 1
        self._watcher(row)

    def remove(self, row: int) -> None:
        """A row has no devices any more; who held them holds them still, wherever they come up again."""
        found = self.on_row.pop(row, None)
        if found is None:
            return
        for pool_id in found.pool_index:
            self._rows_of[pool_id].discard(row)
        self.code.writable[row] = 0
        self._withheld.pop(row, None)
        self.version += 1
        self._watcher(row)

    def inventory(self, pools: tuple[Pool, ...]) -> Inventory:
        known = self._inventories.get(pools)
        if known is None:
            known = self._inventories[pools] = Inventory(len(self._inventories), pools)
        return known

    # Who holds what.

    def take(self, holder: Holder, shares: Iterable[DeviceShare]) -> None:
        """Let somebody who holds nothing hold these."""
        shares = tuple(shares)
        assert holder not in self.held, f"{holder} holds devices already"
        self._log.note(self.give_back, holder)
        self.held[holder] = shares
        for share in shares:
            self._holders.setdefault((share.driver, share.pool), {}).setdefault(share.device, {})[holder] = share
        self._changed(shares)

    def give_back(self, holder: Holder) -> None:
        """Let somebody hold nothing any more."""
        shares = self.held.pop(holder, ())
        if shares:
            self._log.note(self.take, holder, shares)
            for share in shares:
                self._holders[share.driver, share.pool][share.device].pop(holder, None)
            self._changed(shares)

    def holders(self, driver: str, pool: str, device: str) -> Mapping[Holder, DeviceShare]:
        """Who holds a device, or amounts of it."""
        return self._holders.get((driver, pool), {}).get(device, {})

    def holders_at(
        self, inventory: Inventory, pool_names: Sequence[str], position: int
    ) -> Mapping[Holder, DeviceShare]:
        """The same of a row's device, by position."""
        device = inventory.devices[position]
        return self.holders(device.driver, pool_names[inventory.pool_of[position]], device.name)

    def withhold(self, row: int, devices: int) -> bool:
        """Give these devices of a row to no claim, one bit a device. Whether some are no longer withheld."""
        before = self._withheld.get(row, 0)
        if before != devices:
            self._withheld[row] = devices
            self._recount(row)
        return bool(before & ~devices)

    def _changed(self, shares: Sequence[DeviceShare]) -> None:
        touched: dict[int, None] = {}
        for pool_id in {(share.driver, share.pool) for share in shares}:
            rows = self._rows_of.get(pool_id, ())
            if len(rows) > 1:
                self.version += 1  # more rows than the one that a pod is on
            touched |= dict.fromkeys(rows)
        for row in touched:
            self._recount(row)
            self._watcher(row)

    def _recount(self, row: int) -> None:
        self.code.writable[row] = self.state_without(row).code

    def state_without(self, row: int, without: Set[Holder] = frozenset()) -> DeviceState:
        """A row's device state by who holds what there, were some of them not there."""
        found = self.on_row[row]
        whole, parts = 0, list[PartlyTaken]()
        for pool_id, index in found.pool_index.items():
            for device, holders in self._holders.get(pool_id, {}).items():
                position = found.inventory.position_of.get((index, device))
                shares = [share for holder, share in holders.items() if holder not in without]
                if position is None or not shares:
                    continue
                if any(share.amounts is None for share in shares):
                    whole |= 1 << position
                partly = [share.amounts for share in shares if share.amounts is not None]
                if partly:
                    parts.append(PartlyTaken(position, len(partly), _sum(partly)))
        return self.state(found.inventory, Taken(whole, tuple(sorted(parts)), self._withheld.get(row, 0)))

    # Reading.

    def state(self, inventory: Inventory, taken: Taken) -> DeviceState:
        """The state of rows with this inventory and so much taken of it."""
        key = (inventory.number, taken)
        known = self._state_of.get(key)
        if known is None:
            known = self._state_of[key] = DeviceState(len(self.states), inventory, taken)
            self.states.append(known)
        return known

    def of_row(self, row: int) -> DeviceState:
        codes = self.code.values
        return self.states[codes[row]] if row < len(codes) else NO_STATE

    def codes(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """The device states of some rows."""
        codes = self.code.values
        if len(rows) and int(rows.max()) >= len(codes):
            return np.where(rows < len(codes), codes[np.minimum(rows, len(codes) - 1)], 0).astype(np.int32)
        found: NDArray[np.int32] = codes[rows]
        return found

    def pools_of(self, row: int) -> list[tuple[str, Pool]]:
        """The pools of a row, each with its name."""
        found = self.on_row.get(row)
        return [] if found is None else list(zip(found.pool_names, found.inventory.pools, strict=True))


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    total: dict[str, int] = {}
    for each in amounts:
        for name, nanos in each:
            total[name] = total.get(name, 0) + nanos
    return tuple((name, Nanos(total[name])) for name in sorted(total))
