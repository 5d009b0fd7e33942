"""A topology as columns: domains inside domains, coarse to fine, down to the single row.

A domain is told by the values of all levels down to it: rack 1 of block a is not rack 1 of block b. Rows are put in
rank order (by path, then by the node's name), and domains are numbered in the same order, so that every domain of every
level is one run of rows and of finer domains: what the domains of a level hold is one `reduceat` over the level below.

Depth 0 is the whole topology, depth 1 its coarsest level, `tree.leaf` its finest, and one below that the single rows.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.state.nodes import MISSING

Domains = NDArray[np.intp]
CLUSTER = "cluster"
"""What a topology is called as a whole that every row is in."""


@dataclass(frozen=True, slots=True, eq=False)
class LevelColumn:
    """One level as it is given: each row's value, as a code."""

    key: str
    title: str
    """What one of its domains is called in a message: rack."""
    codes: NDArray[np.int32]
    """One a row, MISSING where the row has no value."""
    values: Sequence[str]


class TopologyTree:
    """The domains of one topology over the rows that are in it. It never changes; a changed cluster has another."""

    def __init__(
        self,
        columns: Sequence[LevelColumn],
        rows: NDArray[np.intp],
        names: Sequence[str],
        *,
        capacity: int,
        with_gaps: bool = False,
        optional: Collection[str] = (),
    ) -> None:
        """Build the tree for some rows, with their nodes' names; each column has one code for each of these rows.

        A row without a value at some level is not in the topology. `with_gaps`: it is, as long as it has some value;
        at the level that it lacks it is in a domain without a name, which nobody can ask to share. `optional` levels
        may be lacking too; if all are, every row is in the topology.
        """
        self.levels = tuple(column.key for column in columns)
        needed = [index for index, column in enumerate(columns) if column.key not in optional]
        self.titles = ("topology" if needed else CLUSTER, *(column.title for column in columns), "node")
        self.leaf = len(columns)
        self._capacity = capacity
        self._columns = tuple(columns)
        ranks = np.empty((self.leaf, len(rows)), np.int64)
        for index, column in enumerate(columns):
            ranks[index] = _ranks(column.values, column.codes)
        has_value = ranks != MISSING
        with_some = needed and with_gaps
        inside = np.flatnonzero(has_value.any(axis=0) if with_some else has_value[needed].all(axis=0))
        by_name = _ranks(names, np.arange(len(names)))
        order = inside[np.lexsort((by_name[inside], *ranks[::-1, inside]))]
        self.rows = _frozen(rows[order])
        """Every row of the topology, in rank order. A place in here is called a position."""
        self._nest(ranks[:, order], order)
        self._codes: dict[int, NDArray[np.int32]] = {}

    def _nest(self, ranks: NDArray[np.int64], order: NDArray[np.intp]) -> None:
        count = ranks.shape[1]
        differs = np.zeros(count, np.bool_)
        differs[:1] = True
        domain_at = [np.zeros(count, np.intp)]  # of each position, by depth
        for line in ranks:
            differs[1:] |= line[1:] != line[:-1]
            domain_at.append(np.cumsum(differs) - 1)
        domain_at.append(np.arange(count))
        starts = [np.flatnonzero(np.diff(codes, prepend=-1)) for codes in domain_at]
        starts[0] = np.zeros(1, np.intp)
        self.starts = tuple(_frozen(found) for found in starts)
        """By depth: the position of each domain's first row."""
        pairs = zip(domain_at, starts[1:], strict=False)
        self.parents = (np.full(1, -1), *(_frozen(above[found]) for above, found in pairs))
        """By depth: each domain's domain one level above."""
        self.first_child = tuple(
            _frozen(np.searchsorted(self.parents[depth + 1], np.arange(len(starts[depth]))))
            for depth in range(self.leaf + 1)
        )
        """By depth, rows apart: the first of each domain's domains one level below; they follow one another."""
        self._domain_at = domain_at
        self._value_at = [column.codes[order][found] for column, found in zip(self._columns, starts[1:], strict=False)]
        every = [np.ones(len(found), np.bool_) for found in starts]
        self.has_name = (
            every[0],
            *(_frozen(codes != MISSING) for codes in self._value_at),
            every[-1],
        )
        """By depth: whether a domain is one that can be asked for."""

    def __len__(self) -> int:
        return len(self.rows)

    def depth_of(self, level: str) -> int | None:
        """Where a level stands; None if the topology does not have it."""
        return self.levels.index(level) + 1 if level in self.levels else None

    def count(self, depth: int) -> int:
        """How many domains there are."""
        return len(self.starts[depth])

    def codes(self, level: str) -> NDArray[np.int32]:
        """Each row's domain of a level, over all rows of the node table; MISSING (-1) where it is in none."""
        depth = self.levels.index(level) + 1
        found = self._codes.get(depth)
        if found is None:
            found = np.full(self._capacity, MISSING, np.int32)
            domains = self._domain_at[depth]
            found[self.rows] = np.where(self.has_name[depth][domains], domains, MISSING)
            self._codes[depth] = _frozen(found)
        return found

    def rows_of(self, depth: int, domain: int) -> NDArray[np.intp]:
        """The rows of a domain, in rank order."""
        start, end = self.span(depth, domain)
        return self.rows[start:end]

    def span(self, depth: int, domain: int) -> tuple[int, int]:
        """The positions of a domain: the first, and one past the last."""
        starts = self.starts[depth]
        return int(starts[domain]), int(starts[domain + 1]) if domain + 1 < len(starts) else len(self.rows)

    def path(self, depth: int, domain: int) -> tuple[str, ...]:
        """The values that tell a domain from all others, coarse to fine; empty for those that have no name."""
        values: list[str] = []
        while depth > 0:
            if depth <= self.leaf:
                code = int(self._value_at[depth - 1][domain])
                values.append("" if code == MISSING else self._columns[depth - 1].values[code])
            domain = int(self.parents[depth][domain])
            depth -= 1
        return tuple(reversed(values))

    def name(self, depth: int, domain: int) -> str:
        """A domain's path in one word, for messages: block-a/rack-1."""
        return "/".join(value for value in self.path(depth, domain) if value)

    # What the columns of one depth say about the depth above.

    def sum_up(self, depth: int, finer: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each domain of a depth, the sum over its domains one level below."""
        return _reduced(np.add, finer, self.first_child[depth], 0)

    def least(self, depth: int, finer: NDArray[np.int64], otherwise: int) -> NDArray[np.int64]:
        return _reduced(np.minimum, finer, self.first_child[depth], otherwise)

    def most(self, depth: int, finer: NDArray[np.int64], otherwise: int) -> NDArray[np.int64]:
        return _reduced(np.maximum, finer, self.first_child[depth], otherwise)

    def children(self, depth: int, domains: Domains) -> tuple[Domains, Domains]:
        """The domains one level below some domains, in order; and for each, which of the given it belongs to."""
        first = self.first_child[depth]
        ends = np.append(first[1:], self.count(depth + 1))
        counts = ends[domains] - first[domains]
        owner = np.repeat(np.arange(len(domains)), counts)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        return first[domains][owner] + offset, owner


def _reduced(operation: np.ufunc, finer: NDArray[np.int64], first: Domains, otherwise: int) -> NDArray[np.int64]:
    if not len(finer):  # a topology without rows: there is the whole, and nothing in it
        return np.full(len(first), otherwise, np.int64)
    found: NDArray[np.int64] = operation.reduceat(finer, first)
    return found


def _ranks(values: Sequence[str], codes: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each code's value among all values in order; MISSING where there is none."""
    rank = np.empty(len(values) + 1, np.int64)
    rank[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    rank[MISSING] = MISSING
    found: NDArray[np.int64] = rank[codes]
    return found


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
