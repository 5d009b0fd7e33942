"""Make room for pods that wait by moving few that run: which pods leave a node, where they go, and which pods come.

What waits fits nowhere as it is, so that room which is left is of use to pods that move only. Of each node it is found
out how much of its GPUs would be given out once one or two of its pods had left; the best by move is taken, again and
again. Amounts decide what is tried; the real state and the real plugins have the last word.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.actions.batches import Batches
from mooring.actions.gangs.placing import GangPlacer
from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.bench.fragmentation_bound import NodeKind, PodKind
from mooring.engine.disruption import as_created
from mooring.engine.profile import Profile
from mooring.engine.queue.shared import SharedQueues
from mooring.model.devices.cards import WHOLE
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND

Ints = NDArray[np.int64]
MOST_FOR_PAIRS = 14
"""On nodes with more pods than this, pairs of pods are not looked at."""


class Free(NamedTuple):
    """What is free on a node; of each card in thousandths, -1 where there is no card."""

    cpu: int
    memory: int
    cards: Ints


class Option(NamedTuple):
    """Pods that could leave a node, and the thousandths of GPUs that others would get there, for each of them."""

    worth: float
    leaving: tuple[PodKey, ...]


class RoomMaker:
    """Moves pods of one cluster, a step at a time."""

    def __init__(
        self,
        cluster: Cluster,
        profiles: Mapping[str, Profile],
        nodes: Mapping[str, NodeKind],
        pods: Mapping[PodKey, PodKind],
    ) -> None:
        self._cluster, self._kind_of = cluster, pods
        self._rehearsal = Rehearsal(profiles, GangPlacer(Batches({}, cached=True, clock=None), SharedQueues(())))
        self._rows = [cluster.nodes.row_of[name] for name in nodes]
        self._at = {row: at for at, row in enumerate(self._rows)}
        self._nodes = list(nodes.values())
        self._on: list[set[PodKey]] = [set() for _ in self._rows]
        self._waiting: dict[PodKind, list[PodKey]] = defaultdict(list)
        for key, kind in pods.items():
            row = cluster.pods.records[key].row
            if row != UNBOUND:
                self._on[self._at[row]].add(key)
            elif kind.gpus:
                self._waiting[kind].append(key)
        most = max(node.gpus for node in self._nodes)
        self._cpu, self._memory = (np.zeros(len(self._rows), np.int64) for _ in range(2))
        self._cards = np.full((len(self._rows), most), -1, np.int64)
        for at in range(len(self._rows)):
            self._read(at)
        self._kinds = sorted(self._waiting, key=lambda kind: (-kind.asked, kind))
        self._wants = np.array([kind[:4] for kind in self._kinds], np.int64).reshape(-1, 4)
        models = {node.model for node in self._nodes}
        self._allowed = {
            model: np.array([not kind.models or model in kind.models for kind in self._kinds]) for model in models
        }
        self._moved: set[PodKey] = set()
        self._refused: set[tuple[PodKey, ...]] = set()
        self.moves = 0

    def make_room(self, most_moves: int) -> int:
        """Move until so many pods have been moved in all, or nothing helps; return the thousandths of GPUs gained."""
        gained = 0
        for size in (1, 2):
            best = np.array([self._worth_of(at, size) for at in range(len(self._rows))])
            while self.moves + size <= most_moves and best.max(initial=0.0) > 0:
                at = int(best.argmax())
                touched, more = self._step(at, size)
                gained += more
                for one in touched:
                    best[one] = self._worth_of(one, size)
        return gained

    def _step(self, at: int, size: int) -> tuple[set[int], int]:
        """Carry out the best that can be done on a node; return the nodes that have changed, or were found to have
        nothing, and what is gained."""
        for option in self._options(at, size):
            targets = self._targets(at, option.leaving)
            coming = self._fill(at, self._without(at, option.leaving))
            if targets is not None and coming:
                gained = self._carry_out(at, option.leaving, targets, coming)
                if gained:
                    touched = {at, *targets}
                    for one in touched:
                        self._read(one)
                    return touched, gained
            self._refused.add(option.leaving)
        return {at}, 0

    def _carry_out(self, at: int, leaving: Sequence[PodKey], targets: Sequence[int], coming: Sequence[PodKind]) -> int:
        """Move pods, and let others have their room, on the real state; nothing is changed if a pod that moves cannot
        be where it is to go."""
        records = self._cluster.pods.records
        placed: list[tuple[PodKey, PodKind]] = []
        with self._cluster.what_if() as trial:
            for key in leaving:
                self._cluster.release(key)
            for key, target in zip(leaving, targets, strict=True):
                found = self._rehearsal.place(self._cluster, [as_created(records[key].pod)], [self._rows[target]])
                if found.problem:
                    return 0
            used: dict[PodKind, int] = defaultdict(int)
            for kind in coming:
                key = self._waiting[kind][-1 - used[kind]]
                if self._rehearsal.place(self._cluster, [records[key].pod], [self._rows[at]]).problem:
                    continue
                used[kind] += 1
                placed.append((key, kind))
            if not placed:
                return 0
            trial.keep()
        for key, target in zip(leaving, targets, strict=True):
            self._on[at].remove(key)
            self._on[target].add(key)
        for key, kind in placed:
            self._waiting[kind].remove(key)
            self._on[at].add(key)
        self._moved.update(leaving)
        self.moves += len(leaving)
        return sum(kind.asked for _, kind in placed)

    # What could be done.

    def _worth_of(self, at: int, size: int) -> float:
        return next((option.worth for option in self._options(at, size)), 0.0)

    def _options(self, at: int, size: int) -> list[Option]:
        """What leaving pods are worth by move, the best first."""
        movable = sorted(self._on[at] - self._moved)
        if size > 1 and len(movable) > MOST_FOR_PAIRS:
            return []
        found = []
        seen: dict[tuple[object, ...], float] = {}
        for leaving in combinations(movable, size):
            if leaving in self._refused:
                continue
            alike = tuple(
                (self._kind_of[key], tuple(share.card for share in self._cluster.card_holders.shares_of(key)))
                for key in leaving
            )
            if alike not in seen:
                seen[alike] = sum(kind.asked for kind in self._fill(at, self._without(at, leaving))) / size
            if seen[alike] > 0:
                found.append(Option(seen[alike], leaving))
        return sorted(found, key=lambda option: (-option.worth, option.leaving))

    def _without(self, at: int, leaving: Sequence[PodKey]) -> Free:
        cpu, memory, cards = int(self._cpu[at]), int(self._memory[at]), self._cards[at].copy()
        for key in leaving:
            kind = self._kind_of[key]
            cpu, memory = cpu + kind.cpu_milli, memory + kind.memory_mib
            for share in self._cluster.card_holders.shares_of(key):
                cards[share.card] += share.milli
        return Free(cpu, memory, cards)

    def _fill(self, at: int, free: Free) -> list[PodKind]:
        """The pods that wait and would come to so much room, the largest first."""
        cpu, memory, cards = free.cpu, free.memory, free.cards.copy()
        left = np.array([len(self._waiting[kind]) for kind in self._kinds], np.int64)
        allowed = self._allowed[self._nodes[at].model]
        found: list[PodKind] = []
        while True:
            enough = (cards[None, :] >= self._wants[:, 3:4]).sum(axis=1) >= self._wants[:, 2]
            fits = allowed & (left > 0) & (self._wants[:, 0] <= cpu) & (self._wants[:, 1] <= memory) & enough
            if not fits.any():
                return found
            position = int(fits.argmax())
            kind = self._kinds[position]
            found.append(kind)
            left[position] -= 1
            cpu, memory = cpu - kind.cpu_milli, memory - kind.memory_mib
            cards = _after(cards, kind)

    def _targets(self, at: int, leaving: Sequence[PodKey]) -> list[int] | None:
        """Where pods would go, each to where it leaves the least behind; None if one has nowhere to go."""
        cpu, memory, cards = self._cpu.copy(), self._memory.copy(), self._cards.copy()
        targets: list[int] = []
        for key in leaving:
            kind = self._kind_of[key]
            fits = (cpu >= kind.cpu_milli) & (memory >= kind.memory_mib)
            fits &= (cards >= max(1, kind.gpu_milli)).sum(axis=1) >= kind.gpus
            if kind.models:
                fits &= np.array([node.model in kind.models for node in self._nodes])
            fits[at] = False
            candidates = np.flatnonzero(fits)
            if not len(candidates):
                return None
            idle = np.maximum(cards[candidates], 0).sum(axis=1)
            target = int(candidates[np.lexsort((cpu[candidates], idle))[0]])
            cpu[target] -= kind.cpu_milli
            memory[target] -= kind.memory_mib
            cards[target] = _after(cards[target], kind)
            targets.append(target)
        return targets

    def _read(self, at: int) -> None:
        """Take over from the state what is free on a node."""
        node = self._nodes[at]
        cards = np.where(np.arange(self._cards.shape[1]) < node.gpus, WHOLE, -1)
        cpu, memory = node.cpu_milli, node.memory_mib
        for key in self._on[at]:
            kind = self._kind_of[key]
            cpu, memory = cpu - kind.cpu_milli, memory - kind.memory_mib
            for share in self._cluster.card_holders.shares_of(key):
                cards[share.card] -= share.milli
        self._cpu[at], self._memory[at], self._cards[at] = cpu, memory, cards

    def broken(self) -> Iterator[str]:
        """What is wrong with the state as it is now: nodes that have given out more than they have."""
        for at, row in enumerate(self._rows):
            if self._cpu[at] < 0 or self._memory[at] < 0 or (self._cards[at] < -1).any():
                yield self._cluster.nodes.name(row)


def _after(cards: Ints, kind: PodKind) -> Ints:
    """What is left of cards once a pod has its share: of those that suffice, the fullest."""
    if not kind.gpus:
        return cards
    suiting = np.flatnonzero(cards >= kind.gpu_milli)
    chosen = suiting[np.argsort(cards[suiting], kind="stable")[: kind.gpus]]
    left = cards.copy()
    left[chosen] -= kind.gpu_milli
    return left
