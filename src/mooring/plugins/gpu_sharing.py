"""Shares of GPUs: of how many cards, how much compute and memory of each, or which MIG instances.

HAMi, Koordinator, KAI, gpu-milli and the device plugin each have their own way of asking (`model/devices/dialects`);
what they ask for is fitted on the cards of all nodes in one go (`state/devices/card_rows.py`).
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE, SKIP, Change, Codes, Depends, Mask, PreFilter, PreScore, Scores, Skip
from mooring.engine.shortcuts import BesidesAmounts, ForeseenRoom, QuickMask
from mooring.engine.verdict import Rejection
from mooring.model.devices.card_dialects import CARD_ANNOTATIONS
from mooring.model.devices.cards import WHOLE, CardAsk, CardRequest, Sharing
from mooring.state.devices.card_rows import NO_SUCH_CARD, NOT_SERVED, TOO_LITTLE, TOO_MANY_REPLICAS, CardRows
from mooring.state.devices.cards import MEMORY, MEMORY_SIZE, MILLI, Matrix
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

MOST = 1 << 40
"""More pods than any row takes."""

REASONS = {
    NOT_SERVED: "node(s) didn't share GPUs in the requested way",
    NO_SUCH_CARD: "node(s) didn't have enough GPUs of the requested kind",
    TOO_LITTLE: "node(s) didn't have enough free on their GPUs",
    TOO_MANY_REPLICAS: "node(s) gave a pod no more than one replica of a shared GPU",
}


class GpuSharing(PreFilter, PreScore, QuickMask, ForeseenRoom, BesidesAmounts):
    depends_on = Depends.NODE_USAGE | Depends.NODE
    helped_by = Change.NODE | Change.POD_GONE
    skip_is_settled = True
    reads_pod_annotations = CARD_ANNOTATIONS

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> CardRequest | Skip:
        request = pod.card_request
        if request is None:
            return SKIP
        # Who wants whole GPUs asks nothing of cards where GPUs are counted, but may get one once nobody shares it.
        may_be_shared = bool(cluster.shapes_sharing_gpus) and Sharing.COUNTED in request.asks
        return request if may_be_shared or cluster.cards.concerns(request) else SKIP

    def filter(self, pod: Shape, nodes: NodeRows, prepared: CardRequest) -> Codes:
        return nodes.cards.refusals(prepared)

    def passes(self, pod: Shape, nodes: NodeRows, prepared: CardRequest) -> Mask:
        return nodes.cards.will_do(prepared)

    def rejection(self, pod: Shape, code: int) -> Rejection:
        return Rejection((f"{REASONS[code]}: {asked_text(pod.card_request)}",), unresolvable=code != TOO_LITTLE)

    def room(self, pod: Shape, nodes: NodeRows, prepared: CardRequest) -> NDArray[np.int64]:
        return nodes.cards.room(prepared, MOST)

    def is_concerned_by(self, other: Shape) -> bool:
        return other.card_request is not None or other.claims is not None

    def remedies(self, pod: Shape, nodes: NodeRows, prepared: CardRequest) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """The largest share that a card would have had room for, in the dimension that is short, or fewer cards."""
        cards = nodes.cards
        for positions, part, asks in cards.by_kind(prepared):
            if asks is None or len(asks) != 1:
                continue
            at = np.arange(len(nodes))[positions]
            refused = part.refusals(prepared) == TOO_LITTLE
            for text, amounts in _would_fit(part, prepared, asks[0]):
                amounts = np.where(refused, amounts, 0)
                most = int(amounts.max(initial=0))
                if most > 0:
                    yield text.format(most / 10 if "%" in text else most), at[amounts >= most]

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> CardRequest | Skip:
        request = pod.card_request
        return SKIP if request is None or not cluster.cards.gives_to(request) else request

    def score(self, pod: Shape, nodes: NodeRows, prepared: CardRequest) -> Scores:
        """How much of a node's cards is taken, and twice that if cards that are shared already will do."""
        fullness = nodes.cards.fullness(prepared)
        return MAX_SCORE - fullness if prepared.node_policy.startswith("spread") else fullness


def _would_fit(cards: CardRows, request: CardRequest, ask: CardAsk) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """What one could ask for instead, as text with a place for the number, and by row how much would fit."""
    facts = cards.facts
    if ask.profile:
        return
    if ask.milli and ask.milli == ask.memory_milli:
        known = facts[MEMORY_SIZE] > 0
        share = np.minimum(
            facts[MILLI], np.where(known, facts[MEMORY] * WHOLE // np.maximum(facts[MEMORY_SIZE], 1), WHOLE)
        )
        yield "ask for at most {:g}% of a GPU", _largest(cards, request, replace(ask, milli=1, memory_milli=0), share)
        return
    if ask.milli:
        yield "ask for at most {:g}% of a GPU's compute", _largest(cards, request, replace(ask, milli=1), facts[MILLI])
    if ask.memory:
        yield (
            "ask for at most {} MiB of a GPU's memory",
            _largest(cards, request, replace(ask, memory=1), facts[MEMORY]),
        )


def _largest(cards: CardRows, request: CardRequest, less: CardAsk, amounts: Matrix) -> NDArray[np.int64]:
    """By row: the largest amount that as many cards have as are asked for, among those that fit otherwise."""
    found = np.where(cards.units(request, less) > 0, amounts, 0)
    ordered = -np.sort(-found, axis=1)
    count = less.count if less.is_distinct else 1
    if count > ordered.shape[1]:
        return np.zeros(len(cards), np.int64)
    return np.asarray(ordered[:, count - 1], np.int64)


def asked_text(request: CardRequest | None) -> str:
    """What is asked for, for people: of the kind of node that has the most to give."""
    asks = () if request is None else max(request.asks.values(), key=len, default=())
    return ", ".join(_ask_text(ask) for ask in asks) or "GPUs"


def _ask_text(ask: CardAsk) -> str:
    if ask.profile:
        return f"{ask.count} MIG {ask.profile}"
    parts: list[str] = []
    if ask.milli and ask.milli == ask.memory_milli:
        parts.append(f"{ask.milli / 10:g}%")
    elif ask.milli:
        parts.append(f"{ask.milli / 10:g}% of the compute")
    if ask.memory:
        parts.append(f"{ask.memory} MiB")
    elif ask.memory_milli and ask.milli != ask.memory_milli:
        parts.append(f"{ask.memory_milli / 10:g}% of the memory")
    of = " and ".join(parts) or "a replica"
    return f"{of} of {ask.count} GPU{'s' if ask.count > 1 else ''}"
