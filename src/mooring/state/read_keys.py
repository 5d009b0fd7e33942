"""Which labels and annotations of pods plugins read, and what they see of the others: nothing, and a word about it."""

import enum
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from dataclasses import dataclass
from typing import Final, TypeAlias, overload

from mooring.errors import UndeclaredRead


class All(enum.Enum):
    ALL = enum.auto()


ALL: Final = All.ALL
"""Instead of some keys: every one that a pod has."""
Keys: TypeAlias = frozenset[str] | All


@dataclass(frozen=True, slots=True)
class ReadKeys:
    """What all plugins together say they read of a pod that not all do."""

    labels: Keys = frozenset()
    annotations: Keys = frozenset()
    priority_class: bool = False


NOTHING_READ: Final = ReadKeys()


class ReadLabels(dict[str, str]):
    """The labels, or annotations, of a shape as plugins see them: those that some plugin says it reads.

    Pods of one shape may differ in all others, so that looking at one of those is a fault, also where the pod at hand
    does not have it; it would show only later, as a decision for a pod by another pod's label.
    """

    __slots__ = ("_keys", "_what")

    def __init__(self, given: dict[str, str], keys: Keys, what: str) -> None:
        super().__init__(given if keys is ALL else {key: given[key] for key in keys if key in given})
        self._keys = keys
        self._what = what

    def _check(self, key: object) -> None:
        if self._keys is not ALL and key not in self._keys:
            raise UndeclaredRead(self._what, str(key))

    def _check_all(self) -> None:
        if self._keys is not ALL:
            raise UndeclaredRead(self._what)

    def __bool__(self) -> bool:
        return True  # so that `labels or {}` stays this, and still tells

    def __getitem__(self, key: str) -> str:
        self._check(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._check(key)
        return super().__contains__(key)

    @overload  # type: ignore[override]  # what is not text is no default for a label
    def get(self, key: str, default: None = None, /) -> str | None: ...
    @overload
    def get(self, key: str, default: str, /) -> str: ...
    def get(self, key: str, default: str | None = None, /) -> str | None:
        self._check(key)
        return super().get(key, default)

    def __len__(self) -> int:
        self._check_all()
        return super().__len__()

    def __iter__(self) -> Iterator[str]:
        self._check_all()
        return super().__iter__()

    def keys(self) -> KeysView[str]:  # type: ignore[override]  # a view of the same, after a look
        self._check_all()
        return super().keys()

    def values(self) -> ValuesView[str]:  # type: ignore[override]
        self._check_all()
        return super().values()

    def items(self) -> ItemsView[str, str]:  # type: ignore[override]
        self._check_all()
        return super().items()

    def __eq__(self, other: object) -> bool:
        self._check_all()
        return super().__eq__(other)

    __hash__ = None
