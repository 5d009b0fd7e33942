"""Who has what of which cards: pods get their shares with their place on a row."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from mooring.model.devices.card_dialects import held_by
from mooring.model.devices.cards import GPU, CardShare, NodeCards, Sharing, same_cards
from mooring.model.devices.mig import PREFIX
from mooring.model.keys import PodKey
from mooring.model.values.requests import CPU
from mooring.state.devices.card_rows import CardRows
from mooring.state.nodes import NodeTable
from mooring.state.pods import PodRecord, PodTable
from mooring.state.shapes import Shape
from mooring.state.undo import UndoLog

NO_WHOLE = np.zeros(1, np.int64)
"""Of GPUs that a row does not hand out by count."""
COUNTED, MIG = int(Sharing.COUNTED), int(Sharing.MIG)


class Held(NamedTuple):
    """What a pod has of the cards of a row."""

    row: int
    shares: tuple[CardShare, ...]


class ClaimsOn(NamedTuple):
    """Whoever has devices of a row by claims: one holder for all of them, of what they have of cards together."""

    row: int


Holder: TypeAlias = PodKey | ClaimsOn


class Watcher(Protocol):
    """Knows which cards of a row are devices that claims have."""

    def refresh(self, row: int) -> None:
        """Somebody got shares of a row's cards, or gave them back, or they are described anew."""

    def claimed_without(self, row: int, pods: Sequence[PodRecord]) -> tuple[CardShare, ...]:
        """What claims would have of a row's cards if these pods were gone."""


class CardHolders:
    """The taker of devices (`taking.py`) for pods that ask for cards."""

    def __init__(self, nodes: NodeTable, pods: PodTable, log: UndoLog) -> None:
        self._nodes = nodes
        self._pods = pods
        self._log = log
        self._held: dict[Holder, Held] = {}
        self._on_row: dict[int, dict[Holder, Held]] = {}
        self._watcher: Watcher | None = None
        self._being_described = -1
        """The row whose cards are being described anew."""

    def watch(self, watcher: "Watcher") -> None:
        self._watcher = watcher

    def shares_of(self, key: PodKey) -> tuple[CardShare, ...]:
        """What a pod has of the cards of its row."""
        held = self._held.get(key)
        return () if held is None else held.shares

    @property
    def is_used(self) -> bool:
        """Whether any pod has something of a card."""
        return bool(self._held)

    def concerns(self, shape: Shape) -> bool:
        request = shape.card_request
        return request is not None and (bool(self._held) or self._nodes.cards.gives_to(request))

    def take(self, record: PodRecord, row: int) -> None:
        if record.key not in self._held:
            shares = self._seat(record, row)
            if shares:
                self._set(record.key, Held(row, shares))

    def give_back(self, record: PodRecord, row: int) -> None:
        if record.key in self._held:
            self._set(record.key, None)

    def held_by(self, record: PodRecord) -> Held | None:
        return self._held.get(record.key)

    def restore(self, record: PodRecord, row: int, held: Held | None) -> None:
        if held is not None:
            self._set(record.key, held)

    def claim(self, row: int, shares: tuple[CardShare, ...]) -> None:
        """Let claims have these shares of a row's cards, and no others."""
        held = Held(row, shares) if shares else None
        if self._held.get(ClaimsOn(row)) != held:
            self._set(ClaimsOn(row), held)

    def cards_with_pods(self, row: int) -> set[int]:
        """The cards of a row of which pods have shares."""
        held = self._on_row.get(row, {})
        return {share.card for key, each in held.items() if not isinstance(key, ClaimsOn) for share in each.shares}

    @contextmanager
    def described_anew(self, row: int | None, found: NodeCards) -> Iterator[None]:
        """A node's cards are described anew: its pods keep what they have of them, if they are the same cards."""
        if row is None or (not self._nodes.cards.cards(row).cards and not found.cards):
            yield
            return
        records = [record for record in self._pods.on(row) if record.shape.card_request is not None]
        had = [self._held.get(record.key) for record in records]
        is_same = same_cards(self._nodes.cards.cards(row), found)
        self._being_described = row
        self.claim(row, ())
        for record in records:
            self.give_back(record, row)
        yield
        self._being_described = -1
        for record, held in zip(records, had, strict=True):
            if is_same:
                self._set(record.key, held)
            else:
                self.take(record, row)
        self._tell(row)

    def _set(self, key: Holder, held: Held | None) -> None:
        """Let a pod, or claims, have these shares, and no others."""
        before = self._held.pop(key, None)
        self._log.note(self._set, key, before)
        cards = self._nodes.cards
        for moved, sign in ((before, -1), (held, 1)):
            if moved is not None:
                opened = cards.move(moved.row, moved.shares, sign)
                if opened and cards.sharing[moved.row] == COUNTED:
                    self._nodes.account_whole(moved.row, opened, sign)
        if before is not None:
            self._on_row[before.row].pop(key)
        if held is not None:
            self._held[key] = held
            self._on_row.setdefault(held.row, {})[key] = held
        for moved in (before, held):
            if moved is not None:
                self._tell(moved.row)

    def _tell(self, row: int) -> None:
        if self._watcher is not None and row != self._being_described:
            self._watcher.refresh(row)

    def _seat(self, record: PodRecord, row: int) -> tuple[CardShare, ...]:
        """The cards that a pod says it has, or those that it gets.

        Who is promised room that others are about to leave gets what these have. Who runs although it does not fit,
        because somebody else placed it, is taken to be on the cards that are used least.
        """
        request, table = record.shape.card_request, self._nodes.cards
        cards = table.cards(row)
        if request is None or not request.asks.get(cards.sharing):
            return ()
        if record.pod.spec.node_name:
            held = held_by(record.pod, self._nodes.name(row), cards, request)
            if held is not None:
                return held
        found = self._cards(record, row).choose(request)
        if found is None:
            found = self._after_leaving(record, row).choose(request)
        return self._cards(record, row).force(request) if found is None else found

    def _after_leaving(self, record: PodRecord, row: int) -> CardRows:
        """A row's cards once those are gone that are on their way out."""
        after, table = self._cards(record, row), self._nodes.cards
        leaving = [other for other in self._pods.on(row) if other.leaving is not None]
        for other in leaving:
            after.move(self.shares_of(other.key), -1, lambda share: table.bits(row, share))
        claimed = self._held.get(ClaimsOn(row))
        if claimed is not None and self._watcher is not None:
            after.move(claimed.shares, -1)
            after.move(self._watcher.claimed_without(row, leaving), 1)
        return after

    def _cards(self, record: PodRecord, row: int) -> CardRows:
        nodes = self._nodes
        free = NO_WHOLE
        here = slice(row, row + 1)
        if nodes.cards.sharing[row] == COUNTED:
            free = nodes.allocatable(GPU)[here] - nodes.requested(GPU)[here]
        policy = nodes.cards.policies.get(record.pod.spec.scheduler_name)
        cards = CardRows(nodes.cards, np.array([row], np.intp), free, policy)
        if policy is not None:
            cards.cpu_left = nodes.allocatable(CPU)[here] - nodes.requested(CPU)[here]
            cards.cpu_asked = record.shape.request(CPU)
        return cards

    def on_row(self, row: int) -> Sequence[tuple[PodRecord, tuple[CardShare, ...]]]:
        """The pods that have shares of a row's cards."""
        return [(record, shares) for record in self._pods.on(row) if (shares := self.shares_of(record.key))]

    def instances_for(self, record: PodRecord) -> tuple[tuple[str, int], ...]:
        """By resource, the MIG instances of the kinds that a pod has which its node has to have in all, this pod's and
        the others', where GPUs are cut on demand."""
        if self._nodes.cards.sharing[record.row] != MIG:
            return ()
        profiles = {share.profile for share in self.shares_of(record.key) if share.profile}
        held = [
            share.profile
            for other, shares in self.on_row(record.row)
            if not other.nominated or other is record
            for share in shares
        ]
        return tuple((f"{PREFIX}{profile}", held.count(profile)) for profile in sorted(profiles))

    def fingerprint(self) -> Mapping[str, Any]:
        return {**self._nodes.cards.fingerprint(), "held": dict(self._held)}
