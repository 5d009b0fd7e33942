"""The field types of every kind, built in as data: unknown fields, duplicates, wrong types, list types, merge keys."""

from mooring.kubeapi.schemas.decoding import Decoded, decode, parse_json
from mooring.kubeapi.schemas.notation import type_of_kind
from mooring.kubeapi.schemas.types import Field, Type

__all__ = ["Decoded", "Field", "Type", "decode", "parse_json", "schema_of"]


def schema_of(group: str, version: str, kind: str) -> Type | None:
    """The type of a built-in kind; None for one that is not built in."""
    return type_of_kind(f"{group}/{version}" if group else version, kind)
