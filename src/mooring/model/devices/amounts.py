"""How much of a device's capacities a request takes: rounded up to what the device gives out (consumable capacity)."""

from collections.abc import Mapping

from mooring.model.api.devices import CapacityRequestPolicy, CapacityRequestPolicyRange
from mooring.model.devices.device import Capacity
from mooring.model.values.quantity import NANO, Nanos, parse_quantity

MILLI = 10**6
"""Of nanos."""
_MAX = 2**63 - 1


def consumed(asked: Mapping[str, Nanos], capacity: Mapping[str, Capacity]) -> dict[str, Nanos] | str | None:
    """What a request takes of each capacity of a device.

    None if the device does not have what is asked for, or gives it out in other amounts; a text if what is asked for
    has no number at all.
    """
    if any(name not in capacity for name in asked):
        return None
    taken: dict[str, Nanos] = {}
    for name, each in capacity.items():
        amount = _rounded(asked.get(name), each)
        if isinstance(amount, str):
            return f'capacity "{name}": {amount}'
        if amount < 0:
            return f'capacity "{name}": capacity value is negative'
        taken[name] = amount
    if any(_violates(amount, capacity[name].policy) for name, amount in taken.items()):
        return None
    return taken


def _rounded(asked: Nanos | None, capacity: Capacity) -> Nanos | str:
    policy = capacity.policy
    if asked is None:
        return parse_quantity(policy.default) if policy is not None and policy.default is not None else capacity.value
    if policy is None:
        return asked
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_in_range(asked, policy.valid_range)
    if policy.valid_values is not None:
        return next((value for each in policy.valid_values if (value := parse_quantity(each)) >= asked), asked)
    return asked


def _rounded_in_range(asked: Nanos, allowed: CapacityRequestPolicyRange) -> Nanos | str:
    assert allowed.min is not None
    least = parse_quantity(allowed.min)
    if asked < least:
        return least
    if allowed.step is None:
        return asked
    unit = _unit(allowed)
    steps = parse_quantity(allowed.step) // unit if unit == MILLI else -(-parse_quantity(allowed.step) // unit)
    if unit == MILLI and asked % MILLI:
        return "capacity request cannot be represented in the device's range arithmetic"
    start, wanted = -(-least // unit), -(-asked // unit)
    count = -(-(wanted - start) // steps)
    found = (start + steps * count) * unit
    if found // unit > _MAX:
        return "capacity request cannot be represented in the device's range arithmetic"
    return Nanos(found)


def _unit(allowed: CapacityRequestPolicyRange) -> int:
    """Thousandths if all bounds are whole numbers of those, else whole units, as Kubernetes computes."""
    bounds = [parse_quantity(each) for each in (allowed.min, allowed.max, allowed.step) if each is not None]
    in_millis = all(bound % MILLI == 0 and bound // MILLI <= _MAX for bound in bounds)
    return MILLI if in_millis and allowed.step is not None and parse_quantity(allowed.step) >= MILLI else NANO


def _violates(amount: Nanos, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == parse_quantity(policy.default)):
        return False
    if policy.valid_range is not None:
        allowed = policy.valid_range
        if allowed.max is not None and amount > parse_quantity(allowed.max):
            return True
        if allowed.step is None or allowed.min is None:
            return False
        unit = _unit(allowed)
        if unit == MILLI and amount % MILLI:
            return True
        step = -(-parse_quantity(allowed.step) // unit)
        return (-(-amount // unit) - -(-parse_quantity(allowed.min) // unit)) % step != 0
    return bool(policy.valid_values) and all(parse_quantity(each) != amount for each in policy.valid_values or ())
