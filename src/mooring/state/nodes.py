"""Nodes as rows: what each has, what is taken of it, and how it is described, one column a fact.

Rows are stable while a node lives, and reused after it is gone. Labels become columns of integer codes the first time
someone asks for their key; taints are interned as whole sets, because few sets occur and many nodes share them.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.model.api.nodes import Node, Taint
from mooring.model.devices.cards import GPU, NO_CARDS, NodeCards
from mooring.model.values.quantity import parse_quantity, to_units
from mooring.model.values.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, in_columns, to_node_units
from mooring.state.amounts import ALLOCATABLE, KINDS, REQUESTED, AmountColumn, Amounts, Lines, Taken
from mooring.state.columns import Column, Interner
from mooring.state.devices.cards import CardTable
from mooring.state.images import Image, add_images, forget_images
from mooring.state.shapes import Shape

ROW = ""
"""Instead of a label's key: each node is a domain of its own."""

MISSING = -1
"""The code of a label that a node does not have."""

TIE_BITS = 24
"""Enough that few of 10,000 nodes draw the same number; those keep row order."""

PLACES = ""
"""Instead of a resource's name: places for pods. A node allows so many, and each pod takes one."""

MOST_PODS = 2**31 - 1
"""A node allows no more, whatever it says: room is counted in pods, over all nodes."""


class LabelColumn:
    """The values of one label key, as codes; MISSING where a node does not have it."""

    __slots__ = ("column", "interner")

    def __init__(self, capacity: int) -> None:
        self.column = Column(np.int32, capacity, fill=MISSING)
        self.interner = Interner()

    @property
    def codes(self) -> NDArray[np.int32]:
        return self.column.values

    def set(self, row: int, value: str | None) -> None:
        self.column.writable[row] = MISSING if value is None else self.interner.code(value)


class NodeTable:
    """All nodes; only the cluster writes to it."""

    def __init__(self, capacity: int = 64, seed: int | None = 0) -> None:
        self.capacity = capacity
        self.seed = seed
        self._came = 0
        """How many nodes have come, where the order in which they did breaks ties."""
        self.end = 0
        """One past the last row ever used."""
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.resources = Interner()
        self.cube = Amounts(capacity)
        self.cards = CardTable(capacity)
        self.alive = Column(np.bool_, capacity)
        self.unschedulable = Column(np.bool_, capacity)
        self.tie = Column(np.int64, capacity)
        """Breaks ties between equal totals: the higher wins. A number drawn from seed and name, so that neither the
        order in which nodes came nor their row matters; without a seed, the node that came first wins."""
        self.taint_set = Column(np.int32, capacity)
        self.taint_sets = Interner()
        self.images: dict[str, Image] = {}
        self.used_ports: dict[tuple[str, int], dict[int, Counter[str]]] = {}
        """(protocol, port) -> row -> how many pods hold it on which ip."""
        self._labels: dict[str, LabelColumn] = {}
        self._free = list[int]()
        self._taken: dict[int, Taken] = {}
        self._live_rows: NDArray[np.intp] | None = None
        self.all_rows: NDArray[np.intp] | None = None
        """What `live_rows` returned last, if that was every row and still is."""
        self._lines_of: dict[tuple[str, ...], Lines] = {}
        self.version = 0
        """Rises when a node comes, goes or is described anew."""
        self._everywhere: dict[str, bool] = {}
        self._all_everywhere: dict[tuple[str, ...], bool] = {}
        self._one_row_each: dict[str, bool] = {}
        self._labelled: dict[str, bool] = {}
        # These are neighbours: what nearly every pod asks for is then one slice of the amounts.
        for name in (CPU, MEMORY, PLACES, EPHEMERAL_STORAGE):
            self.resource_code(name)
        self.pod_count = AmountColumn(self.cube, REQUESTED, self.resource_code(PLACES))
        self.allowed_pods = AmountColumn(self.cube, ALLOCATABLE, self.resource_code(PLACES))

    def __len__(self) -> int:
        return len(self.row_of)

    def live_rows(self) -> NDArray[np.intp]:
        """The rows of all nodes, in row order."""
        if self._live_rows is None:
            self._live_rows = np.flatnonzero(self.alive.values[: self.end])
            self._live_rows.flags.writeable = False
            self.all_rows = self._live_rows if len(self._live_rows) == self.end else None
        return self._live_rows

    def node(self, row: int) -> Node:
        node = self.nodes[row]
        assert node is not None, f"row {row} has no node"
        return node

    def find(self, name: str) -> Node | None:
        row = self.row_of.get(name)
        return None if row is None else self.node(row)

    def name(self, row: int) -> str:
        return self.node(row).metadata.name

    def names(self, rows: Iterable[int]) -> list[str]:
        return [node.metadata.name for row in rows if (node := self.nodes[row]) is not None]

    # Columns by name, made when first asked for.

    def resource_code(self, name: str) -> int:
        code = self.resources.code_of.get(name)
        if code is None:
            code = self.resources.code(name)
            self.cube.reserve(code + 1, self.capacity)
        return code

    def lines_of(self, names: tuple[str, ...]) -> Lines:
        """Where the amounts of some resources are."""
        lines = self._lines_of.get(names)
        if lines is None:
            lines = self._lines_of[names] = Lines(tuple(self.resource_code(name) for name in names))
        return lines

    def amounts(self, what: str, name: str) -> NDArray[np.int64]:
        """`allocatable`, `requested` or `nonzero` of one resource, one a row."""
        code = self.resource_code(name)
        line: NDArray[np.int64] = self.cube.integers[KINDS[what], code]
        return line

    def allocatable(self, name: str) -> NDArray[np.int64]:
        return self.amounts("allocatable", name)

    def requested(self, name: str) -> NDArray[np.int64]:
        return self.amounts("requested", name)

    def has_everywhere(self, name: str) -> bool:
        """Whether every node has some of a resource, so that nobody needs to guard against dividing by none."""
        known = self._everywhere.get(name)
        if known is None:
            known = self._everywhere[name] = bool((self.allocatable(name)[self.live_rows()] > 0).all())
        return known

    def has_all_everywhere(self, names: tuple[str, ...]) -> bool:
        known = self._all_everywhere.get(names)
        if known is None:
            known = self._all_everywhere[names] = all(self.has_everywhere(name) for name in names)
        return known

    def is_one_row_each(self, key: str) -> bool:
        """Whether every node has a value of a label for itself, as with hostnames."""
        if key == ROW:
            return True
        known = self._one_row_each.get(key)
        if known is None:
            codes = self.label(key).codes[self.live_rows()]
            known = self.has_label_everywhere(key) and len(np.unique(codes)) == len(codes)
            self._one_row_each[key] = known
        return known

    def has_label_everywhere(self, key: str) -> bool:
        """Whether every node has a label, so that nobody needs to look for those that lack it."""
        known = self._labelled.get(key)
        if known is None:
            known = self._labelled[key] = bool((self.label(key).codes[self.live_rows()] != MISSING).all())
        return known

    def domain_codes(self, key: str) -> NDArray[np.int32]:
        """Each row's domain of a topology key, as a code; MISSING for rows that are in none."""
        return np.arange(self.capacity, dtype=np.int32) if key == ROW else self.label(key).codes

    def label(self, key: str) -> LabelColumn:
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(self.capacity)
            for row in self.row_of.values():
                column.set(row, (self.node(row).metadata.labels or {}).get(key))
        return column

    # Nodes come, change and go.

    def put(self, node: Node, cards: NodeCards = NO_CARDS) -> int:
        """Add a node or replace its description; return its row."""
        row = self.row_of.get(node.metadata.name)
        if row is None:
            row = self._new_row(node.metadata.name)
        else:
            forget_images(self.images, row, self.nodes[row])
        self.nodes[row] = node
        self._forget_summaries()
        self._describe(row, node, cards)
        if cards is not NO_CARDS or row in self.cards.of_row:
            self.cards.put(row, cards)
        return row

    def offer(self, row: int, amounts: Mapping[str, int]) -> None:
        """A node has so much of some resources besides what it says itself: devices serve them."""
        for name, amount in amounts.items():
            self.cube.put_one(row, self.resource_code(name), amount)
        self._forget_summaries()

    def remove(self, name: str) -> int:
        row = self.row_of.pop(name)
        self._forget_summaries()
        forget_images(self.images, row, self.nodes[row])
        self.nodes[row] = None
        self.alive.writable[row] = False
        self._live_rows = self.all_rows = None
        self._free.append(row)
        self.cube.put_allocatable(row, {})
        self.cards.put(row, NO_CARDS)
        for label in self._labels.values():
            label.set(row, None)
        return row

    def _forget_summaries(self) -> None:
        self.version += 1
        self._everywhere.clear()
        self._all_everywhere.clear()
        self._one_row_each.clear()
        self._labelled.clear()

    def _new_row(self, name: str) -> int:
        if self._free:
            row = self._free.pop()
        else:
            row = self.end
            self.end += 1
            self.nodes.append(None)
            if row == self.capacity:
                self._grow()
        self.row_of[name] = row
        self.alive.writable[row] = True
        self.tie.writable[row] = self._draw_tie(name)
        self._live_rows = self.all_rows = None
        return row

    def _draw_tie(self, name: str) -> int:
        if self.seed is not None:
            return zlib.crc32(name.encode(), self.seed) >> (32 - TIE_BITS)
        self._came += 1
        return max((1 << TIE_BITS) - self._came, 0)

    def _describe(self, row: int, node: Node, cards: NodeCards) -> None:
        written = node.status.allocatable or node.status.capacity or {}
        if cards.lacking or cards.resources:
            written = {**cards.resources, **{name: n for name, n in written.items() if name not in cards.lacking}}
        amounts = {
            self.resource_code(name): to_node_units(name, parse_quantity(text))
            for name, text in written.items()
            if in_columns(name)
        }
        amounts[self.resource_code(PLACES)] = min(to_units(parse_quantity(written.get(PODS, 0))), MOST_PODS)
        self.cube.put_allocatable(row, amounts)
        self.unschedulable.writable[row] = node.spec.unschedulable
        self.taint_set.writable[row] = self.taint_sets.code(tuple(node.spec.taints or ()))
        labels = node.metadata.labels or {}
        for key, column_of_key in self._labels.items():
            column_of_key.set(row, labels.get(key))
        add_images(self.images, row, node)

    def _columns(self) -> Iterator[Column]:
        yield from (label.column for label in self._labels.values())
        yield from (self.alive, self.unschedulable, self.taint_set, self.tie)

    def _grow(self) -> None:
        self.capacity *= 2
        for column in self._columns():
            column.grow(self.capacity)
        self.cube.reserve(0, self.capacity)
        self.cards.grow(self.capacity)

    # Pods take and give back.

    def taken_by(self, shape: Shape) -> Taken:
        """What a pod of a shape takes."""
        found = self._taken.get(shape.id)
        if found is None or found.lines != self.cube.lines:
            requested = {self.resource_code(name): amount for name, amount in shape.requests.items()}
            nonzero = dict(zip((self.resource_code(CPU), self.resource_code(MEMORY)), shape.nonzero, strict=True))
            place = {self.resource_code(PLACES): 1}
            found = Taken(requested | place, requested | nonzero | place, self.cube.lines)
            self._taken[shape.id] = found
        return found

    def forget_shapes_but(self, living: Set[int]) -> None:
        self._taken = {shape_id: taken for shape_id, taken in self._taken.items() if shape_id in living}

    def account(self, row: int, shape: Shape, sign: int) -> None:
        """Let one pod of this shape take its share of a row (sign 1), or give it back (sign -1)."""
        if sign > 0:
            self.cube.take(row, self.taken_by(shape))
        else:
            self.cube.give_back(row, self.taken_by(shape))
        for ip, protocol, port in shape.host_ports:
            self._account_port(row, ip, (protocol, port), sign)

    def account_many(self, rows: NDArray[np.intp], counts: NDArray[np.int64], shape: Shape) -> None:
        """Let `counts` pods of one shape take their share of distinct rows at once."""
        self.cube.take_many(rows, counts, self.taken_by(shape))
        for ip, protocol, port in shape.host_ports:
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
                self._account_port(row, ip, (protocol, port), count)

    def account_whole(self, row: int, cards: int, sign: int) -> None:
        """Take GPUs that are handed out by count from a row, or give them back: pods share them."""
        code = {self.resource_code(GPU): 1}
        whole = Taken(code, code, self.cube.lines)
        for _ in range(cards):
            (self.cube.take if sign > 0 else self.cube.give_back)(row, whole)

    def _account_port(self, row: int, ip: str, port: tuple[str, int], sign: int) -> None:
        holders = self.used_ports.setdefault(port, {}).setdefault(row, Counter())
        holders[ip] += sign
        if not holders[ip]:
            del holders[ip]
            if not holders:
                del self.used_ports[port][row]
                if not self.used_ports[port]:
                    del self.used_ports[port]

    def fingerprint(self) -> dict[str, Any]:
        """Every mutable fact in comparable form: what a rollback must restore."""
        end = self.end
        columns = {
            f"{what}:{name}": self.amounts(what, name)[:end].tolist()
            for what in ("allocatable", "requested", "nonzero")
            for name in list(self.resources.values)
        }
        for name in ("alive", "pod_count", "allowed_pods", "unschedulable"):
            columns[name] = getattr(self, name).values[:end].tolist()
        ports = {port: {row: dict(ips) for row, ips in rows.items()} for port, rows in self.used_ports.items()}
        return {"columns": columns, "ports": ports, "rows": dict(self.row_of), "cards": self.cards.fingerprint()}


def node_taints(table: NodeTable, code: int) -> tuple[Taint, ...]:
    taints: tuple[Taint, ...] = table.taint_sets.values[code]
    return taints
