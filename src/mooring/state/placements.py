"""Pods on rows: decisions are assumed until the world confirms or refuses them, what-if is checkpoint and rollback."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.errors import InvariantBroken
from mooring.state.gangs import GangTable
from mooring.state.nodes import NodeTable
from mooring.state.pods import UNBOUND, PodChanges, PodRecord, PodTable


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A moment to come back to: everything assumed or released since is undone by `rollback`."""

    depth: int
    undo_length: int


class Placements:
    """Which pods are where; every change is undone if somebody was only asking."""

    def __init__(self, *, seed: int = 0) -> None:
        self.nodes = NodeTable(seed=seed)
        self.pods = PodTable()
        self.gangs = GangTable()
        self.pod_changes = PodChanges()
        self._undo = list[tuple[PodRecord, int, bool]]()
        self._depth = 0

    def assume(self, key: str, row: int) -> None:
        """Let a waiting pod take its place on a row."""
        record = self.pods.records[key]
        if record.row != UNBOUND or record.node_name:
            raise InvariantBroken(f"pod {key} is bound already, to {record.node_name}")
        record.assumed = True
        record.node_name = self.nodes.name(row)
        self._remember(record, UNBOUND, assumed=False)
        self._bind(record, row)

    def assume_many(self, records: Sequence[PodRecord], rows: NDArray[np.intp]) -> None:
        """Let waiting pods of one shape take their places, all at once."""
        if not records:
            return
        shape = records[0].shape
        row_list = rows.tolist()
        counts = Counter(row_list)
        self.nodes.account_many(np.array(list(counts), np.intp), np.array(list(counts.values()), np.int64), shape)
        self.pods.row.writable[[record.slot for record in records]] = rows
        self.pod_changes.extend(shape.id, rows)
        if self.gangs.of_pod:
            for record in records:
                self.gangs.touch(record.key)
        if self.pods.watchers:
            self.pods.changed([record.key for record in records])
        on_row = self.pods.on_row
        for record, row in zip(records, row_list, strict=True):
            if self._depth:
                self._remember(record, UNBOUND, assumed=False)
            record.row = row
            record.assumed = True
            record.node_name = self.nodes.name(row)
            on_row.setdefault(row, set()).add(record.slot)
            if shape.has_volumes:
                self.pods.with_volumes[record.slot] = row

    def release(self, key: str) -> None:
        """Take a bound pod off its row: to undo an assumption, or to ask what would be without it."""
        record = self.pods.records[key]
        self._remember(record, record.row, assumed=record.assumed)
        self._unbind(record)
        record.assumed = False
        record.node_name = ""

    def checkpoint(self) -> Checkpoint:
        self._depth += 1
        return Checkpoint(self._depth, len(self._undo))

    def rollback(self, checkpoint: Checkpoint) -> None:
        """Undo everything since the checkpoint, newest first; the columns are then as they were."""
        self._leave(checkpoint)
        while len(self._undo) > checkpoint.undo_length:
            record, row, assumed = self._undo.pop()
            if record.row != UNBOUND:
                self._unbind(record)
            record.assumed = assumed
            record.node_name = "" if row == UNBOUND else self.nodes.name(row)
            if row != UNBOUND:
                self._bind(record, row)

    def commit(self, checkpoint: Checkpoint) -> None:
        """Keep what happened since the checkpoint; an outer checkpoint can still undo it."""
        self._leave(checkpoint)
        if not self._depth:
            self._undo.clear()

    def _leave(self, checkpoint: Checkpoint) -> None:
        if checkpoint.depth != self._depth:
            raise InvariantBroken(f"checkpoint {checkpoint.depth} left while {self._depth} are open")
        self._depth -= 1

    def _remember(self, record: PodRecord, row: int, *, assumed: bool) -> None:
        if self._depth:
            self._undo.append((record, row, assumed))

    # The two elementary changes.

    def _bind(self, record: PodRecord, row: int) -> None:
        shape, slot = record.shape, record.slot
        record.row = row
        self.pods.row.writable[slot] = row
        self.pods.on_row.setdefault(row, set()).add(slot)
        if shape.has_volumes:
            self.pods.with_volumes[slot] = row
        self.nodes.account(row, shape, 1)
        self.pod_changes.append(shape.id, row, 1)
        self._note_change(record)

    def _unbind(self, record: PodRecord) -> None:
        row, shape, slot = record.row, record.shape, record.slot
        record.row = UNBOUND
        self.pods.row.writable[slot] = UNBOUND
        slots = self.pods.on_row[row]
        slots.discard(slot)
        if not slots:
            del self.pods.on_row[row]
        self.pods.with_volumes.pop(slot, None)
        self.nodes.account(row, shape, -1)
        self.pod_changes.append(shape.id, row, -1)
        self._note_change(record)

    def _note_change(self, record: PodRecord) -> None:
        if self.gangs.of_pod:
            self.gangs.touch(record.key)
        if self.pods.watchers:
            self.pods.changed((record.key,))
