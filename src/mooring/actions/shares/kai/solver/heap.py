"""A heap whose items may change while they are in it: what is compared is what they are at that moment.

KAI's order depends on when it compares queues again, so where an item goes follows the usual steps of a binary heap.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Heap(Generic[T]):
    """Items of which the first can be read, and taken out."""

    def __init__(self, goes_first: Callable[[T, T], bool]) -> None:
        self._items: list[T] = []
        self._goes_first = goes_first

    def __len__(self) -> int:
        return len(self._items)

    def peek(self) -> T:
        return self._items[0]

    def push(self, item: T) -> None:
        self._items.append(item)
        self._rise(len(self._items) - 1)

    def pop(self) -> T:
        items = self._items
        items[0], items[-1] = items[-1], items[0]
        found = items.pop()
        self._sink()
        return found

    def next(self) -> T:
        """Take out the first item and put it back: it goes to where it belongs by now."""
        found = self.pop()
        self.push(found)
        return found

    def fix_first(self) -> None:
        """Let the first item go to where it belongs by now."""
        self._sink()

    def _rise(self, at: int) -> None:
        items = self._items
        while at:
            above = (at - 1) // 2
            if not self._goes_first(items[at], items[above]):
                break
            items[at], items[above] = items[above], items[at]
            at = above

    def _sink(self) -> None:
        items, at = self._items, 0
        while (child := 2 * at + 1) < len(items):
            if child + 1 < len(items) and self._goes_first(items[child + 1], items[child]):
                child += 1
            if not self._goes_first(items[child], items[at]):
                break
            items[at], items[child] = items[child], items[at]
            at = child
