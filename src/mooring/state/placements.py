"""Pods on rows: decisions are assumed until the world confirms or refuses them, or undone if somebody only tried."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.errors import InvariantBroken
from mooring.model.devices.cards import GPU
from mooring.model.keys import PodKey
from mooring.state.devices.card_holders import CardHolders
from mooring.state.devices.joined import JoinedCards
from mooring.state.devices.table import DeviceTable
from mooring.state.devices.taking import DeviceTaker
from mooring.state.gangs import GangTable
from mooring.state.nodes import NodeTable
from mooring.state.numa import NumaTable
from mooring.state.pods import UNBOUND, PodChanges, PodRecord, PodTable
from mooring.state.shapes import Shape
from mooring.state.undo import Trial, UndoLog


@dataclass(frozen=True, slots=True)
class Released:
    """A pod that was taken off its row, and what it held there."""

    record: PodRecord
    row: int
    assumed: bool
    held: Sequence[tuple[DeviceTaker, Any]]
    """By taker of devices."""


class Placements:
    """Which pods are where; every change is undone if somebody was only asking."""

    def __init__(self, *, seed: int | None = 0) -> None:
        self.nodes = NodeTable(seed=seed)
        self.pods = PodTable()
        self.gangs = GangTable()
        self.pod_changes = PodChanges()
        self.log = UndoLog()
        self.devices = DeviceTable(self.log)
        self.card_holders = CardHolders(self.nodes, self.pods, self.log)
        self.numa = NumaTable(self.log)
        self.joined = JoinedCards(self.nodes, self.devices, self.card_holders)
        self.device_takers: tuple[DeviceTaker, ...] = (self.card_holders, self.joined, self.numa)
        """Who gives out devices to pods that come to a row."""
        self._homeless: dict[str, set[int]] = {}
        """The pods on nodes that are not known, by the node's name."""
        self.sample_starts: dict[str, int] = {}
        """By profile: the row at which the next sample of nodes starts, where not all nodes are looked at."""

    def what_if(self) -> Trial:
        """Try something out: `with cluster.what_if() as trial:` undoes all that is done inside unless it is kept."""
        return Trial(self.log)

    @property
    def is_trying(self) -> bool:
        """Whether anything is being tried out."""
        return self.log.depth > 0

    def assume(self, key: PodKey, row: int) -> None:
        """Let a waiting pod take its place on a row."""
        record = self.pods.records[key]
        if record.row != UNBOUND or record.node_name:
            raise InvariantBroken(f"pod {key} is bound already, to {record.node_name}")
        record.assumed = True
        record.node_name = self.nodes.name(row)
        self.log.note(self._put_back, record, UNBOUND, False)
        self._bind(record, row)

    def assume_many(self, records: Sequence[PodRecord], rows: NDArray[np.intp]) -> None:
        """Let waiting pods of one shape take their places, all at once."""
        if not records:
            return
        self.log.note(self._put_back_many, records)
        for record, name in zip(records, self.nodes.names(rows.tolist()), strict=True):
            record.assumed = True
            record.node_name = name
        self._bind_many(records, rows)

    def release(self, key: PodKey) -> Released:
        """Take a bound pod off its row: to undo an assumption, or to ask what would be without it."""
        record = self.pods.records[key]
        held = [(taker, taker.held_by(record)) for taker in self._takers_for(record.shape)]
        released = Released(record, record.row, record.assumed, held)
        self.log.note(self._put_back, record, record.row, record.assumed)
        self._unbind(record)
        record.assumed = False
        record.node_name = ""
        return released

    def restore(self, released: Released) -> None:
        """Bring a pod back to the row that it was taken off, with the very devices, CPUs and memory that it had."""
        record, row = released.record, released.row
        if record.row != UNBOUND or record.node_name:
            raise InvariantBroken(f"pod {record.key} is bound already, to {record.node_name}")
        record.assumed = released.assumed
        record.node_name = self.nodes.name(row)
        self.log.note(self._put_back, record, UNBOUND, False)
        if not released.held:
            self._bind(record, row)
            return
        with self.joined.restoring(row):
            self._bind(record, row, released.held)

    def takes_devices(self, record: PodRecord) -> bool:
        """Whether a pod holds devices, CPUs or memory of its own on its row, or may do so."""
        return bool(self._takers_for(record.shape))

    def move_sample_start(self, profile: str, row: int) -> None:
        """The next sample of nodes for a profile starts here."""
        self.log.note(self.move_sample_start, profile, self.sample_starts.get(profile, 0))
        self.sample_starts[profile] = row

    def keep_gathered(self, record: PodRecord, gathered: Mapping[str, Any] | None) -> None:
        """Plugins may have to give back what they reserve for a pod: keep for them what they had gathered before."""
        if gathered or record.gathered:
            self.log.note(self.keep_gathered, record, record.gathered)
            record.gathered = gathered

    def _put_back(self, record: PodRecord, row: int, assumed: bool) -> None:
        """Undo: a pod is where it was."""
        if record.row != UNBOUND:
            self._unbind(record)
        record.assumed = assumed
        record.node_name = "" if row == UNBOUND else self.nodes.name(row)
        if row != UNBOUND:
            self._bind(record, row)

    def _put_back_many(self, records: Sequence[PodRecord]) -> None:
        for record in reversed(records):
            self._put_back(record, UNBOUND, False)

    def _come_back(self, record: PodRecord) -> None:
        """A pod whose node was lost waits again."""
        self.log.note(self._stay_behind, record, record.node_name, record.assumed)
        self._find_home(record)
        record.assumed = False
        record.node_name = ""

    def _find_home(self, record: PodRecord) -> None:
        """A pod is not on a node any more that is not known."""
        waiting = self._homeless.get(record.node_name)
        if waiting is not None:
            waiting.discard(record.slot)
            if not waiting:
                del self._homeless[record.node_name]

    def _stay_behind(self, record: PodRecord, node_name: str, assumed: bool) -> None:
        """Undo: a pod is on a node that is not known."""
        self._homeless.setdefault(node_name, set()).add(record.slot)
        record.assumed, record.node_name = assumed, node_name

    # The elementary changes.

    def _bind(self, record: PodRecord, row: int, held: Sequence[tuple[DeviceTaker, Any]] | None = None) -> None:
        shape, slot = record.shape, record.slot
        record.row = row
        self.pods.row.writable[slot] = row
        self.pods.on_row.setdefault(row, set()).add(slot)
        if shape.has_volumes:
            self.pods.with_volumes[slot] = row
        self.nodes.account(row, shape, 1)
        if held is None:
            for taker in self._takers_for(shape):
                taker.take(record, row)
        else:
            for taker, had in held:
                taker.restore(record, row, had)
        self.pod_changes.append(shape.id, row, 1)
        self._note_change(record)

    def _bind_many(self, records: Sequence[PodRecord], rows: NDArray[np.intp]) -> None:
        """The same for pods of one shape, all at once."""
        shape = records[0].shape
        row_list = rows.tolist()
        self.pods.row.writable[[record.slot for record in records]] = rows
        self.pod_changes.extend(shape.id, rows)
        if self.gangs.of_pod:
            self.gangs.touch_all([record.key for record in records])
        if self.pods.watchers:
            self.pods.changed([record.key for record in records])
        on_row = self.pods.on_row
        for record, row in zip(records, row_list, strict=True):
            record.row = row
            on_row.setdefault(row, set()).add(record.slot)
            if shape.has_volumes:
                self.pods.with_volumes[record.slot] = row
        counts = Counter(row_list)
        self.nodes.account_many(np.array(list(counts), np.intp), np.array(list(counts.values()), np.int64), shape)
        for taker in self._takers_for(shape):
            for record in records:
                taker.take(record, record.row)

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
        for taker in self._takers_for(shape):
            taker.give_back(record, row)
        self.pod_changes.append(shape.id, row, -1)
        self._note_change(record)

    def _become(self, record: PodRecord, shape: Shape) -> None:
        """A pod is of another shape: it keeps its place, and its devices unless it asks for others."""
        row, slot, old = record.row, record.slot, record.shape
        record.shape = shape
        self.pods.shape.writable[slot] = shape.id
        if row == UNBOUND:
            return
        givers, takers = self._takers_for(old), self._takers_for(shape)
        if (givers or takers) and self._asks_for_same(old, shape):
            givers = takers = ()
        for taker in givers:
            taker.give_back(record, row)
        self.nodes.account_as(row, old, shape)
        if shape.has_volumes:
            self.pods.with_volumes[slot] = row
        else:
            self.pods.with_volumes.pop(slot, None)
        for taker in takers:
            taker.take(record, row)
        self.pod_changes.append(old.id, row, -1)
        self.pod_changes.append(shape.id, row, 1)

    def _asks_for_same(self, one: Shape, other: Shape) -> bool:
        """Whether pods of two shapes ask for the same devices."""
        return (
            one.claims == other.claims
            and one.card_request == other.card_request
            and one.request(GPU) == other.request(GPU)
            and (not self.numa.on_row or one.part("numa") == other.part("numa"))
        )

    def _takers_for(self, shape: Shape) -> Sequence[DeviceTaker]:
        """Who gives out devices to such pods: to most of them nobody, which is to be found out at once.

        What is undone puts back who holds what by steps of its own; only what follows from that has to be found again.
        """
        if shape.card_request is None and shape.claims is None and not self.numa.on_row:
            return ()
        if self.log.is_undoing:
            return (self.joined,) if self.joined.concerns(shape) else ()
        return [taker for taker in self.device_takers if taker.concerns(shape)]

    def compete_for_devices(self, one: Shape, other: Shape) -> bool:
        """Whether pods of two shapes get devices, CPUs or memory that the same taker gives out pod by pod."""
        takers = self._takers_for(one)
        others = self._takers_for(other) if takers else ()
        if any(taker in takers for taker in others):
            return True
        # A card may be had by a claim, as a fraction or by count.
        is_joined = bool(self.joined.joined_rows)
        return is_joined and all(any(taker is not self.numa for taker in found) for found in (takers, others))

    def _note_change(self, record: PodRecord) -> None:
        if self.gangs.of_pod:
            self.gangs.touch(record.key)
        if self.pods.watchers:
            self.pods.changed((record.key,))
