"""Some rows of the node table, as plugins see them: read-only columns, one value a row."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.model.nodes import Node, Taint
from mooring.model.requests import CPU, MEMORY
from mooring.state.nodes import MISSING, NodeTable
from mooring.state.shapes import Shape

Rows = NDArray[np.intp]


class NodeRows:
    """Answers every question about some rows with an array of that length, in that order.

    `extra` lets the engine ask what would be after `extra[i]` more pods of one shape ran on row i: a plugin that reads
    usage through these methods answers for the future without knowing it.
    """

    __slots__ = ("_extra", "_shape", "index", "table")

    def __init__(
        self, table: NodeTable, index: Rows, extra: NDArray[np.int64] | None = None, shape: Shape | None = None
    ) -> None:
        self.table = table
        self.index = index
        self._extra = extra
        self._shape = shape

    def __len__(self) -> int:
        return len(self.index)

    # What runs on the nodes.

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        return self.table.allocatable(resource)[self.index]

    def requested(self, resource: str) -> NDArray[np.int64]:
        """Taken of a resource, in its column unit: millis of CPU, bytes, counts."""
        taken = self.table.requested(resource)[self.index]
        if self._shape is not None and self._extra is not None:
            taken += self._extra * self._shape.request(resource)
        return taken

    def free(self, resource: str) -> NDArray[np.int64]:
        return self.allocatable(resource) - self.requested(resource)

    def nonzero_requested(self, resource: str) -> NDArray[np.int64]:
        """As `requested`, but every container counts for at least a little CPU and memory."""
        if resource not in (CPU, MEMORY):
            return self.requested(resource)
        is_cpu = resource == CPU
        taken = (self.table.nonzero_cpu if is_cpu else self.table.nonzero_memory).values[self.index]
        if self._shape is not None and self._extra is not None:
            taken += self._extra * self._shape.nonzero[0 if is_cpu else 1]
        return taken

    @property
    def pod_count(self) -> NDArray[np.int64]:
        count: NDArray[np.int64] = self.table.pod_count.values[self.index]
        return count if self._extra is None else count + self._extra

    @property
    def allowed_pods(self) -> NDArray[np.int64]:
        allowed: NDArray[np.int64] = self.table.allowed_pods.values[self.index]
        return allowed

    # How the nodes are described.

    @property
    def names(self) -> list[str]:
        return [self.table.name(row) for row in self.index.tolist()]

    @property
    def nodes(self) -> list[Node]:
        """The nodes as Kubernetes knows them; slower than the columns, for facts that have none."""
        return [self.table.node(row) for row in self.index.tolist()]

    @property
    def unschedulable(self) -> NDArray[np.bool_]:
        cordoned: NDArray[np.bool_] = self.table.unschedulable.values[self.index]
        return cordoned

    @property
    def taint_set(self) -> NDArray[np.int32]:
        """The code of each row's set of taints; `taint_sets` has the sets."""
        codes: NDArray[np.int32] = self.table.taint_set.values[self.index]
        return codes

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...]]:
        return self.table.taint_sets.values

    def label_codes(self, key: str) -> NDArray[np.int32]:
        """The code of each row's value of a label, MISSING (-1) without it; `label_values` has the values."""
        return self.table.label(key).codes[self.index]

    def label_values(self, key: str) -> Sequence[str]:
        return self.table.label(key).interner.values

    def has_label(self, key: str, value: str | None = None) -> NDArray[np.bool_]:
        """Whether each row has a label, with this value if one is given."""
        codes = self.label_codes(key)
        if value is None:
            return codes != MISSING
        code = self.table.label(key).interner.code_of.get(value)
        return np.zeros(len(codes), np.bool_) if code is None else codes == code
