"""Amounts of CPU and memory as right-sizing counts them: whole millicores and whole bytes."""

from typing import Final, TypeAlias

from mooring.model.api.meta import Resources
from mooring.model.api.pods import Container, Pod
from mooring.model.values.quantity import parse_quantity, to_millis, to_units

CPU: Final = "cpu"
MEMORY: Final = "memory"
CONTROLLED: Final = (CPU, MEMORY)

LARGEST: Final = 2**63 - 1

Amounts: TypeAlias = dict[str, int]
"""By resource, `cpu` in millicores and `memory` in bytes; a resource that is not set is absent."""


def read_amounts(resources: Resources | None) -> Amounts:
    """The CPU and memory of a manifest."""
    amounts: Amounts = {}
    for name in CONTROLLED:
        quantity = (resources or {}).get(name)
        if quantity is not None:
            nanos = parse_quantity(quantity)
            amounts[name] = to_millis(nanos) if name == CPU else to_units(nanos)
    return amounts


def current_resources(pod: Pod, container: Container) -> tuple[Amounts, Amounts]:
    """The requests and limits that a container has now: those that its kubelet reports, else those of its spec."""
    for status in pod.status.container_statuses or ():
        if status.name == container.name and status.resources is not None:
            return read_amounts(status.resources.requests), read_amounts(status.resources.limits)
    resources = container.resources
    if resources is None:
        return {}, {}
    return read_amounts(resources.requests), read_amounts(resources.limits)


def scale(name: str, amount: int, base: int, result: int, *, round_up: bool = False) -> int:
    """The amount that is to `amount` as `result` is to `base`, cut to a whole number; only CPU can be rounded up."""
    if base == 0:
        return amount
    quotient, remainder = divmod(amount * result, base)
    if remainder and round_up and name == CPU:
        quotient += 1
    return min(quotient, LARGEST)


def proportional_limit(name: str, limit: int, request: int, recommended: int, default_limit: int) -> int | None:
    """The limit that keeps its ratio to the request; None where no limit is to be set. Zero means "not set"."""
    limit = limit or default_limit
    if not limit or not recommended:
        return None
    if not request or request == limit:
        return recommended
    return scale(name, limit, request, recommended)
