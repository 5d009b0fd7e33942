"""A column of a table: what it is called, and what stands in it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mooring.kubeapi.status import Object
from mooring.kubeapi.tables.ages import age
from mooring.kubeapi.tables.json_path import find_all

Cell = Callable[[Object, float], Any]
"""The value for an object, at a moment in seconds."""


@dataclass(frozen=True)
class Column:
    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0
    """0 is always shown, 1 with `-o wide`."""
    description: str = ""

    @property
    def definition(self) -> Object:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def at(path: str, missing: Any = "") -> Cell:
    """The first value at a path."""

    def cell(obj: Object, _now: float) -> Any:
        found = find_all(obj, path)
        return found[0] if found and found[0] is not None else missing

    return cell


def since(path: str, missing: str = "<none>") -> Cell:
    """How long ago the moment at a path was."""

    def cell(obj: Object, now: float) -> Any:
        found = find_all(obj, path)
        return age(found[0], now) if found and found[0] else missing

    return cell


def column(name: str, cell: Cell | str, type_: str = "string", *, missing: Any = None) -> Column:
    """A column that is always shown; one that ends in `*` only with `-o wide`."""
    zero = missing if missing is not None else {"integer": 0, "boolean": False}.get(type_, "")
    found = at(cell, zero) if isinstance(cell, str) else cell
    return Column(name.removesuffix("*"), found, type_, priority=int(name.endswith("*")))


NAME = Column("Name", at(".metadata.name"), format="name", description="The name, unique among its kind and namespace.")
AGE = column("Age", since(".metadata.creationTimestamp", "<unknown>"))
CREATED_AT = Column("Created At", at(".metadata.creationTimestamp"), "date")
