"""A tournament in a tree: at every node the best of its children goes on, and the winner at the root is the best leaf.

Each node keeps its children in a heap. When something changes at a leaf, only the nodes on its way to the root get new
keys; old entries stay in the heaps until they come to the top and are recognised by their keys.
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

Key: TypeAlias = tuple[Any, ...]
"""Compares among siblings; the smallest wins. Ends with something that no two siblings share."""


class Tournament:
    """The best leaf of those that take part."""

    def __init__(self, parent: Sequence[int], key_of: Callable[[int, Key | None], Key]) -> None:
        """`key_of` takes a node and the key of its best child, None for a leaf. The root's parent is -1."""
        self._parent = parent
        self._key_of = key_of
        self._keys: list[Key | None] = [None] * len(parent)
        self._heaps: list[list[tuple[Key, int]]] = [[] for _ in parent]
        self._most = [16] * len(parent)
        for above in parent:
            if above >= 0:
                self._most[above] += 3
        self._root = next(node for node, above in enumerate(parent) if above < 0)

    def rebuild(self, leaves: Iterable[int]) -> None:
        """Start anew with these leaves, when keys may have changed anywhere."""
        self._keys = [None] * len(self._parent)
        self._heaps = [[] for _ in self._parent]
        for leaf in leaves:
            self.update(leaf, True)

    def update(self, leaf: int, takes_part: bool) -> None:
        """Follow a change at a leaf and on its way to the root."""
        keys, heaps, parent, key_of = self._keys, self._heaps, self._parent, self._key_of
        node = leaf
        key = key_of(leaf, None) if takes_part else None
        while True:
            above = parent[node]
            if key != keys[node]:
                keys[node] = key
                if key is not None and above >= 0:
                    heappush(heaps[above], (key, node))
                    if len(heaps[above]) > self._most[above]:
                        self._sweep(above)
            if above < 0:
                return
            best = self._best_child(above)
            key = None if best is None else key_of(above, keys[best])
            node = above

    def key(self, node: int) -> Key | None:
        """The key of a node; None if nobody below it takes part."""
        return self._keys[node]

    def best(self) -> int | None:
        node = self._root
        child = self._best_child(node)
        while child is not None:
            node = child
            child = self._best_child(node)
        return None if node == self._root else node

    def _best_child(self, node: int) -> int | None:
        heap, keys = self._heaps[node], self._keys
        while heap:
            key, child = heap[0]
            if keys[child] == key:
                return child
            heappop(heap)
        return None

    def _sweep(self, node: int) -> None:
        """Forget old entries before they outnumber the others."""
        current = {child for key, child in self._heaps[node] if self._keys[child] == key}
        self._heaps[node] = [(key, child) for child in current if (key := self._keys[child]) is not None]
        heapify(self._heaps[node])
