"""What a function of CEL is: the types that it takes, the type that it gives, and what it does.

A type is written as its name; `dyn` stands for any. What a function gives is checked no further than that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

DYN, BOOL, INT, UINT, DOUBLE = "dyn", "bool", "int", "uint", "double"
STRING, BYTES, LIST, MAP = "string", "bytes", "list", "map"
QUANTITY, SEMVER, OPTIONAL, TYPE = "kubernetes.Quantity", "kubernetes.Semver", "optional_type", "type"
DURATION, TIMESTAMP = "google.protobuf.Duration", "google.protobuf.Timestamp"


@dataclass(frozen=True, slots=True)
class Overload:
    """One way of calling a function."""

    takes: tuple[str, ...]
    """The types of its arguments, the target of a method first."""
    gives: str
    run: Callable[..., Any]


Functions = Mapping[str, tuple[Overload, ...]]
"""By name; methods under `.name`."""
