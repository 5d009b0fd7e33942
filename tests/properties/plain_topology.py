"""The choice of domains in the plainest words: try everything. To compare the columns with."""

from collections.abc import Iterator
from dataclasses import dataclass

Path = tuple[str, ...]


@dataclass(frozen=True)
class Plain:
    """Rows with their paths, and how many members fit on each."""

    paths: list[Path]
    fits: list[int]

    def domains(self, depth: int) -> dict[Path, list[int]]:
        """The rows of each domain of a depth: those whose paths begin alike."""
        found: dict[Path, list[int]] = {}
        for row, path in enumerate(self.paths):
            found.setdefault(path[:depth], []).append(row)
        return found

    def total(self, rows: list[int]) -> int:
        return sum(self.fits[row] for row in rows)

    def holds(self, rows: list[int], need: int, slice_size: int = 1, slice_depth: int = 0) -> bool:
        """Whether so many members fit on some rows, each slice of them inside one domain of the slices' depth."""
        left: dict[Path, int] = {}
        for row in rows:
            key = self.paths[row][:slice_depth] if slice_size > 1 else ()
            left[key] = left.get(key, 0) + self.fits[row]
        slices = [slice_size] * (need // slice_size) + ([need % slice_size] if need % slice_size else [])
        if slice_size == 1:
            return sum(left.values()) >= need
        return _pack(tuple(sorted(left.values())), tuple(slices), {})

    def seated(self, beside: list[int]) -> Iterator["Plain"]:
        """The same rows with the leader on each that has a place for it, one after the other."""
        for row, room in enumerate(beside):
            if room >= 0:
                yield Plain(self.paths, [*self.fits[:row], room, *self.fits[row + 1 :]])


def _pack(left: tuple[int, ...], slices: tuple[int, ...], known: dict[tuple[tuple[int, ...], int], bool]) -> bool:
    """Whether each slice finds a place of its own: every place is tried for the first, then for the next."""
    if not slices:
        return True
    if (left, len(slices)) not in known:
        known[left, len(slices)] = any(
            room >= slices[0]
            and _pack(tuple(sorted((*left[:index], room - slices[0], *left[index + 1 :]))), slices[1:], known)
            for index, room in enumerate(left)
        )
    return known[left, len(slices)]


def fewest(sizes: list[int], need: int) -> int:
    """How many of some domains are enough for so many members, at least."""
    total = 0
    for count, size in enumerate(sorted(sizes, reverse=True)):
        if total >= need:
            return count
        total += size
    return len(sizes)
