"""Ways to choose among nodes, and among the cards of a node, that GpuFragmentation is compared with.

Each is a Score by the name under which a profile enables it, alone for the choice to be its own. They look at what is
free of a node's CPU and GPUs, in thousandths, and at what a pod asks of them.
"""

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE, Depends, PreScore, Score, Scores
from mooring.engine.shortcuts import ChoosesCards
from mooring.model.devices.cards import WHOLE
from mooring.model.values.requests import CPU
from mooring.state.devices.card_policies import BINPACK, FIRST, RANDOM, SPREAD, CardPolicy, drawn_numbers
from mooring.state.devices.card_rows import CardRows
from mooring.state.devices.cards import MILLI, USABLE, USERS
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

Amounts = NDArray[np.int64]


class LargestNode(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """By what amounts are divided, so that CPU and GPUs compare: those of the largest node."""

    cpu_milli: int = 128_000
    gpu_milli: int = 8_000


def gpu_milli_free(cards: CardRows) -> Amounts:
    """What is free of all of a row's cards, in thousandths of one."""
    facts = cards.facts
    total: Amounts = np.where(facts[USABLE] > 0, np.maximum(facts[MILLI], 0), 0).sum(axis=1)
    return total


def asked_of_cards(pod: Shape) -> tuple[int, int]:
    """(thousandths of each card, how many cards)"""
    request = pod.card_request
    asks = () if request is None else max(request.asks.values(), key=len, default=())
    return (asks[0].milli, asks[0].count) if asks else (0, 0)


class _ByRoom(Score, ChoosesCards):
    """Scores by what is free."""

    depends_on = Depends.NODE_USAGE | Depends.NODE
    args_type = LargestNode
    cards: ClassVar[CardPolicy] = BINPACK

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        milli, count = asked_of_cards(pod)
        cpu, gpu = nodes.free(CPU), gpu_milli_free(nodes.cards)
        wanted = self._score(cpu, gpu, pod.request(CPU), milli * count)
        return np.clip(wanted.astype(np.int64), 0, MAX_SCORE)

    def _score(self, cpu: Amounts, gpu: Amounts, cpu_asked: int, gpu_asked: int) -> NDArray[np.float64]:
        raise NotImplementedError


class BestFit(_ByRoom):
    """The node with the least left."""

    def _score(self, cpu: Amounts, gpu: Amounts, cpu_asked: int, gpu_asked: int) -> NDArray[np.float64]:
        left = 0.5 * ((cpu - cpu_asked) / self.args.cpu_milli) + 0.5 * ((gpu - gpu_asked) / self.args.gpu_milli)
        found: NDArray[np.float64] = MAX_SCORE * (1.0 - left)
        return found


class WorstFit(_ByRoom):
    """The node with the most left, and the card with the most left."""

    cards: ClassVar[CardPolicy] = SPREAD

    def _score(self, cpu: Amounts, gpu: Amounts, cpu_asked: int, gpu_asked: int) -> NDArray[np.float64]:
        left = 0.5 * ((cpu - cpu_asked) / self.args.cpu_milli) + 0.5 * ((gpu - gpu_asked) / self.args.gpu_milli)
        found: NDArray[np.float64] = MAX_SCORE * left
        return found


class DotProduct(_ByRoom):
    """The node whose free amounts point least in the direction of what is asked."""

    def _score(self, cpu: Amounts, gpu: Amounts, cpu_asked: int, gpu_asked: int) -> NDArray[np.float64]:
        largest = self.args
        product = cpu / largest.cpu_milli * (cpu_asked / largest.cpu_milli)
        product = product + gpu / largest.gpu_milli * (gpu_asked / largest.gpu_milli)
        found: NDArray[np.float64] = MAX_SCORE * (1.0 - product / 2)
        return found


class FirstFit(Score, ChoosesCards):
    """The first node that fits, in the order that breaks ties, and the first card."""

    depends_on = Depends.NODE
    cards = FIRST

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        return np.zeros(len(nodes), np.int64)


class RandomFit(PreScore, ChoosesCards):
    """Any node that fits, and the card that happens to be drawn; drawn from what has happened so far, so that the same
    events give the same decisions."""

    depends_on = Depends.ANYTHING
    cards = RANDOM

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> int:
        return cluster.pods_moved

    def score(self, pod: Shape, nodes: NodeRows, prepared: int) -> Scores:
        drawn = drawn_numbers(nodes.index.astype(np.uint64), prepared)
        return (drawn % np.uint64(MAX_SCORE + 1)).astype(np.int64)


class GpuPacking(Score, ChoosesCards):
    """Cards in use first, then idle cards of nodes in use, then idle nodes."""

    depends_on = Depends.NODE_USAGE | Depends.NODE
    cards: ClassVar[CardPolicy] = BINPACK

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        milli, count = asked_of_cards(pod)
        if not count:
            return np.zeros(len(nodes), np.int64)
        facts = nodes.cards.facts
        usable = facts[USABLE] > 0
        left = np.where(usable, facts[MILLI], 0)
        fits = usable & (left >= milli) & ((milli < WHOLE) | (facts[USERS] == 0))
        # The fitting cards with the least left, of which it takes as many as it asks for.
        order = np.argsort(np.where(fits, left, 2 * WHOLE), axis=1, kind="stable")[:, :count]
        taken = np.take_along_axis(left, order, axis=1)
        idle = (taken == WHOLE).sum(axis=1)
        cards = usable.sum(axis=1)
        is_idle = np.where(usable, left == WHOLE, True).all(axis=1)
        in_use = np.maximum(MAX_SCORE - (taken // 10).sum(axis=1) // 10, 50)
        opened = np.where(idle > 0, np.maximum(50 - idle, 33), in_use)
        found: Scores = np.where(is_idle, np.maximum(33 - cards, cards), opened)
        return np.clip(found, 0, MAX_SCORE)


class GpuClustering(Score, ChoosesCards):
    """Nodes whose pods ask for as many cards as this one, so that like sits with like."""

    depends_on = Depends.NODE_USAGE | Depends.NODE
    args_type = LargestNode
    cards: ClassVar[CardPolicy] = BINPACK

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        milli, count = asked_of_cards(pod)
        if not count:
            return np.zeros(len(nodes), np.int64)
        cards = nodes.cards
        largest = self.args.gpu_milli
        base = 25 * (largest - gpu_milli_free(cards)) // largest
        sizes = cards.pod_sizes() > 0
        alike = sizes[:, 0 if milli < WHOLE else min(count, sizes.shape[1] - 1)]
        kinds = sizes.sum(axis=1)
        found: Scores = base + np.where(alike, np.where(kinds == 1, 75, 50), np.where(kinds == 0, 25, 0))
        return np.clip(found, 0, MAX_SCORE)
