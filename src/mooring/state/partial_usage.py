"""What some of the pods take of each row: kept by following who comes and goes, as `NodeTable` keeps what all take.

Somebody says which shapes count, and reads columns. What is tried out and undone shows as pods that come and go, too,
so that what is read is what is there, inside of a trial and after it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mooring.state.nodes import PLACES
from mooring.state.pods import PodChanges, PodTable
from mooring.state.shapes import Shape, ShapeTable


class PartialUsage:
    """Columns of what the pods of some shapes take, by resource; PLACES counts the pods themselves."""

    def __init__(
        self, pods: PodTable, changes: PodChanges, shapes: ShapeTable, counts: Callable[[Shape], bool]
    ) -> None:
        """`counts` is asked about shapes, and says the same of a pod whichever shape it has."""
        self._pods = pods
        self._changes = changes
        self._shapes = shapes
        self._counts = counts
        self._position = -1
        self._epoch = -1
        self._columns: dict[str, NDArray[np.int64]] = {}

    def of(self, resource: str, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """How much those pods take of a resource of each of some rows, in its column unit."""
        self._catch_up()
        column = self._columns.get(resource)
        if column is None:
            return np.zeros(len(rows), np.int64)
        taken = np.zeros(len(rows), np.int64)
        known = rows < len(column)  # behind its end are rows to which nobody has come yet
        taken[known] = column[rows[known]]
        return taken

    def _catch_up(self) -> None:
        if self._position == self._changes.position and self._epoch == self._shapes.epoch:
            return
        # Once shapes are forgotten, the numbers in the log may be those of others.
        changes = self._changes.since(self._position) if self._epoch == self._shapes.epoch else None
        if changes is None:
            self._columns = {}
            shapes, rows = self._pods.bound()
            self._add(shapes.astype(np.intp), rows.astype(np.intp), np.ones(len(rows), np.int64))
        else:
            self._add(*changes)
        self._position, self._epoch = self._changes.position, self._shapes.epoch

    def _add(self, shapes: NDArray[np.intp], rows: NDArray[np.intp], signs: NDArray[np.int64]) -> None:
        for shape_id in np.unique(shapes).tolist():
            shape = self._shapes[shape_id]
            if not self._counts(shape):
                continue
            at = shapes == shape_id
            to, by = rows[at], signs[at]
            for resource, amount in (*shape.requests.items(), (PLACES, 1)):
                if amount:
                    np.add.at(self._column(resource, int(to.max())), to, by * amount)

    def _column(self, resource: str, last: int) -> NDArray[np.int64]:
        """A resource's column, with a place for every row up to the last."""
        column = self._columns.get(resource)
        if column is None or len(column) <= last:
            grown = np.zeros(max(64, 2 * (last + 1)), np.int64)
            if column is not None:
                grown[: len(column)] = column
            column = self._columns[resource] = grown
        return column
