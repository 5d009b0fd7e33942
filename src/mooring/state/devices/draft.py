"""What claims are taking of a row while devices are looked for: one device after the other, and any of it put back.

A device can be taken if nobody has it, enough is left of its amounts and of the counters that it draws on, its taints
are tolerated and the constraints of the claim agree; else nothing is changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mooring.model.devices.amounts import consumed
from mooring.model.devices.device import Attribute, Device
from mooring.model.devices.requests import Alternative, ClaimRequests, Constraint, Request
from mooring.model.values.quantity import Nanos
from mooring.state.devices.table import Amounts, DeviceState, PartlyTaken, Taken


@dataclass(frozen=True, slots=True)
class Allocated:
    """A device that a claim gets, by position in the inventory."""

    alternative: Alternative
    position: int
    amounts: Amounts | None
    """None if it is taken whole, or not at all (adminAccess)."""


class Unanswerable(Exception):
    """Nothing is allocated, and the text says why."""


@dataclass(slots=True)
class _Limit:
    """A constraint, and the values of the devices that are in its set now."""

    constraint: Constraint
    values: list[Attribute] = field(default_factory=list)

    def agrees(self, value: Attribute) -> bool:
        if self.constraint.is_distinct:
            return value not in self.values
        return not self.values or value == self.values[0]


class Draft:
    def __init__(self, state: DeviceState, claims: Sequence[ClaimRequests]) -> None:
        self._state = state
        self._inventory = state.inventory
        self._devices = state.inventory.devices
        self.results: list[list[Allocated]] = [[] for _ in claims]
        self._whole = 0
        """Positions that are being taken whole, by any claim."""
        self._of_claim = [0] * len(claims)
        """Likewise by each claim, adminAccess included."""
        self._parts: dict[int, list[Amounts]] = {}
        self._free_counters: dict[int, dict[str, dict[str, int]]] = {}
        self._limits = [[_Limit(each) for each in claim.constraints] for claim in claims]
        self._attributes = sorted({each.attribute for claim in claims for each in claim.constraints})
        self._alternatives = [each for claim in claims for request in claim.requests for each in request.alternatives]
        self._kinds: dict[tuple[object, ...], int] = {}
        self._kind_of: dict[int, int] = {}

    def taken_after(self) -> Taken:
        """What the row is like if the draft becomes true."""
        before = self._state.taken
        parts = {part.position: part for part in before.parts}
        whole = before.whole
        for found in (each for results in self.results for each in results):
            if found.alternative.admin_access:
                continue
            if found.amounts is None:
                whole |= 1 << found.position
                continue
            known = parts.get(found.position, PartlyTaken(found.position, 0, ()))
            parts[found.position] = PartlyTaken(found.position, known.holders + 1, _sum(known.amounts, found.amounts))
        return Taken(whole, tuple(sorted(parts.values())), before.withheld)

    # One device.

    def is_in_use(self, claim: int, alternative: Alternative, position: int) -> bool:
        """Whether somebody has a device whole; who comes with adminAccess minds only what the claim itself has."""
        if alternative.admin_access:
            return bool(self._of_claim[claim] >> position & 1)
        return bool((self._state.taken.unavailable | self._whole) >> position & 1)

    def take(self, claim: int, request: Request, alternative: Alternative, position: int, *, must: bool) -> bool:
        """Let a claim have a device if everything allows it; `must` where it is this one or none."""
        device = self._devices[position]
        amounts = _asked_amounts(alternative, device)
        has_left = amounts is not None and self._has_left(position, device, amounts)
        if not has_left and not must:
            return False
        if self.is_in_use(claim, alternative, position) and not (device.is_shared and alternative.admin_access):
            return False
        draws = self._draws(position, device)
        if draws and not self._draw(position, device):
            return False
        is_kept_off = alternative.is_kept_off(device)
        joins = not is_kept_off and self._join(claim, request, alternative, device)
        if not joins and not is_kept_off and must:
            raise Unanswerable(
                f"request {alternative.name}: cannot add device {device.driver}/{device.name} because a claim "
                "constraint would not be satisfied"
            )
        if amounts is None or not has_left or not joins:
            if joins:
                self._leave(claim, request, alternative)
            if draws:
                self._pour_back(position, device)
            return False
        share: Amounts | None = None
        if device.is_shared:
            share = tuple(sorted(amounts.items()))
            self._parts.setdefault(position, []).append(share)
        else:
            self._whole |= 1 << position
            self._of_claim[claim] |= 1 << position
        self.results[claim].append(Allocated(alternative, position, share))
        return True

    def put_back(self, claim: int, request: Request, alternative: Alternative, position: int) -> None:
        """Undo the last `take` of a claim."""
        device = self._devices[position]
        self.results[claim].pop()
        if device.is_shared:
            self._parts[position].pop()
            if not self._parts[position]:
                del self._parts[position]
        else:
            self._of_claim[claim] &= ~(1 << position)
            if not any(bits >> position & 1 for bits in self._of_claim):
                self._whole &= ~(1 << position)
        self._leave(claim, request, alternative)
        if self._draws(position, device):
            self._pour_back(position, device)

    # Devices and drafts that are the same to these claims.

    def kind(self, position: int) -> tuple[object, ...]:
        """Two devices with the same value are the same to these claims as things stand, whichever is taken."""
        known = self._kind_of.get(position)
        if known is None:
            device, part = self._devices[position], self._state.taken.part(position)
            kind = (
                self._inventory.pool_of[position],
                tuple(each.selects(device) for each in self._alternatives),
                tuple(each.is_kept_off(device) for each in self._alternatives),
                tuple(device.attribute(name) for name in self._attributes),
                tuple((name, tuple(sorted(counters.items()))) for name, counters in device.consumes),
                self._capacity_kind(device),
                device.is_shared,
                device.is_here,
                self._state.taken.unavailable >> position & 1,
                None if part is None else part.amounts,
            )
            known = self._kind_of[position] = self._kinds.setdefault(kind, len(self._kinds))
        return known, self._whole >> position & 1, tuple(self._parts.get(position, ()))

    def _capacity_kind(self, device: Device) -> tuple[object, ...]:
        """What of a device's capacity makes it another: of one that is taken whole, whether it has enough."""
        if device.is_shared:
            return tuple(sorted((name, each.value, id(each.policy)) for name, each in device.capacity.items()))
        asked = [consumed(each.capacity, device.capacity) for each in self._alternatives]
        return tuple(_is_within(amounts, device) if isinstance(amounts, dict) else amounts for amounts in asked)

    def standing(self, claim: int) -> tuple[object, ...]:
        """Two drafts with the same value leave the same to the rest of a claim, and to the claims after it."""
        bits = self._whole
        taken = list(self._parts)
        while bits:
            low = bits & -bits
            taken.append(low.bit_length() - 1)
            bits ^= low
        kinds = sorted((*self.kind(position), self._of_claim[claim] >> position & 1) for position in taken)
        values = tuple(frozenset(limit.values) for limit in self._limits[claim])
        return len(self.results[claim]), tuple(kinds), values

    # Amounts.

    def _has_left(self, position: int, device: Device, amounts: dict[str, Nanos]) -> bool:
        if not device.is_shared:
            return _is_within(amounts, device)
        part = self._state.taken.part(position)
        held = [*((part.amounts,) if part is not None else ()), *self._parts.get(position, ())]
        for name, amount in amounts.items():
            taken = sum(nanos for each in held for key, nanos in each if key == name)
            if taken + amount > device.capacity[name].value:
                return False
        return True

    # Constraints.

    def _join(self, claim: int, request: Request, alternative: Alternative, device: Device) -> bool:
        """Let a device into the sets of all constraints that concern it; into none if one of them refuses."""
        joined = list[_Limit]()
        for limit in self._limits[claim]:
            if not limit.constraint.concerns(request.name, alternative.name):
                continue
            value = device.attribute(limit.constraint.attribute)
            if value is None or not limit.agrees(value):
                for each in joined:
                    each.values.pop()
                return False
            limit.values.append(value)
            joined.append(limit)
        return True

    def _leave(self, claim: int, request: Request, alternative: Alternative) -> None:
        for limit in self._limits[claim]:
            if limit.constraint.concerns(request.name, alternative.name):
                limit.values.pop()

    # Counters.

    def _draws(self, position: int, device: Device) -> bool:
        """Whether taking a device draws on counters: not if it is given out by amounts and somebody has some of it."""
        if not device.consumes:
            return False
        return not (device.is_shared and (position in self._parts or self._state.taken.part(position) is not None))

    def _free(self, pool: int) -> dict[str, dict[str, int]]:
        """What is left of a pool's counters."""
        free = self._free_counters.get(pool)
        if free is None:
            sets = self._inventory.pools[pool].counter_sets
            free = self._free_counters[pool] = {name: dict(counters) for name, counters in sets.items()}
            for position, device in enumerate(self._devices):
                if self._inventory.pool_of[position] == pool and self._state.in_use >> position & 1:
                    _draw_from(free, device, 1)
        return free

    def _draw(self, position: int, device: Device) -> bool:
        free = self._free(self._inventory.pool_of[position])
        _draw_from(free, device, 1)
        if any(left < 0 for counters in free.values() for left in counters.values()):
            _draw_from(free, device, -1)
            return False
        return True

    def _pour_back(self, position: int, device: Device) -> None:
        _draw_from(self._free(self._inventory.pool_of[position]), device, -1)


def has_enough(alternative: Alternative, device: Device) -> bool:
    """Whether a device gives out what a request wants, and has as much if nobody else has any."""
    amounts = _asked_amounts(alternative, device)
    return amounts is not None and _is_within(amounts, device)


def _asked_amounts(alternative: Alternative, device: Device) -> dict[str, Nanos] | None:
    """What a request takes of each capacity of a device; None if the device does not give that out."""
    amounts = consumed(alternative.capacity, device.capacity)
    if isinstance(amounts, str):
        raise Unanswerable(f"request {alternative.name}: checking capacity for device {device.name}: {amounts}")
    return amounts


def _is_within(amounts: Mapping[str, Nanos], device: Device) -> bool:
    return all(amount <= device.capacity[name].value for name, amount in amounts.items())


def _draw_from(free: dict[str, dict[str, int]], device: Device, times: int) -> None:
    for name, counters in device.consumes:
        for counter, amount in counters.items():
            if counter in free.get(name, {}):
                free[name][counter] -= times * amount


def _sum(one: Amounts, other: Amounts) -> Amounts:
    total = dict(one)
    for name, nanos in other:
        total[name] = Nanos(total.get(name, 0) + nanos)
    return tuple(sorted(total.items()))
