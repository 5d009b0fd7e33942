"""What a type of the API is, to everyone who decodes, merges, owns or explains values of it.

Built-in kinds (`notation.py`) and custom ones (`definitions/structural.py`) are compiled to the same form, so that a
patch need not know whose object it changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

Form = Literal["struct", "list", "map", "plain"]
ListType = Literal["atomic", "set", "map"]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of a struct."""

    type: "Type"
    is_required: bool = False
    is_pointer: bool = False
    """In Go: whether "not said" differs from zero, so that a zero is kept."""
    is_always: bool = False
    """Whether a zero is written out."""
    omits_zero: bool = False
    """Whether a struct that is empty is left out; others are written as `{}`."""
    strategies: frozenset[str] = frozenset()
    """Of a strategic merge patch: merge, replace, retainKeys."""
    merge_key: str = ""
    default: Any = None


@dataclass(eq=False)
class Type:
    """How values of one type are written, merged and owned."""

    form: Form
    name: str = ""
    """Of a struct `core/v1.PodSpec`; of a plain value `string`, `int32`, `time`, `any` and the like."""
    item: "Type | None" = None
    """Of lists and maps, and of what a struct has besides its fields, if that may be anything."""
    is_atomic: bool = False
    """Of structs and maps: owned and replaced as a whole."""
    list_type: ListType = "atomic"
    keys: tuple[str, ...] = ()
    """Of a list that is a map by nature: the fields that tell its items apart."""
    make_fields: Callable[[], Mapping[str, Field]] = field(default=dict, repr=False)
    """Types refer to one another in circles (JSONSchemaProps), so that fields are made when somebody looks."""
    is_deduced: bool = False
    """A custom object's part without a schema: lists are atomic, objects are not."""

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        return self.make_fields()

    def field_type(self, name: str) -> "Type | None":
        """The type of a field or of a map's value; None for one that is not declared."""
        found = self.fields.get(name) if self.form == "struct" else None
        if found is not None:
            return found.type
        return self.item if self.form in ("struct", "map") else None

    @property
    def key_defaults(self) -> dict[str, Any]:
        """Keys of items that may be left out, and what they are then."""
        if self.item is None or self.item.form != "struct":
            return {}
        found = {}
        for key in self.keys:
            field = self.item.fields.get(key)
            if field is None:
                continue
            if field.default is not None:
                found[key] = field.default
            elif field.is_always:
                found[key] = "" if field.type.name == "string" else 0
        return found


ANY = Type("plain", "any", is_deduced=True)
RAW = Type("plain", "raw")
PLAIN = {
    name: Type("plain", name)
    for name in (
        "string",
        "int32",
        "int64",
        "double",
        "bool",
        "bytes",
        "time",
        "microtime",
        "quantity",
        "int-or-string",
    )
} | {"any": ANY, "raw": RAW}
