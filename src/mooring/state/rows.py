"""Some rows of the node table, as plugins see them: read-only columns, one value a row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.model.api.nodes import Node, Taint
from mooring.model.devices.cards import GPU
from mooring.model.values.requests import CPU, MEMORY
from mooring.state.amounts import ALLOCATABLE, KINDS
from mooring.state.devices.card_rows import CardRows
from mooring.state.nodes import MISSING, PLACES, NodeTable
from mooring.state.shapes import Shape

Rows = NDArray[np.intp]


def whole_quotient(dividend: NDArray[Any], divisor: NDArray[Any] | int) -> NDArray[Any]:
    """Divide and round down, exactly: integers by integers, or floats that hold whole numbers of NodeRows.stacked."""
    if dividend.dtype == np.float64:
        quotient: NDArray[Any] = dividend / divisor
        np.floor(quotient, out=quotient)
        return quotient
    return dividend // divisor


class NodeRows:
    """Answers every question about some rows with an array of that length, in that order.

    `extra` lets the engine ask what would be after `extra[i]` more pods of one shape ran on row i: a plugin that reads
    usage through these methods answers for the future without knowing it.
    """

    __slots__ = ("_cards", "_extra", "_known", "_shape", "_stacks", "_table", "_where", "index")

    def __init__(
        self, table: NodeTable, index: Rows, extra: NDArray[np.int64] | None = None, shape: Shape | None = None
    ) -> None:
        self._table = table
        self.index = index
        self._where: Rows | int = table.end if index is table.all_rows and extra is None else index
        """The same as `index`; the table's end if that is every row, so that nothing needs to be gathered."""
        self._extra = extra
        self._shape = shape
        self._stacks: dict[tuple[str, tuple[str, ...]], NDArray[Any]] = {}
        self._known: dict[tuple[str, str], NDArray[Any]] = {}
        self._cards: CardRows | None = None

    def __len__(self) -> int:
        return len(self.index)

    @property
    def further_pods(self) -> NDArray[np.int64] | None:
        """How many more pods of the shape at hand are supposed on each row; None if rows are as they are."""
        return self._extra

    # What runs on the nodes. Several plugins ask for the same columns: each is gathered once.

    def _column(self, kind: str, name: str, column: NDArray[Any], a_pod_adds: int) -> NDArray[Any]:
        found = self._known.get((kind, name))
        if found is None:
            found = column[: self._where] if isinstance(self._where, int) else column.take(self._where)
            if self._extra is not None and a_pod_adds:
                found += self._extra * a_pod_adds
            found.flags.writeable = False
            self._known[kind, name] = found
        return found

    def _a_pod_adds(self, what: str, resource: str) -> int:
        if self._shape is None or what == "allocatable":
            return 0
        if what in ("free", "spare"):
            return -self._a_pod_adds("requested" if what == "free" else "nonzero", resource)
        if resource == PLACES:
            return 1
        if what == "nonzero" and resource in (CPU, MEMORY):
            return self._shape.nonzero[resource == MEMORY]
        return self._shape.request(resource)

    def _amounts(self, what: str, resource: str) -> NDArray[np.int64]:
        column = self._table.amounts(what, resource)
        return self._column(what, resource, column, self._a_pod_adds(what, resource))

    def stacked(self, what: str, resources: tuple[str, ...]) -> NDArray[Any]:
        """(resources, rows): the amounts of several resources for arithmetic in one go.

        `what` is `allocatable`, `requested`, `free` (of the allocatable besides the requested), `nonzero` (what scoring
        counts as requested) or `spare` (besides that). Floats, which are fast, if every result is exact in them; else
        integers. Divide with `whole_quotient`, which is exact for both.
        """
        found = self._stacks.get((what, resources))
        if found is None:
            kind, lines = KINDS[what], self._table.lines_of(resources)
            found = self._table.cube.gather(kind, lines, self._where)
            if self._extra is not None and self._shape is not None and kind != ALLOCATABLE:
                if found.dtype == np.float64:
                    found += self._extra.astype(np.float64) * self._table.taken_by(self._shape).changes(kind, lines)
                else:
                    found += self._extra * np.array([[self._a_pod_adds(what, name)] for name in resources], np.int64)
            self._stacks[what, resources] = found
        return found

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        return self._amounts("allocatable", resource)

    def requested(self, resource: str) -> NDArray[np.int64]:
        """Taken of a resource, in its column unit: millis of CPU, bytes, counts."""
        return self._amounts("requested", resource)

    def free(self, resource: str) -> NDArray[np.int64]:
        return self.allocatable(resource) - self.requested(resource)

    def nonzero_requested(self, resource: str) -> NDArray[np.int64]:
        """As `requested`, but every container counts for at least a little CPU and memory."""
        return self._amounts("nonzero", resource)

    @property
    def pod_count(self) -> NDArray[np.int64]:
        return self.requested(PLACES)

    @property
    def allowed_pods(self) -> NDArray[np.int64]:
        return self.allocatable(PLACES)

    @property
    def cards(self) -> CardRows:
        """The GPUs of these rows, card by card."""
        if self._cards is None:
            table, shape = self._table.cards, self._shape
            policy = table.policies.get(shape.spec.scheduler_name) if table.policies and shape is not None else None
            self._cards = CardRows(table, self.index, self.free(GPU), policy)
            if self._extra is not None and shape is not None and shape.card_request is not None:
                self._cards.suppose(shape.card_request, self._extra)
        return self._cards

    # What was measured on the nodes.

    def load(self, about: str, fact: str) -> NDArray[np.float64]:
        """What was last reported of each row, NaN where nothing was: see `LoadTable.column`."""
        return self._column("load:" + about, fact, self._table.load.column(about, fact).values, 0)

    def is_load_stale(self, source: str, seconds: float) -> NDArray[np.bool_]:
        """Whether what a source told of each row is so old, or unknown."""
        stale: NDArray[np.bool_] = self._table.load.is_stale(source, seconds)[self.index]
        return stale

    # How the nodes are described.

    @property
    def names(self) -> list[str]:
        return [self._table.name(row) for row in self.index.tolist()]

    @property
    def nodes(self) -> list[Node]:
        """The nodes as Kubernetes knows them; slower than the columns, for facts that have none."""
        return [self._table.node(row) for row in self.index.tolist()]

    @property
    def unschedulable(self) -> NDArray[np.bool_]:
        cordoned: NDArray[np.bool_] = self._table.unschedulable.values[self.index]
        return cordoned

    @property
    def taint_set(self) -> NDArray[np.int32]:
        """The code of each row's set of taints; `taint_sets` has the sets."""
        codes: NDArray[np.int32] = self._table.taint_set.values[self.index]
        return codes

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...]]:
        return self._table.taint_sets.values

    def label_codes(self, key: str) -> NDArray[np.int32]:
        """The code of each row's value of a label, MISSING (-1) without it; `label_values` has the values."""
        return self._column("label", key, self._table.label(key).codes, 0)

    def label_values(self, key: str) -> Sequence[str]:
        return self._table.label(key).interner.values

    def has_label(self, key: str, value: str | None = None) -> NDArray[np.bool_]:
        """Whether each row has a label, with this value if one is given."""
        codes = self.label_codes(key)
        if value is None:
            has: NDArray[np.bool_] = codes != MISSING
            return has
        code = self._table.label(key).interner.code_of.get(value)
        return np.zeros(len(codes), np.bool_) if code is None else codes == code

    # What holds for the whole table, whichever rows these are.

    def label_code_of(self, key: str) -> Mapping[str, int]:
        """The code of each value of a label."""
        return self._table.label(key).interner.code_of

    def row_of(self, name: str) -> int | None:
        """The row of a node, also if it is none of these."""
        return self._table.row_of.get(name)

    def used_ports(self, protocol: str, port: int) -> Mapping[int, Mapping[str, int]]:
        """By row: how many pods hold a port of the host on which address."""
        return self._table.used_ports.get((protocol, port), {})

    def has_all_everywhere(self, resources: tuple[str, ...]) -> bool:
        """Whether every node has some of each of these, so that nobody needs to guard against dividing by none."""
        return self._table.has_all_everywhere(resources)

    def has_label_everywhere(self, key: str) -> bool:
        """Whether every node has a label, so that nobody needs to look for those that lack it."""
        return self._table.has_label_everywhere(key)

    def is_one_row_each(self, key: str) -> bool:
        """Whether every node has a value of a label for itself, as with hostnames."""
        return self._table.is_one_row_each(key)
