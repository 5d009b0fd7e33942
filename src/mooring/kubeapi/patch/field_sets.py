"""Sets of fields, as managedFields keeps them: which parts of an object somebody owns.

A path is a tuple of elements in the notation of FieldsV1: `f:name` a field or a key of a map, `k:{...}` an item of a
list by its keys, `v:...` a member of a list that is a set. Sets are plain frozensets of paths.
"""

import json
from typing import Any

from mooring.kubeapi.schemas.types import ANY, Type

Path = tuple[str, ...]
FieldSet = frozenset[Path]
NOTHING: FieldSet = frozenset()


class ElementError(ValueError):
    """An item of a list lacks what would tell it apart."""


def item_element(item: Any, type_: Type) -> str:
    """The element of a path that names an item of a list that is a set or a map."""
    if type_.list_type == "set":
        return "v:" + json.dumps(item, separators=(",", ":"), ensure_ascii=False)
    if not isinstance(item, dict):
        raise ElementError("associative list with keys may not have non-map elements")
    defaults = type_.key_defaults
    found = {}
    for key in type_.keys:
        value = item.get(key, defaults.get(key))
        if value is not None:
            found[key] = value
        elif key not in item and not defaults:
            raise ElementError(f'associative list with keys has an element that omits key field "{key}"')
    if not found:
        raise ElementError("associative list with keys has an element that omits all key fields")
    return "k:" + json.dumps(found, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def is_granular_list(type_: Type) -> bool:
    return type_.form == "list" and type_.list_type != "atomic"


def is_granular_object(value: Any, type_: Type) -> bool:
    """Whether the fields of an object are owned one by one."""
    if not isinstance(value, dict):
        return False
    return not type_.is_atomic and (type_.form in ("struct", "map") or type_.is_deduced)


def child_type(type_: Type, name: str) -> Type:
    """The type of a field; parts that no schema describes are deduced from their values."""
    return type_.field_type(name) or ANY


def to_fields_v1(fields: FieldSet) -> dict[str, Any]:
    """Write a set as FieldsV1: a tree in which `.` marks a path that is itself a member besides those below it."""
    root: dict[str, Any] = {}
    for path in sorted(fields):
        node, last = root, len(path) - 1
        for depth, element in enumerate(path):
            child = node.get(element)
            if child is None:
                child = node[element] = {}
            elif not child and depth < last:
                child["."] = {}  # a member, or else it would not be here with nothing below it
            node = child
    return root


def from_fields_v1(tree: Any) -> FieldSet:
    found: set[Path] = set()
    if isinstance(tree, dict):
        _gather(tree, (), found)
    return frozenset(found)


def _gather(node: dict[str, Any], path: Path, found: set[Path]) -> None:
    for element, inner in node.items():
        if element == ".":
            found.add(path)
        elif not isinstance(inner, dict) or not inner:
            found.add((*path, element))
        else:
            _gather(inner, (*path, element), found)


def path_text(path: Path) -> str:
    """As Kubernetes shows paths to people: `.spec.containers[name="web"].image`."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "v":
            text += f"[={rest}]"
        elif kind == "i":
            text += f"[{rest}]"
        else:
            keys = json.loads(rest)
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in sorted(keys.items())) + "]"
    return text
