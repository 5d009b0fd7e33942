"""Place pods where the GPUs that are left stay of use to typical pods (USENIX ATC '23, "Beware of Fragmentation").

What is idle on a node is a fragment for a class of pods if such a pod does not fit there: all of it; if it does fit,
the cards that are too small for it. The fragmentation of a node is that of all classes, by how frequent each is. A node
is good if it falls by placing the pod there, and so is a card.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE, Depends, Score, Scores
from mooring.engine.shortcuts import ChoosesCards
from mooring.model.devices.cards import WHOLE, CardAsk
from mooring.model.values.requests import CPU
from mooring.plugins.gpu_policies import asked_of_cards
from mooring.plugins.resource_scoring import Problem
from mooring.state.devices.card_policies import CardPolicy, Preference
from mooring.state.devices.card_rows import CardRows
from mooring.state.devices.cards import MILLI, USABLE, Matrix
from mooring.state.rows import NodeRows, Rows
from mooring.state.shapes import Shape

Milli = NDArray[np.int64]
Floats = NDArray[np.float64]
TYPICAL_SHARE = 0.95
"""The classes that are taken for typical make up so much of all pods."""
MOST_KEPT = 1 << 18
"""States of nodes whose worth is kept: some hundred bytes each."""


class TypicalPod(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True, frozen=True):
    """A class of pods: what each asks for, and how many of them there are."""

    cpu_milli: int = 0
    gpu_milli: int = 0
    """Of each GPU."""
    gpu_count: int = 0
    gpu_models: tuple[str, ...] = ()
    """Only GPUs of these models; nothing: any."""
    weight: float = 1.0


DEFAULT_TYPICAL_PODS = [
    TypicalPod(cpu_milli=8000, gpu_milli=1000, gpu_count=1, weight=48),
    TypicalPod(cpu_milli=6000, gpu_milli=500, gpu_count=1, weight=20),
    TypicalPod(cpu_milli=6000, gpu_milli=800, gpu_count=1, weight=12),
    TypicalPod(cpu_milli=4000, gpu_milli=250, gpu_count=1, weight=6),
    TypicalPod(cpu_milli=8000, weight=13),
    TypicalPod(cpu_milli=64000, gpu_milli=1000, gpu_count=8, weight=1),
]
"""About what GPU clusters are asked for; whoever knows their own pods says so (`typicalPods`)."""


class GpuFragmentationArgs(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    typical_pods: list[TypicalPod] = msgspec.field(default_factory=lambda: list(DEFAULT_TYPICAL_PODS))

    def validate(self) -> Iterator[Problem]:
        if not self.typical_pods:
            yield "typicalPods", "at least one class of pods", "none"
        for index, pod in enumerate(self.typical_pods):
            field = f"typicalPods[{index}]"
            if not 0 <= pod.gpu_milli <= WHOLE:
                yield f"{field}.gpuMilli", "from 0 to 1000, thousandths of a GPU", str(pod.gpu_milli)
            if pod.gpu_count < 0 or pod.cpu_milli < 0:
                yield field, "no negative amounts", str(min(pod.gpu_count, pod.cpu_milli))
            if not pod.weight > 0:
                yield f"{field}.weight", "more than 0", f"{pod.weight:g}"


def typical_pods(pods: Iterable[TypicalPod], of_all: float = TYPICAL_SHARE) -> list[TypicalPod]:
    """The most frequent classes of pods, each with its share, as many as make up nearly all of them.

    Of classes that are as frequent, those that ask for more come first.
    """
    counts: dict[tuple[int, int, int, tuple[str, ...]], int] = {}
    total = 0
    for pod in pods:
        key = (pod.cpu_milli, pod.gpu_milli, pod.gpu_count, pod.gpu_models)
        counts[key] = counts.get(key, 0) + 1
        total += 1
    kept: list[tuple[tuple[int, int, int, tuple[str, ...]], int]] = []
    reached = 0
    for key, count in sorted(counts.items(), key=lambda found: (found[1], *found[0]), reverse=True):
        kept.append((key, count))
        reached += count
        if reached >= of_all * total:
            break
    share = reached / max(total, 1)
    return [
        TypicalPod(cpu_milli=c, gpu_milli=m, gpu_count=n, gpu_models=models, weight=count / total / share)
        for (c, m, n, models), count in kept
    ]


class Asked(NamedTuple):
    """What matters of a pod: thousandths of each card, how many cards, and CPU."""

    milli: int
    count: int
    cpu: int


class IdleMeasure:
    """How much of what is idle on a node is as good as lost, for given classes of pods.

    Many nodes are in the same state, and come to it again and again: what a state comes to is kept, and by how much
    that falls with a pod.
    """

    def __init__(self, classes: Sequence[TypicalPod]) -> None:
        self.classes = classes
        self.is_choosy = any(pod.gpu_models for pod in classes)
        """Whether it has to be told the models of cards."""
        self._models: dict[str, int] = {}
        self._lost: dict[bytes, float] = {}
        self._drops: dict[Asked, dict[bytes, float]] = {}
        self._kept = 0

    def of(self, cpu: Milli, left: Matrix, models: Sequence[str] | None = None) -> Floats:
        """By node: thousandths of GPUs; `left` is (nodes, cards), and less than 0 for no card."""
        states = self._states(cpu, np.sort(left, axis=1), models)
        keys, known = _keys(states), self._lost
        new = {key: at for at, key in enumerate(keys) if key not in known}
        if new:
            at = list(new.values())
            names = None if models is None else [models[each] for each in at]
            found = self.lost(states[at, 0], np.ascontiguousarray(states[at, :1:-1]), names)
            self._make_room(len(new))
            known.update(zip(new, found.tolist(), strict=True))
        return np.array([known[key] for key in keys])

    def drops(self, cpu: Milli, left: Matrix, models: Sequence[str] | None, asked: Asked) -> Floats:
        """By node: how much less is lost once such a pod is there, on the best of its cards.

        It fits on all of them; of the cards of each, those with the least left come first.
        """
        keys, known = _keys(self._states(cpu, left, models)), self._drops.setdefault(asked, {})
        new = {key: at for at, key in enumerate(keys) if key not in known}
        if new:
            at = list(new.values())
            names = None if models is None else [models[each] for each in at]
            found = best_drops(self, cpu[at], left[at], names, asked)
            self._make_room(len(new))
            known.update(zip(new, found.tolist(), strict=True))
        return np.array([known[key] for key in keys])

    def by_option(
        self, cpu: Milli, left: Matrix, models: Sequence[str] | None, at: Rows, cpu_after: Milli, after: Matrix
    ) -> Floats:
        """By option: how much less is lost after it than before, which is how the node is that it stands `at`."""
        names = None if models is None else [*models, *(models[node] for node in at.tolist())]
        lost = self.of(np.concatenate((cpu, cpu_after)), np.concatenate((left, after)), names)
        found: Floats = lost[at] - lost[len(cpu) :]
        return found

    def _states(self, cpu: Milli, left: Matrix, models: Sequence[str] | None) -> Matrix:
        """(nodes, 2 + cards): CPU, the model, and what is left of each card."""
        states = np.zeros((len(cpu), left.shape[1] + 2), np.int64)
        states[:, 0] = cpu
        if models is not None:
            states[:, 1] = [self._models.setdefault(model, len(self._models)) for model in models]
        np.maximum(left, 0, out=states[:, 2:])
        return states

    def _make_room(self, count: int) -> None:
        """So many more are to be kept: if that is too much, all before them are given up."""
        if self._kept + count > MOST_KEPT:
            self._lost, self._drops, self._kept = {}, {}, 0
        self._kept += count

    def lost(self, cpu: Milli, cards: Matrix, models: list[str] | None) -> Floats:
        """The same for states that are not known yet; of the cards of each, those with the most left come first."""
        raise NotImplementedError


def _keys(states: Matrix) -> list[bytes]:
    """A key for each line."""
    whole, width = states.tobytes(), states.itemsize * states.shape[1]
    return [whole[at : at + width] for at in range(0, len(whole), width)]


LACKS_BOTH, LACKS_GPU, LACKS_CPU, WANTS_NONE, WANTS_NONE_LACKS_CPU, NOT_ALLOWED = range(6)
"""Why idle GPUs are of no use to a class of pods."""
WHYS = np.arange(6)[:, np.newaxis, np.newaxis]


class Fragmentation(IdleMeasure):
    """How much of what is idle is of no use to the next pod."""

    def __init__(self, classes: Sequence[TypicalPod]) -> None:
        super().__init__(classes)
        total = sum(pod.weight for pod in classes)
        if abs(total - 1.0) < 1e-9:
            total = 1.0  # they are shares already, and are not to be rounded again
        self._share = np.array([pod.weight / total for pod in classes])[:, np.newaxis]
        self._cpu = np.array([pod.cpu_milli for pod in classes], np.int64)[:, np.newaxis]
        self._milli = np.array([pod.gpu_milli for pod in classes], np.int64)[:, np.newaxis, np.newaxis]
        self._count = np.array([pod.gpu_count for pod in classes], np.int64)[:, np.newaxis]

    def lost(self, cpu: Milli, cards: Matrix, models: list[str] | None) -> Floats:
        total = cards.sum(axis=1)
        fits_card = cards >= np.maximum(self._milli, 1)
        has_gpus = np.count_nonzero(fits_card, axis=2) >= self._count
        wants_gpu = self._count > 0
        has_cpu = cpu >= self._cpu
        # Summed by why: another order can tip a score that is cut off to a whole number.
        lacks_gpu_or_both = np.where(has_cpu, LACKS_GPU, np.where(has_gpus, LACKS_CPU, LACKS_BOTH))
        why = np.where(wants_gpu, lacks_gpu_or_both, np.where(has_cpu, WANTS_NONE, WANTS_NONE_LACKS_CPU))
        fits = wants_gpu & has_cpu & has_gpus
        if self.is_choosy and models is not None:
            access = np.array(
                [[not pod.gpu_models or model in pod.gpu_models for model in models] for pod in self.classes]
            )
            why[wants_gpu & ~access] = NOT_ALLOWED
            fits &= access
        small = np.where(fits_card, 0, cards).sum(axis=2)
        parts = np.where(why == WHYS, self._share * np.where(fits, small, total), 0.0)
        # One after the other, for a state to come to the same whatever others are asked about beside it.
        by_why = np.cumsum(parts, axis=1)[:, -1]
        found: Floats = np.cumsum(by_why, axis=0)[-1]
        return found


def to_scores(drop: Floats) -> Scores:
    """From 0 to 100: above 50 where less is lost than before, below where more is."""
    with np.errstate(over="ignore"):  # the rest of no chance at all is 0
        found: Scores = (MAX_SCORE / (1.0 + np.exp(-drop / WHOLE))).astype(np.int64)
    return found


class LeastLost(CardPolicy):
    """The card whose use lets what is lost fall most; of several the first."""

    def __init__(self, measure: IdleMeasure) -> None:
        self._measure = measure

    def prefer(self, rows: CardRows, ask: CardAsk, units: Matrix) -> Preference:
        if ask.milli >= WHOLE or rows.cpu_left is None:
            return np.zeros(units.shape)  # the first one
        left = left_of(rows)
        fits = left >= ask.milli
        if (np.where(fits, left, WHOLE).min(axis=1) >= np.where(fits, left, 0).max(axis=1)).all():
            return np.zeros(units.shape)  # they are all as good
        models = rows.models() if self._measure.is_choosy else None
        asked = Asked(ask.milli, 1, rows.cpu_asked)
        found = drops_by_card(self._measure, rows.cpu_left + rows.cpu_asked, left, models, asked)
        return to_scores(found).astype(np.float64)


def drops_by_card(
    measure: IdleMeasure, cpu: Milli, left: Matrix, models: Sequence[str] | None, asked: Asked
) -> Floats:
    """(rows, cards): by how much what is lost falls if a share is put there, or minus infinity where it does not fit."""
    # Cards of a row that have as much left are as good: the first one of each amount is asked about.
    first = (left[:, :, np.newaxis] == left[:, np.newaxis, :]).argmax(axis=2)
    at, card = np.nonzero((left >= asked.milli) & (first == np.arange(left.shape[1])))
    options = left[at]
    options[np.arange(len(at)), card] -= asked.milli
    found = np.full(left.shape, -np.inf)
    found[at, card] = measure.by_option(cpu, left, models, at, cpu[at] - asked.cpu, options)
    return np.take_along_axis(found, first, axis=1)


def best_drops(measure: IdleMeasure, cpu: Milli, left: Matrix, models: Sequence[str] | None, asked: Asked) -> Floats:
    """By row: by how much what is lost falls if a pod is put there, on the best of its cards, which has room for it."""
    if asked.count == 1 and 0 < asked.milli < WHOLE:
        found: Floats = drops_by_card(measure, cpu, left, models, asked).max(axis=1)
        return found
    after = left.copy()
    if asked.count:
        fits = left >= asked.milli
        after[fits & (np.cumsum(fits, axis=1) <= asked.count)] -= asked.milli
    return measure.by_option(cpu, left, models, np.arange(len(cpu)), cpu - asked.cpu, after)


def drops(measure: IdleMeasure, pod: Shape, nodes: NodeRows) -> Floats:
    """By row: how much what is lost falls if the pod is put there, on the best of its cards; minus infinity where it
    has no room."""
    milli, count = asked_of_cards(pod)
    asked = Asked(milli, count, pod.request(CPU))
    cards, cpu = nodes.cards, nodes.free(CPU)
    left = left_of(cards)
    left.sort(axis=1)
    fits = cpu >= asked.cpu
    if count:
        fits = fits & (left[:, -count] >= milli) if count <= left.shape[1] else np.zeros(len(nodes), np.bool_)
    rows = np.flatnonzero(fits)
    models: Sequence[str] | None = None
    if measure.is_choosy:
        models = np.array(cards.models(), object)[rows].tolist()
    found = np.full(len(nodes), -np.inf)
    found[rows] = measure.drops(cpu[rows], left[rows], models, asked)
    return found


def left_of(cards: CardRows) -> Matrix:
    """What is left of each card, in thousandths; -1 where there is none."""
    facts = cards.facts
    found: Matrix = np.where(facts[USABLE] > 0, np.maximum(facts[MILLI], 0), -1)
    return found


class GpuFragmentation(Score, ChoosesCards):
    depends_on = Depends.NODE_USAGE | Depends.NODE
    args_type = GpuFragmentationArgs

    def __init__(self, args: GpuFragmentationArgs | None = None) -> None:
        super().__init__(args)
        self._fragmentation = Fragmentation(self.args.typical_pods)
        self._cards = LeastLost(self._fragmentation)

    def card_policy(self) -> CardPolicy:
        return self._cards

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        return to_scores(drops(self._fragmentation, pod, nodes))
