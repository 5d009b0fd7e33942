"""Nodes as rows: what each has, what is taken of it, and how it is described, one column a fact.

Rows are stable while a node lives, and reused after it is gone. Labels become columns of integer codes the first time
someone asks for their key; taints are interned as whole sets, because few sets occur and many nodes share them.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.errors import InvariantBroken
from mooring.model.api.nodes import Node, Taint
from mooring.model.devices.cards import GPU, NO_CARDS, NodeCards
from mooring.model.values.quantity import parse_quantity, to_units
from mooring.model.values.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, in_columns, to_node_units
from mooring.state.amounts import (
    ALLOCATABLE,
    KINDS,
    REQUESTED,
    AmountColumn,
    Amounts,
    Difference,
    ResourceColumns,
    Taken,
)
from mooring.state.columns import Column, Interner
from mooring.state.devices.cards import CardTable
from mooring.state.images import Image, add_images, forget_images
from mooring.state.load import LoadTable
from mooring.state.shapes import Shape

ROW = ""
"""Instead of a label's key: each node is a domain of its own."""

ROW_BY_ITSELF = "kubernetes.io/hostname"
"""The label by which nodes that are alike differ."""

MISSING = -1
"""The code of a label that a node does not have."""

TIE_BITS = 24
"""Enough that few of 10,000 nodes draw the same number; those keep row order."""

PLACES = ""
"""Instead of a resource's name: places for pods. A node allows so many, and each pod takes one."""

MOST_PODS = 2**31 - 1
"""A node allows no more, whatever it says: room is counted in pods, over all nodes."""


MOST_DIFFERENCES = 4096
"""So many pairs of shapes are remembered."""


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


class HiddenRows(NamedTuple):
    """Nodes on rows that are closed, and what their rows were like."""

    rows: list[int]
    nodes: list[Node]
    order: list[str]
    """The names of all nodes, in the order in which they came."""
    amounts: NDArray[np.int64]
    """(resource codes, rows): allocatable."""
    codes: dict[str, NDArray[np.int32]]
    """By label key."""
    taints: NDArray[np.int32]
    ties: NDArray[np.int64]
    cards: dict[int, NodeCards]


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
        self.load = LoadTable(self.nodes, capacity)
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
        self._differences: dict[tuple[int, int], Difference] = {}
        """Between what pods of one shape and of another take."""
        self._live_rows: NDArray[np.intp] | None = None
        self.all_rows: NDArray[np.intp] | None = None
        """What `live_rows` returned last, if that was every row and still is."""
        self._lines_of: dict[tuple[str, ...], ResourceColumns] = {}
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

    def lines_of(self, names: tuple[str, ...]) -> ResourceColumns:
        """Where the amounts of some resources are."""
        lines = self._lines_of.get(names)
        if lines is None:
            lines = self._lines_of[names] = ResourceColumns(tuple(self.resource_code(name) for name in names))
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

    def crowded_rows(self, names: Sequence[str]) -> list[int]:
        """The rows whose pods ask for more of some resource than there is, as after a resize that waits for room."""
        rows = self.live_rows()
        over = np.zeros(len(rows), np.bool_)
        for name in names:
            over |= self.requested(name)[rows] > self.allocatable(name)[rows]
        found: list[int] = rows[over].tolist()
        return found

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
        if self.load.columns:
            self.load.describe(row)
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
        self.alive.writable[row] = self.unschedulable.writable[row] = False
        self._live_rows = self.all_rows = None
        self._free.append(row)
        self.cube.put_allocatable(row, {})
        self.cards.put(row, NO_CARDS)
        if self.load.columns:
            self.load.describe(row)
        for label in self._labels.values():
            label.set(row, None)
        return row

    # Rows that are opened and closed in a trial.

    def open(self, named: Sequence[Node], cards: NodeCards) -> list[int]:
        """Add nodes that are alike but for their names; return their rows, which are free ones if there are enough."""
        template, names = named[0], [node.metadata.name for node in named]
        if not self.row_of.keys().isdisjoint(names):
            raise InvariantBroken(f"there is a node already that is called as one on offer: {template.metadata.name}")
        at: slice | list[int]
        if len(named) <= len(self._free):
            rows = at = self._free[-len(named) :]
            del self._free[-len(named) :]
            for row, node in zip(rows, named, strict=True):
                self.nodes[row] = node
        else:
            first, self.end = self.end, self.end + len(named)
            rows, at = list(range(first, self.end)), slice(first, self.end)
            while self.capacity < self.end:
                self._grow()
            self.nodes += named
        self.row_of.update(zip(names, rows, strict=True))
        self.alive.writable[at] = True
        self.tie.writable[at] = self._draw_ties(names)
        self._live_rows = self.all_rows = None
        self._forget_summaries()
        self.unschedulable.writable[at] = template.spec.unschedulable
        self.taint_set.writable[at] = self.taint_sets.code(tuple(template.spec.taints or ()))
        amounts = self._amounts_of(template, cards)
        column = np.zeros(self.cube.lines, np.int64)
        column[list(amounts)] = list(amounts.values())
        self.cube.put_many_allocatable(at, column[:, np.newaxis])
        labels = template.metadata.labels or {}
        for key, label in self._labels.items():
            if key == ROW_BY_ITSELF:
                label.column.writable[at] = [label.interner.code(name) for name in names]
            else:
                label.column.writable[at] = MISSING if key not in labels else label.interner.code(labels[key])
        if template.status.images:
            for row in rows:
                add_images(self.images, row, template)
        if cards is not NO_CARDS:
            self.cards.put_many(rows, cards)
        return rows

    def shut(self, rows: list[int], end: int) -> None:
        """Undo: these rows are not open, and the last row ever used is the one before this."""
        if end == self.end:
            self.hide(rows)
            return
        for row in rows:
            node = self.node(row)
            del self.row_of[node.metadata.name]
            forget_images(self.images, row, node)
        del self.nodes[end:]
        at, self.end = slice(end, self.end), end
        self.alive.writable[at] = self.unschedulable.writable[at] = False
        self._live_rows = self.all_rows = None
        self._forget_summaries()
        self.cube.put_many_allocatable(at, np.zeros((self.cube.lines, 1), np.int64))
        for label in self._labels.values():
            label.column.writable[at] = MISSING
        self.cards.clear(rows)

    def hide(self, rows: list[int]) -> HiddenRows:
        """Let there be no nodes on some rows, on which no pods are; these rows may be others' then."""
        at = _span(rows)
        nodes = [self.node(row) for row in rows]
        cards_of = self.cards.of_row
        hidden = HiddenRows(
            rows,
            nodes,
            list(self.row_of),
            self.cube.integers[ALLOCATABLE][:, at].copy(),
            {key: label.codes[at].copy() for key, label in self._labels.items()},
            self.taint_set.values[at].copy(),
            self.tie.values[at].copy(),
            {row: cards_of[row] for row in rows if row in cards_of} if cards_of else {},
        )
        for row, node in zip(rows, nodes, strict=True):
            del self.row_of[node.metadata.name]
            self.nodes[row] = None
            if node.status.images:
                forget_images(self.images, row, node)
        self.alive.writable[at] = self.unschedulable.writable[at] = False
        self._live_rows = self.all_rows = None
        self._forget_summaries()
        self._free += rows
        self.cube.put_many_allocatable(at, np.zeros((self.cube.lines, 1), np.int64))
        for label in self._labels.values():
            label.column.writable[at] = MISSING
        self.cards.clear(rows)
        return hidden

    def show(self, hidden: HiddenRows) -> None:
        """Undo: the nodes are there again."""
        rows, at = hidden.rows, _span(hidden.rows)
        del self._free[len(self._free) - len(rows) :]
        for row, node in zip(rows, hidden.nodes, strict=True):
            self.nodes[row] = node
            self.row_of[node.metadata.name] = row
            if node.status.images:
                add_images(self.images, row, node)
        self.row_of = {name: self.row_of[name] for name in hidden.order}
        self.alive.writable[at] = True
        self.unschedulable.writable[at] = [node.spec.unschedulable for node in hidden.nodes]
        # Nodes on offer may have been on these rows meanwhile, under other names and with other taints.
        self.taint_set.writable[at], self.tie.writable[at] = hidden.taints, hidden.ties
        self._live_rows = self.all_rows = None
        self._forget_summaries()
        amounts = np.zeros((self.cube.lines, len(rows)), np.int64)
        amounts[: len(hidden.amounts)] = hidden.amounts
        self.cube.put_many_allocatable(at, amounts)
        for key, label in self._labels.items():
            codes = hidden.codes.get(key)
            if codes is not None:
                label.column.writable[at] = codes
                continue
            for row, node in zip(rows, hidden.nodes, strict=True):  # somebody has asked for the label since
                label.set(row, (node.metadata.labels or {}).get(key))
        alike: dict[int, list[int]] = {}
        for row, cards in hidden.cards.items():
            alike.setdefault(id(cards), []).append(row)
        for same in alike.values():
            self.cards.put_many(same, hidden.cards[same[0]])

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
        self.tie.writable[row] = self._draw_ties((name,))[0]
        self._live_rows = self.all_rows = None
        return row

    def _draw_ties(self, names: Sequence[str]) -> list[int]:
        seed = self.seed
        if seed is not None:
            crc32, shift = zlib.crc32, 32 - TIE_BITS
            return [crc32(name.encode(), seed) >> shift for name in names]
        first, self._came = self._came + 1, self._came + len(names)
        return [max((1 << TIE_BITS) - came, 0) for came in range(first, first + len(names))]

    def _amounts_of(self, node: Node, cards: NodeCards) -> dict[int, int]:
        """What a node has of each resource, by code."""
        written = node.status.allocatable or node.status.capacity or {}
        if cards.lacking or cards.resources:
            written = {**cards.resources, **{name: n for name, n in written.items() if name not in cards.lacking}}
        amounts = {
            self.resource_code(name): to_node_units(name, parse_quantity(text))
            for name, text in written.items()
            if in_columns(name)
        }
        amounts[self.resource_code(PLACES)] = min(to_units(parse_quantity(written.get(PODS, 0))), MOST_PODS)
        return amounts

    def _describe(self, row: int, node: Node, cards: NodeCards) -> None:
        self.cube.put_allocatable(row, self._amounts_of(node, cards))
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
        self.load.grow(self.capacity)

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
        self._differences.clear()

    def account(self, row: int, shape: Shape, sign: int) -> None:
        """Let one pod of this shape take its share of a row (sign 1), or give it back (sign -1)."""
        if sign > 0:
            self.cube.take(row, self.taken_by(shape))
        else:
            self.cube.give_back(row, self.taken_by(shape))
        for ip, protocol, port in shape.host_ports:
            self._account_port(row, ip, (protocol, port), sign)

    def account_as(self, row: int, old: Shape, new: Shape) -> None:
        """Let a pod that takes its share of a row take it as a pod of another shape."""
        difference = self._differences.get((old.id, new.id))
        if difference is None or difference.lines != self.cube.lines:
            difference = self._find_difference(old, new)
        self.cube.exchange(row, difference)
        if old.host_ports or new.host_ports:
            for shape, sign in ((old, -1), (new, 1)):
                for ip, protocol, port in shape.host_ports:
                    self._account_port(row, ip, (protocol, port), sign)

    def _find_difference(self, old: Shape, new: Shape) -> Difference:
        self.taken_by(new)  # it may be the first to ask for a resource, and so for another line
        difference = Difference(self.taken_by(old), self.taken_by(new))
        if len(self._differences) >= MOST_DIFFERENCES:
            self._differences.clear()
        self._differences[old.id, new.id] = difference
        return difference

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
        for name in ("taint_set", "tie"):  # of a row without a node they say nothing
            columns[name] = np.where(self.alive.values[:end], getattr(self, name).values[:end], 0).tolist()
        ports = {port: {row: dict(ips) for row, ips in rows.items()} for port, rows in self.used_ports.items()}
        return {"columns": columns, "ports": ports, "rows": dict(self.row_of), "cards": self.cards.fingerprint()}


def _span(rows: list[int]) -> slice | list[int]:
    """Rows that follow one another as a slice, which is faster."""
    return slice(rows[0], rows[-1] + 1) if rows == list(range(rows[0], rows[-1] + 1)) else rows


def node_taints(table: NodeTable, code: int) -> tuple[Taint, ...]:
    taints: tuple[Taint, ...] = table.taint_sets.values[code]
    return taints
