"""Place pods where most of the GPUs that are left will still be filled: a look ahead, at typical pods that may come.

GpuFragmentation asks what is left of a node for the next pod. Here many pods come to a node in drawn orders, each is
placed if it fits, and what they leave idle in the end is what the node's state will cost; what is of no use to the next
pod counts as well, a little. A node is good if that falls
by placing the pod there, and so is a card. GPUs of models that some pods insist on are left to these, as far as they
are likely to need them. It goes by what a scheduler knows: which pods are typical, and the cluster as it is.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from mooring.engine.plugin import Depends, PreScore, Scores
from mooring.engine.shortcuts import ChoosesCards
from mooring.plugins.gpu_filling import WORTHWHILE, Ints, compiled, fill
from mooring.plugins.gpu_fragmentation import (
    Fragmentation,
    GpuFragmentationArgs,
    LeastLost,
    TypicalPod,
    drops,
    lost_one_by_one,
    to_scores,
)
from mooring.plugins.gpu_idle import Floats, IdleMeasure, Milli
from mooring.plugins.gpu_policies import asked_of_cards
from mooring.state.devices.card_policies import CardPolicy, drawn_numbers
from mooring.state.devices.cards import USABLE, Matrix
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

ORDERS, ARRIVALS = 64, 40
"""Orders that are drawn, and pods in each. With fewer orders, chance decides which nodes are opened; with more pods,
all that is idle seems to be filled some day."""
NEXT = 0.1
"""How much it counts what is left for the next pod, as a part of what is left in the end. Without it all is well as
long as somebody fills a node some day, and whole nodes are not kept for pods with many GPUs."""
RESERVED = 0.5
"""What it costs to take a GPU that a pod which insists on its model will need, as a part of the GPU."""


class Lookahead(IdleMeasure):
    """How much of what is idle stays idle, on average over orders in which typical pods come, and a part of what is of
    no use to the next one."""

    def __init__(self, classes: Sequence[TypicalPod]) -> None:
        super().__init__(is_choosy=any(pod.gpu_models for pod in classes))
        self._classes = classes
        amounts = [(pod.cpu_milli, pod.gpu_milli, pod.gpu_count) for pod in classes]
        self._pods: Ints = np.array(amounts, np.int64)
        self._orders = drawn_orders(classes)
        self._kinds: dict[str, int] = {}
        self._access: Ints = np.empty((0, len(classes)), np.int64)
        self._next = Fragmentation(by_gpus(classes))
        self._asked = 0

    def lost(self, cpu: Milli, cards: Matrix, models: list[str] | None) -> Floats:
        self._asked += len(cpu)
        kinds = [self._kind(model) for model in models] if models else [self._kind("")] * len(cpu)
        is_worthwhile = self._asked >= WORTHWHILE
        filled = fill(is_worthwhile)(cpu, cards, np.array(kinds, np.int64), self._pods, self._access, self._orders)
        idle: Floats = cards.sum(axis=1) - filled / len(self._orders)
        loops = compiled(lost_one_by_one) if is_worthwhile else None
        if loops is None:
            return idle + NEXT * self._next.lost(cpu, cards, models)
        return idle + NEXT * self._next.lost_by(loops, cpu, cards, models)

    def _kind(self, model: str) -> int:
        """The line of `_access` that a model of GPUs goes by."""
        if model not in self._kinds:
            self._kinds[model] = len(self._kinds)
            self._access = np.vstack([self._access, [_fills(pod, model) for pod in self._classes]])
        return self._kinds[model]


def by_gpus(classes: Sequence[TypicalPod]) -> list[TypicalPod]:
    """Those that ask for GPUs, by how many of all GPUs they ask for; if none does, the classes as they are."""
    asked = [(pod, pod.weight * pod.gpu_milli * pod.gpu_count) for pod in classes]
    return [replace(pod, weight=weight) for pod, weight in asked if weight > 0] or list(classes)


def _fills(pod: TypicalPod, model: str) -> bool:
    """Whether such pods fill GPUs of a model. Those without GPUs do not, and are passed over: a node without GPUs, or
    with CPU to spare, is the place for them."""
    return pod.gpu_count > 0 and pod.gpu_milli > 0 and (not pod.gpu_models or model in pod.gpu_models)


def drawn_orders(classes: Sequence[TypicalPod]) -> Ints:
    """(orders, arrivals): classes as often as they are frequent.

    All orders have about the same pods, each in an order of its own that looks drawn by lot.
    """
    weights = np.array([pod.weight for pod in classes], np.float64)
    bounds = np.cumsum(weights / weights.sum())
    orders = np.empty((ORDERS, ARRIVALS), np.int64)
    for at in range(ORDERS):
        offset = (0.5 + at * 0.6180339887498949) % 1.0  # the golden ratio spreads any number of them evenly
        chosen = np.searchsorted(bounds, (np.arange(ARRIVALS) + offset) / ARRIVALS, side="right")
        lots = drawn_numbers(np.arange(ARRIVALS, dtype=np.uint64), at)
        orders[at] = np.minimum(chosen, len(classes) - 1)[np.argsort(lots, kind="stable")]
    return orders


class GpuLookahead(PreScore, ChoosesCards):
    depends_on: ClassVar[Depends] = Depends.NODE_USAGE | Depends.NODE
    args_type = GpuFragmentationArgs

    def __init__(self, args: GpuFragmentationArgs | None = None) -> None:
        super().__init__(args)
        self._lookahead = Lookahead(self.args.typical_pods)
        self._cards = LeastLost(self._lookahead)

    def card_policy(self) -> CardPolicy:
        return self._cards

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> dict[str, float]:
        """By model: which part of its GPUs pods will need that insist on it; nothing if this one insists on some."""
        request = pod.card_request
        if not self._lookahead.is_choosy or request is None or request.models:
            return {}
        cards = cluster.rows().cards
        gpus: dict[str, int] = {}
        for model, count in zip(cards.models(), (cards.facts[USABLE] > 0).sum(axis=1).tolist(), strict=True):
            gpus[model] = gpus.get(model, 0) + count
        return likely_needed(self.args.typical_pods, gpus)

    def score(self, pod: Shape, nodes: NodeRows, prepared: dict[str, float]) -> Scores:
        found = drops(self._lookahead, pod, nodes)
        if prepared:
            milli, count = asked_of_cards(pod)
            needed = np.array([prepared.get(model, 0.0) for model in nodes.cards.models()])
            found = found - RESERVED * milli * count * needed
        return to_scores(found)


def likely_needed(classes: Sequence[TypicalPod], gpus: dict[str, int]) -> dict[str, float]:
    """By model: which part of its GPUs pods that insist on it take, once as much is asked for as there is."""
    total = sum(gpus.values())
    asked = sum(pod.weight * pod.gpu_milli * pod.gpu_count for pod in classes)
    found: dict[str, float] = {}
    for pod in classes:
        there = sum(gpus.get(model, 0) for model in pod.gpu_models)
        for model in pod.gpu_models if there and asked else ():
            share = pod.weight * pod.gpu_milli * pod.gpu_count / asked * total / there
            found[model] = min(1.0, found.get(model, 0.0) + share)
    return found
