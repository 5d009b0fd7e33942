"""What is derived from the state and kept only because finding it again would cost more: the one form of a cache.

Whatever keeps answers by key, or has to know whether something changed since it last looked, does so with these. Both
may be emptied at any moment, and nothing is decided otherwise: actions that are made anew begin with empty ones.
"""

from collections.abc import Callable, Hashable, ItemsView, Iterator
from typing import Generic, ParamSpec, Self, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")


class Derived(Generic[K, V]):
    """Values by key, found when they are first asked for. With `most`, the one that was put first makes room."""

    __slots__ = ("_most", "_values", "_version")

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._values: dict[K, V] = {}
        self._version: object = None

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def at(self, version: object) -> Self:
        """The same, emptied if the values were found at another version of what they follow from."""
        if version != self._version:
            self._values.clear()
            self._version = version
        return self

    def renew(self, version: object) -> None:
        """Note that what the values follow from has another version, and says the same as before."""
        self._version = version

    def of(self, key: K, find: Callable[P, V], *args: P.args, **kwargs: P.kwargs) -> V:
        """The value of a key; where it is not known, what `find` returns."""
        found = self._values.get(key)
        if found is None and key not in self._values:
            found = find(*args, **kwargs)
            self.put(key, found)
        return found  # type: ignore[return-value]  # None only where it was found

    def get(self, key: K) -> V | None:
        """The value of a key, if it is known."""
        return self._values.get(key)

    def items(self) -> ItemsView[K, V]:
        """All that are known."""
        return self._values.items()

    def put(self, key: K, value: V) -> V:
        """Let a key have a value, as the latest."""
        values = self._values
        values.pop(key, None)
        if self._most is not None and len(values) >= self._most:
            del values[next(iter(values))]
        values[key] = value
        return value

    def forget(self) -> None:
        """Empty it."""
        self._values.clear()


class Seen:
    """The version of something at which it was last looked at."""

    __slots__ = ("_version",)

    def __init__(self) -> None:
        self._version: object = None

    def is_news(self, version: object) -> bool:
        """Whether the version is another than at the last look; this is a look."""
        if version == self._version:
            return False
        self._version = version
        return True

    def is_at(self, version: object) -> bool:
        """Whether the last look was at this version; this is none."""
        return version == self._version

    def forget(self) -> None:
        """Let everything be news."""
        self._version = None
