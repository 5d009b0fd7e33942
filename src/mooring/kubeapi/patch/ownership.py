"""What a value owns, how two values differ, what is left when fields are taken away; by the types of fields."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from mooring.kubeapi.patch.field_sets import (
    ElementError,
    FieldSet,
    Path,
    child_type,
    is_granular_list,
    is_granular_object,
    item_element,
)
from mooring.kubeapi.schemas.types import Type


class Comparison(NamedTuple):
    """Paths at which two objects differ."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


def field_set(value: Any, type_: Type) -> FieldSet:
    """All that an applied configuration says: leaves, keys of maps, and items of lists."""
    found: set[Path] = set()
    _add_fields(value, type_, (), found)
    return frozenset(found)


def _add_fields(value: Any, type_: Type, path: Path, found: set[Path]) -> None:
    if is_granular_object(value, type_):
        for name, inner in value.items():
            here = (*path, f"f:{name}")
            _add_fields(inner, child_type(type_, name), here, found)
            if inner is None or inner == {} or name not in type_.fields:
                found.add(here)
    elif isinstance(value, list) and is_granular_list(type_):
        assert type_.item is not None
        for element, inner in items_of(value, type_):
            _add_fields(inner, type_.item, (*path, element), found)
            found.add((*path, element))
    elif path:
        found.add(path)


def items_of(value: list[Any], type_: Type) -> Iterator[tuple[str, Any]]:
    """Items of a granular list with their path elements; what cannot be told apart is passed over."""
    for item in value:
        try:
            yield item_element(item, type_), item
        except ElementError:
            continue


_ABSENT: Any = object()


def compare(old: Any, new: Any, type_: Type) -> Comparison:
    """Find what one object has that the other has not, and what differs."""
    comparer = _Comparer()
    comparer.compare(old, new, type_, ())
    return Comparison(frozenset(comparer.added), frozenset(comparer.modified), frozenset(comparer.removed))


class _Comparer:
    def __init__(self) -> None:
        self.added: set[Path] = set()
        self.modified: set[Path] = set()
        self.removed: set[Path] = set()

    def compare(self, old: Any, new: Any, type_: Type, path: Path) -> None:
        if old is new or (old == new and type(old) is type(new)):
            return
        if old is None and isinstance(new, dict | list) and not type_.is_atomic and type_.form in ("list", "map"):
            old = type(new)()  # null is a list or map that was there and had nothing in it
        if (old is _ABSENT or is_granular_object(old, type_)) and (new is _ABSENT or is_granular_object(new, type_)):
            before, after = _or_empty(old, {}), _or_empty(new, {})
            for name in dict.fromkeys((*before, *after)):
                here = (*path, f"f:{name}")
                self.compare(before.get(name, _ABSENT), after.get(name, _ABSENT), child_type(type_, name), here)
        elif is_granular_list(type_) and _is_list(old) and _is_list(new):
            self._lists(_or_empty(old, []), _or_empty(new, []), type_, path)
        elif old is not _ABSENT and new is not _ABSENT:
            self.modified.add(path)
        if path and old is _ABSENT:
            self.added.add(path)
        elif path and new is _ABSENT:
            self.removed.add(path)

    def _lists(self, old: list[Any], new: list[Any], type_: Type, path: Path) -> None:
        assert type_.item is not None
        before, after = dict(items_of(old, type_)), dict(items_of(new, type_))
        for element in dict.fromkeys((*before, *after)):
            here = (*path, element)
            self.compare(before.get(element, _ABSENT), after.get(element, _ABSENT), type_.item, here)


def _or_empty(value: Any, empty: Any) -> Any:
    return empty if value is _ABSENT else value


def _is_list(value: Any) -> bool:
    return value is _ABSENT or isinstance(value, list)


def without(value: Any, type_: Type, fields: FieldSet) -> Any:
    """A copy without the fields, keys and items of a set; what becomes empty by that goes too."""
    tree: dict[str, Any] = {}
    for path in fields:
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        node[""] = True
    return _without(value, type_, tree)


def _without(value: Any, type_: Type, tree: dict[str, Any]) -> Any:
    if not tree:
        return value
    if is_granular_object(value, type_):
        found = {}
        for name, inner in value.items():
            below = tree.get(f"f:{name}", {})
            if "" not in below:
                kept = _without(inner, child_type(type_, name), below)
                if kept is not None or inner is None:
                    found[name] = kept
        return found or None
    if isinstance(value, list) and is_granular_list(type_):
        assert type_.item is not None
        kept_items = []
        for item in value:
            try:
                below = tree.get(item_element(item, type_), {})
            except ElementError:
                below = {}
            if "" not in below:
                kept_items.append(_without(item, type_.item, below))
        return [item for item in kept_items if item is not None] or None
    return None


def with_named_fields(fields: FieldSet, type_: Type) -> FieldSet:
    """A set with the fields of structs as members too, wherever something below them is one."""
    found = set(fields)
    for path in fields:
        here: Type | None = type_
        for depth, element in enumerate(path):
            if here is None:
                break
            if element.startswith("f:"):
                name = element[2:]
                if name in here.fields:
                    found.add(path[: depth + 1])
                here = here.field_type(name)
            else:
                here = here.item
    return frozenset(found)
