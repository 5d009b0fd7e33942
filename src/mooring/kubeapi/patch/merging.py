"""Merge an applied configuration into an object, by the types of its fields."""

from typing import Any

from mooring.kubeapi.patch.field_sets import child_type, is_granular_list, is_granular_object
from mooring.kubeapi.patch.ownership import items_of
from mooring.kubeapi.schemas.types import Type


def merge(live: Any, applied: Any, type_: Type) -> Any:
    """The object with everything that the configuration says; nothing is removed."""
    if is_granular_object(live, type_) and is_granular_object(applied, type_):
        found = dict(live)
        for name, value in applied.items():
            found[name] = merge(live[name], value, child_type(type_, name)) if name in live else value
        return found
    if is_granular_list(type_) and isinstance(live, list) and isinstance(applied, list):
        return _merge_lists(live, applied, type_)
    return applied


def _merge_lists(live: list[Any], applied: list[Any], type_: Type) -> list[Any]:
    """Keep what only one side has in its place beside what both have, which comes in the applied order."""
    assert type_.item is not None
    before, after = dict(items_of(live, type_)), list(items_of(applied, type_))
    given = {element for element, _ in after}
    found: list[Any] = []
    position = 0
    for element, item in before.items():
        if element not in given:
            found.append(item)
            continue
        while position < len(after):
            name, value = after[position]
            position += 1
            found.append(merge(before[name], value, type_.item) if name in before else value)
            if name in before:
                break
    for name, value in after[position:]:
        found.append(merge(before[name], value, type_.item) if name in before else value)
    return found
