"""Counts of pods by topology domain, kept up to date as pods come and go."""

import numpy as np
from numpy.typing import NDArray

from mooring.engine.shortcuts import Gone, Incremental
from mooring.state.effects import ShapeEffects, sum_by_code
from mooring.state.nodes import MISSING, ROW
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView


class DomainCount:
    """How much the pods of each domain of one topology key add up to, by what each shape counts for."""

    __slots__ = ("_codes", "_eligible", "counts", "effects", "key")

    def __init__(
        self,
        cluster: ClusterView,
        key: str,
        effects: ShapeEffects,
        eligible: NDArray[np.bool_] | None = None,
    ) -> None:
        """Count over all bound pods; with `eligible` (one a row) only those on eligible rows.

        With the key ROW each node counts for itself, whatever its labels are.
        """
        self.key = key
        self.effects = effects
        self._eligible = eligible
        self._codes = cluster.domain_codes(key)
        domains = cluster.end if key == ROW else len(cluster.label_values(key))
        self.counts = np.zeros(domains + 1, np.int64)
        """One a code of the label's values; the last, which stays 0, is what the code of a missing label picks."""
        if effects.any:
            self.add(*cluster.bound_pods())

    def add(self, shapes: NDArray[np.integer], rows: NDArray[np.integer], signs: NDArray[np.int64] | int = 1) -> bool:
        amounts = self.effects.at(shapes)
        if not self.effects.any:
            return False
        matter = amounts != 0
        if self._eligible is not None:
            matter &= self._eligible[rows]
        if not matter.any():
            return False
        amounts = (amounts * signs)[matter]
        self.counts += sum_by_code(self._codes[rows[matter]], amounts, len(self.counts))
        return True

    def add_one(self, shape_id: int, row: int, sign: int) -> bool:
        """The same for one pod, without the cost of arrays: most changes come one at a time."""
        amount = self.effects.of(shape_id)
        if not amount or (self._eligible is not None and not self._eligible[row]):
            return False
        code = self._codes.item(row)
        if code >= 0:
            self.counts[code] += sign * amount
        return True

    def domains(self) -> NDArray[np.int32]:
        """By row: the code of the domain in which its pods are counted, negative where they are not."""
        codes = self._codes if self._eligible is None else self._codes[: len(self._eligible)]
        return codes if self._eligible is None else np.where(self._eligible, codes, MISSING)

    @property
    def size_bytes(self) -> int:
        return self.counts.nbytes + (0 if self._eligible is None else self._eligible.nbytes)

    def at(self, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        """The count of each domain; 0 for the code of a missing label."""
        return self.counts[codes]

    def of(self, nodes: NodeRows) -> NDArray[np.int64]:
        """The count of each row's domain; 0 for rows without the label."""
        return self.counts[nodes.index] if self.key == ROW else self.counts[nodes.label_codes(self.key)]

    def lost_by(self, nodes: NodeRows, gone: Gone) -> NDArray[np.int64]:
        """How much each row's domain would lose if some pods of the row were gone."""
        lost = gone(self.effects) * (self._codes[nodes.index] >= 0)
        return lost if self._eligible is None else lost * self._eligible[nodes.index]

    def of_row(self, row: int) -> int:
        """The same for one row, without the cost of arrays."""
        return self.counts.item(self._codes.item(row))


class Counted(Incremental):
    """Something prepared that is made of domain counts."""

    def __init__(self, parts: list[DomainCount]) -> None:
        self.parts = parts

    def own_counts(self, nodes: NodeRows) -> NDArray[np.int64]:
        own = [part for part in self.parts if nodes.is_one_row_each(part.key)]
        return np.array([part.of(nodes) for part in own], np.int64).reshape(len(own), len(nodes))

    def is_moved_by(self, shape: Shape) -> bool:
        return any(part.effects.of(shape.id) for part in self.parts)

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)

    def update(self, shapes: NDArray[np.intp], rows: NDArray[np.intp], signs: NDArray[np.int64]) -> bool:
        if len(rows) == 1:
            return self.update_one(shapes.item(), rows.item(), signs.item())
        changed = False
        for part in self.parts:
            changed |= part.add(shapes, rows, signs)
        return changed

    def update_one(self, shape_id: int, row: int, sign: int) -> bool:
        changed = False
        for part in self.parts:
            changed |= part.add_one(shape_id, row, sign)
        return changed
