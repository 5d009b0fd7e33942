"""Strategic merge patch: a merge patch that knows which lists are merged by a key, with directives for the rest.

Directives stand beside the fields: `$patch: replace | delete | merge`, `$retainKeys`, `$deleteFromPrimitiveList/FIELD`
and `$setElementOrder/FIELD`.
"""

import json
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

PATCH = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
ELEMENT_ORDER = "$setElementOrder/"


class PatchError(ValueError):
    """A patch cannot be applied to this object."""


class MergeField(Protocol):
    """What merging reads of one field of a struct."""

    @property
    def type(self) -> "MergeType": ...

    @property
    def strategies(self) -> frozenset[str]: ...

    @property
    def merge_key(self) -> str: ...


class MergeType(Protocol):
    """What merging reads of a type."""

    @property
    def form(self) -> str: ...

    @property
    def item(self) -> "MergeType | None": ...

    @property
    def fields(self) -> Mapping[str, MergeField]: ...

    def field_type(self, name: str) -> "MergeType | None": ...


def strategic_merge(value: dict[str, Any], patch: Any, type_: MergeType) -> dict[str, Any]:
    """Apply a patch to an object of a built-in kind; raises PatchError."""
    if not isinstance(patch, dict):
        raise PatchError("json: cannot unmarshal array into Go value of type map[string]interface {}")
    return _merge_objects(value, patch, type_)


def _merge_objects(value: dict[str, Any], patch: dict[str, Any], type_: MergeType | None) -> dict[str, Any]:
    directive = patch.get(PATCH)
    if directive == "replace":
        replaced: dict[str, Any] = _plain(patch)
        return replaced
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(f"unrecognized type directive: {directive}")
    found = dict(value)
    if RETAIN_KEYS in patch:
        found = _retained(found, patch)
    for name, inner in patch.items():
        if name.startswith(DELETE_FROM):
            field = name.removeprefix(DELETE_FROM)
            if isinstance(found.get(field), list) and isinstance(inner, list):
                gone = {_mark(item) for item in inner}
                found[field] = [item for item in found[field] if _mark(item) not in gone]
        elif not name.startswith("$"):
            _merge_field(found, name, inner, patch.get(ELEMENT_ORDER + name), type_)
    for name, order in patch.items():
        field = name.removeprefix(ELEMENT_ORDER)
        if name.startswith(ELEMENT_ORDER) and field not in patch and isinstance(found.get(field), list):
            declared = _field(type_, field)
            found[field] = _ordered(found[field], found[field], order, declared.merge_key if declared else "")
    return found


def _retained(value: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    keys = patch[RETAIN_KEYS]
    if not isinstance(keys, list):
        raise PatchError(f"$retainKeys expects a list, found {keys!r}")
    for name in patch:
        if not name.startswith("$") and patch[name] is not None and name not in keys:
            raise PatchError(f"{RETAIN_KEYS} list does not contain the key {name} of the patch")
    return {name: inner for name, inner in value.items() if name in keys}


def _field(type_: MergeType | None, name: str) -> MergeField | None:
    return type_.fields.get(name) if type_ is not None and type_.form == "struct" else None


def _merge_field(found: dict[str, Any], name: str, patch: Any, order: Any, type_: MergeType | None) -> None:
    declared = _field(type_, name)
    inner_type = type_.field_type(name) if type_ is not None else None
    strategies = declared.strategies if declared is not None else frozenset()
    if patch is None:
        found.pop(name, None)
    elif isinstance(patch, dict) and isinstance(found.get(name), dict) and "replace" not in strategies:
        found[name] = _merge_objects(found[name], patch, inner_type)
    elif isinstance(patch, list) and isinstance(found.get(name), list) and "merge" in strategies:
        assert declared is not None
        merged = _merge_lists(found[name], patch, declared)
        # What a patch does not order comes in the order of the patch itself: what it adds stands first.
        given = [item for item in patch if not (isinstance(item, dict) and PATCH in item)] if order is None else order
        found[name] = _ordered(merged, found[name], given, declared.merge_key)
    elif isinstance(patch, list) and "merge" in strategies:
        assert declared is not None
        found[name] = _merge_lists([], patch, declared)
    else:
        found[name] = _plain(patch)


def _plain(value: Any) -> Any:
    """A patch as the value that it adds: without directives, without nulls in objects."""
    if isinstance(value, dict):
        kept = {name: inner for name, inner in value.items() if inner is not None and not name.startswith("$")}
        return {name: _plain(inner) for name, inner in kept.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value if not (isinstance(item, dict) and item.get(PATCH) == "delete")]
    return value


def _mark(value: Any) -> Any:
    """Something by which equal values are found in a set: the value itself, or its text where it is no scalar."""
    return (type(value).__name__, json.dumps(value, sort_keys=True)) if isinstance(value, dict | list) else value


def _merge_lists(value: list[Any], patch: list[Any], declared: MergeField) -> list[Any]:
    key, item_type = declared.merge_key, declared.type.item
    if not key:
        return list({_mark(item): item for item in (*value, *patch)}.values())
    if any(isinstance(item, dict) and item.get(PATCH) == "replace" for item in patch):
        return [_plain(item) for item in patch if item.get(PATCH) != "replace" or len(item) > 1]
    found: list[Any] = list(value)
    places: dict[Any, list[int]] = {}
    for index, held in enumerate(found):
        places.setdefault(_mark(held.get(key)), []).append(index)
    for item in patch:
        if not isinstance(item, dict) or item.get(key) is None:
            raise PatchError(f"map: {go_text(item)} does not contain declared merge key: {key}")
        mark = _mark(item[key])
        if item.get(PATCH) == "delete":
            for index in places.pop(mark, ()):
                found[index] = None
        elif mark not in places:
            places[mark] = [len(found)]
            found.append(_merge_objects({}, item, item_type))
        else:
            first = places[mark][0]
            found[first] = _merge_objects(found[first], item, item_type)
    return [item for item in found if item is not None]


def go_text(value: Any) -> str:
    """A value as Go prints it: `map[a:1 b:[2 3]]`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{go_text(inner)}" for name, inner in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)


def _ordered(merged: list[Any], server: list[Any], order: Any, key: str) -> list[Any]:
    """Put the items that the patch orders in that order; the others stay before those that they stood before."""
    if not isinstance(order, list):
        raise PatchError(f"{ELEMENT_ORDER} expects a list, found {order!r}")

    def name_of(item: Any) -> Any:
        return _mark(item.get(key) if key and isinstance(item, dict) else item)

    wanted = dict.fromkeys(name_of(item) for item in order)
    places: dict[Any, int] = {}
    for index, item in enumerate(server):
        places.setdefault(name_of(item), index)
    by_name = {name_of(item): item for item in merged}
    given = deque(by_name[name] for name in wanted if name in by_name)
    others = deque(item for item in merged if name_of(item) not in wanted)
    found: list[Any] = []
    while others and given:
        left, right = name_of(others[0]), name_of(given[0])
        is_before = right in places and left in places and places[left] < places[right]
        found.append((others if is_before else given).popleft())
    return [*found, *others, *given]
