"""One namespace of all: `--namespace NAME`."""

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

S = TypeVar("S", bound=Struct)


def within(result: S, namespace: str) -> S:
    """A result without what it lists of other namespaces; its figures stay those of the whole cluster."""
    kept: dict[str, Any] = {}
    for field in result.__struct_fields__:
        value = getattr(result, field)
        if isinstance(value, list):
            kept[field] = [
                within(item, namespace) if isinstance(item, Struct) else item
                for item in value
                if getattr(item, "namespace", namespace) == namespace
            ]
    return replace(result, **kept)
