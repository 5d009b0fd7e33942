"""Values with blanks: what was made once serves for all that differ in names, times and durations alone.

A month of a cluster has hundreds of thousands of jobs, and few kinds of them. One of each kind is translated as any
manifest is, under a name and with times that stand for others; the rest are filled in.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mooring.model.api.meta import timestamp_text
from mooring.model.queued.building import MADE_UID

T = TypeVar("T")
NAME = "mooring-x0y1z2-job"
"""Stands for the name of a job, also within other names."""
CREATED = 981173106.0
"""Stands for the moment at which it is made, as does its text."""
CREATED_TEXT = timestamp_text(CREATED)
DURATION = 86399.125
DURATION_TEXT = f"{DURATION:.3f}s"
"""Stands for how long its pods run."""


class Blanks(NamedTuple):
    """What is filled in."""

    name: str
    created: float
    created_text: str
    duration_text: str
    number: int
    """Which came first, where nothing else tells."""


def blanks(name: str, created: float, duration: float, number: int) -> Blanks:
    return Blanks(name, created, timestamp_text(created), f"{duration:.3f}s", number)


Fill = Callable[[Blanks], Any]


class Template(Generic[T]):
    """A value with blanks. Parts without any are shared by everything that is made of it."""

    def __init__(self, value: T) -> None:
        self._value = value
        self._fill = _filler(value)

    def fill(self, given: Blanks) -> T:
        if self._fill is None:
            return self._value
        made: T = self._fill(given)
        return made


def _filler(value: Any) -> Fill | None:
    """How a value is made anew; None if there is nothing to fill in."""
    match value:
        case str():
            return _text_filler(value)
        case float():
            return (lambda given: given.created) if value == CREATED else None
        case Struct():
            return _fields_filler(value, value.__struct_fields__, replace)
        case dict():
            return _mapping_filler(value)
        case list() | tuple() | frozenset():
            return _items_filler(value)
    if dataclasses.is_dataclass(value):
        return _fields_filler(value, tuple(field.name for field in dataclasses.fields(value)), dataclasses.replace)
    return None


def _text_filler(text: str) -> Fill | None:
    if text == CREATED_TEXT:
        return lambda given: given.created_text
    if text == DURATION_TEXT:
        return lambda given: given.duration_text
    if text.startswith(MADE_UID):
        kind = text[: len(MADE_UID) + 4]
        return lambda given: f"{kind}{given.number:08}"
    return (lambda given: text.replace(NAME, given.name)) if NAME in text else None


def _fields_filler(value: Any, names: tuple[str, ...], change: Callable[..., Any]) -> Fill | None:
    found = [(name, fill) for name in names if (fill := _filler(getattr(value, name))) is not None]
    if not found:
        return None
    return lambda given: change(value, **{name: fill(given) for name, fill in found})


def _mapping_filler(value: dict[Any, Any]) -> Fill | None:
    pairs = [(key, _filler(key), item, _filler(item)) for key, item in value.items()]
    if all(of_key is None and of_item is None for _, of_key, _, of_item in pairs):
        return None
    return lambda given: {
        key if of_key is None else of_key(given): item if of_item is None else of_item(given)
        for key, of_key, item, of_item in pairs
    }


def _items_filler(value: Any) -> Fill | None:
    pairs = [(item, _filler(item)) for item in value]
    if all(fill is None for _, fill in pairs):
        return None
    made, is_named = type(value), hasattr(value, "_fields")

    def fill_items(given: Blanks) -> Any:
        items = (item if fill is None else fill(given) for item, fill in pairs)
        return made(*items) if is_named else made(items)

    return fill_items
