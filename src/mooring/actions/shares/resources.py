"""Which column stands for which resource, and amounts as rows of such columns."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mooring.actions.admit.cycle.conditions import quantity_text
from mooring.model.api.meta import Resources
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import CPU, MEMORY, PODS, in_columns, to_column_units

UNLIMITED = 2**61
"""Above every real amount, and so far below the end of int64 that adding two of them cannot pass it."""

NOTHING = 0.1
"""Less than this is nothing, in the units of `volcano_units`."""

Columns: TypeAlias = npt.NDArray[np.int64]
"""Shape (queues, resources)."""
Floats: TypeAlias = npt.NDArray[np.float64]
"""The same as fractions."""
Row: TypeAlias = npt.NDArray[np.int64]
"""Shape (resources,)."""
Amount: TypeAlias = Mapping[int, int]
"""By column, only what is above 0."""


class ResourceTable:
    """The names of all resources in play, each with its column, in the order given."""

    def __init__(self, names: Iterable[str], parts: Mapping[str, int] | None = None) -> None:
        """`parts`: of which resources amounts count parts of one, and how many parts one has."""
        self.names = tuple(dict.fromkeys(names))
        self.parts = parts or {}
        self.column_of = {name: column for column, name in enumerate(self.names)}
        self.width = max(1, len(self.names))

    def knows(self, names: Iterable[str]) -> bool:
        return all(name in self.column_of for name in names)

    def amount(self, amounts: Mapping[str, int]) -> dict[int, int]:
        return {self.column_of[name]: amount for name, amount in amounts.items() if amount > 0}

    def row(self, amounts: Mapping[str, int], missing: int = 0) -> Row:
        row = np.full(self.width, missing, dtype=np.int64)
        for name, amount in amounts.items():
            row[self.column_of[name]] = min(amount, UNLIMITED)
        return row

    def show(self, column: int, amount: int) -> str:
        """An amount for people, as Kubernetes writes it.

        >>> table = ResourceTable(["cpu", "nvidia.com/gpu", "memory"])
        >>> table.show(0, 1500), table.show(0, 2000), table.show(1, 8), table.show(2, 16 << 30)
        ('1500m', '2', '8', '16Gi')
        """
        name = self.names[column]
        return f"{amount / self.parts[name]:g}" if name in self.parts else quantity_text(name, amount)


def volcano_units(resources: ResourceTable) -> Floats:
    """How many of Volcano's units one unit of a column is: it counts thousandths, but of memory and places for pods."""
    return np.array([1.0 if name in (CPU, MEMORY, PODS) else 1000.0 for name in resources.names] or [1.0])


def column_amounts(resources: Resources | None) -> dict[str, int]:
    """Quantities in column units, of resources that are accounted for."""
    return {
        name: to_column_units(name, parse_quantity(text))
        for name, text in (resources or {}).items()
        if in_columns(name)
    }


def flat(columns: npt.NDArray[np.int64]) -> "memoryview[int]":
    """The same memory for single values, which are read and written several times faster so than through NumPy."""
    return memoryview(columns.reshape(-1).data)


def flat_floats(values: npt.NDArray[np.float64]) -> "memoryview[float]":
    return memoryview(values.reshape(-1).data)
