"""Amounts of resources: whole numbers in the state, plain numbers in data, quantities in tables."""

from collections.abc import Mapping

from mooring.actions.admit.cycle.conditions import quantity_text
from mooring.model.values.requests import CPU, MEMORY


def in_units(resource: str, amount: int, parts: int = 1) -> float:
    """A column's amount as cores, bytes or a count; `parts` of a count make one.

    >>> in_units("cpu", 1500), in_units("cpu", 2000), in_units("nvidia.com/gpu", 8)
    (1.5, 2, 8)
    """
    unit = 1000 if resource == CPU else parts
    return amount // unit if amount % unit == 0 else amount / unit


def amount_text(resource: str, number: float) -> str:
    """A number of cores, bytes or devices as Kubernetes writes it.

    >>> amount_text("cpu", 1.5), amount_text("memory", 3 << 30), amount_text("nvidia.com/gpu", 8)
    ('1500m', '3Gi', '8')
    >>> amount_text("nvidia.com/gpu", 3.5)
    '3.5'
    """
    if resource not in (CPU, MEMORY) and number != round(number):
        return f"{number:g}"
    return quantity_text(resource, round(number * 1000) if resource == CPU else round(number))


def amounts_text(amounts: Mapping[str, float], nothing: str = "nothing") -> str:
    """`6 nvidia.com/gpu, 24 cpu`"""
    return ", ".join(f"{amount_text(name, number)} {name}" for name, number in amounts.items()) or nothing


def requests_text(requests: Mapping[str, int]) -> str:
    """What a pod asks for, given in a column's units: `1 nvidia.com/gpu, 500m cpu`."""
    return ", ".join(f"{quantity_text(name, amount)} {name}" for name, amount in requests.items() if amount) or "-"
