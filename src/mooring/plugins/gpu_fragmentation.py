"""Place pods where the GPUs that are left stay of use to typical pods (USENIX ATC '23, "Beware of Fragmentation").

What is idle on a node is a fragment for a class of pods if such a pod does not fit there: all of it; if it does fit,
the cards that are too small for it. The fragmentation of a node is that of all classes, by how frequent each is. A node
is good if it falls by placing the pod there, and so is a card.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE, Depends, Score, Scores
from mooring.engine.shortcuts import ChoosesCards
from mooring.model.devices.cards import WHOLE, CardAsk
from mooring.model.values.requests import CPU
from mooring.plugins.gpu_idle import Asked, Floats, IdleMeasure, Milli
from mooring.plugins.gpu_policies import asked_of_cards
from mooring.plugins.resource_scoring import Problem
from mooring.state.devices.card_policies import CardPolicy, Preference
from mooring.state.devices.card_rows import CardRows
from mooring.state.devices.cards import MILLI, USABLE, Matrix
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape

TYPICAL_SHARE = 0.95
"""The classes that are taken for typical make up so much of all pods."""


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


LACKS_BOTH, LACKS_GPU, LACKS_CPU, WANTS_NONE, WANTS_NONE_LACKS_CPU, NOT_ALLOWED = range(6)
"""Why idle GPUs are of no use to a class of pods."""
WHYS = 6
NO_CHANCE = 700.0
"""What `exp` has a number for; a score is 0 long before."""


class Fragmentation(IdleMeasure):
    """How much of what is idle is of no use to the next pod."""

    def __init__(self, classes: Sequence[TypicalPod]) -> None:
        super().__init__(is_choosy=any(pod.gpu_models for pod in classes))
        self._classes = classes
        self._allowed: dict[str, NDArray[np.bool_]] = {}
        """By model: which classes may have such cards."""
        total = sum(pod.weight for pod in classes)
        if abs(total - 1.0) < 1e-9:
            total = 1.0  # they are shares already, and are not to be rounded again
        self._share = np.array([pod.weight / total for pod in classes])[:, np.newaxis]
        self._cpu = np.array([pod.cpu_milli for pod in classes], np.int64)[:, np.newaxis]
        least_milli = [max(pod.gpu_milli, 1) for pod in classes]
        self._least_milli = np.array(least_milli, np.int64)[:, np.newaxis, np.newaxis]
        self._count = np.array([pod.gpu_count for pod in classes], np.int64)[:, np.newaxis]
        self._wants_gpu = self._count > 0
        self._lacks_only_gpu = np.where(self._wants_gpu, LACKS_GPU, WANTS_NONE)
        self._lacks_only_cpu = np.where(self._wants_gpu, LACKS_CPU, WANTS_NONE_LACKS_CPU)
        self._lacks_both = np.where(self._wants_gpu, LACKS_BOTH, WANTS_NONE_LACKS_CPU)

        self._pods = np.hstack((self._cpu, self._least_milli[:, 0], self._count))

    def lost(self, cpu: Milli, cards: Matrix, models: list[str] | None) -> Floats:
        """By NumPy: all states and classes at once."""
        total = np.add.reduce(cards, axis=1)
        fits_card = cards >= self._least_milli
        has_gpus = np.add.reduce(fits_card, axis=2) >= self._count
        has_cpu = cpu >= self._cpu
        # Summed by why: another order can tip a score that is cut off to a whole number.
        why = np.where(has_cpu, self._lacks_only_gpu, np.where(has_gpus, self._lacks_only_cpu, self._lacks_both))
        fits = self._wants_gpu & has_cpu & has_gpus
        if self.is_choosy and models is not None:
            access = self._access(models).T
            why[self._wants_gpu & ~access] = NOT_ALLOWED
            fits &= access
        small = np.add.reduce(np.where(fits_card, 0, cards), axis=2)
        parts = self._share * np.where(fits, small, total)
        # One after the other, for a state to come to the same whatever others are asked about beside it.
        places = why * len(cpu) + np.arange(len(cpu))
        by_why = np.bincount(places.ravel(), parts.ravel(), WHYS * len(cpu)).reshape(WHYS, -1)
        found: Floats = np.cumsum(by_why, axis=0)[-1]
        return found

    def lost_by(self, loops: "Loops", cpu: Milli, cards: Matrix, models: list[str] | None) -> Floats:
        """The same by `lost_one_by_one`, compiled."""
        if self.is_choosy and models is not None:
            access = self._access(models)
        else:
            access = np.ones((len(cpu), len(self._classes)), np.bool_)
        return loops(cpu, cards, self._pods, access, self._share[:, 0])

    def _access(self, models: list[str]) -> NDArray[np.bool_]:
        """(states, classes): whether pods of a class may have cards of a state's model."""
        for model in {*models} - self._allowed.keys():
            self._allowed[model] = np.array([not pod.gpu_models or model in pod.gpu_models for pod in self._classes])
        return np.array([self._allowed[model] for model in models])


class Loops(Protocol):
    def __call__(
        self, cpu: Milli, cards: Matrix, pods: Matrix, access: NDArray[np.bool_], shares: Floats
    ) -> Floats: ...


def lost_one_by_one(cpu: Milli, cards: Matrix, pods: Matrix, access: NDArray[np.bool_], shares: Floats) -> Floats:
    """What `Fragmentation` finds, as loops, which Numba compiles: the same sums in the same order."""
    found = np.zeros(len(cpu), np.float64)
    by_why = np.zeros(WHYS, np.float64)
    for state in range(len(cpu)):
        by_why[:] = 0.0
        total = cards[state].sum()
        for pod in range(len(pods)):
            asked, milli, count = pods[pod, 0], pods[pod, 1], pods[pod, 2]
            fitting = small = 0
            for card in range(cards.shape[1]):
                if cards[state, card] >= milli:
                    fitting += 1
                else:
                    small += cards[state, card]
            lost = total
            if count == 0:
                why = WANTS_NONE if cpu[state] >= asked else WANTS_NONE_LACKS_CPU
            elif not access[state, pod]:
                why = NOT_ALLOWED
            elif cpu[state] < asked:
                why = LACKS_CPU if fitting >= count else LACKS_BOTH
            else:
                why = LACKS_GPU
                if fitting >= count:
                    lost = small
            by_why[why] += shares[pod] * lost
        for why in range(WHYS):
            found[state] += by_why[why]
    return found


def to_scores(drop: Floats) -> Scores:
    """From 0 to 100: above 50 where less is lost than before, below where more is."""
    exponents = np.minimum(drop / -WHOLE, NO_CHANCE)
    found: Scores = (MAX_SCORE / (1.0 + np.exp(exponents))).astype(np.int64)
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
        found = self._measure.drops_by_card(rows.cpu_left + rows.cpu_asked, left, models, asked)
        return to_scores(found).astype(np.float64)


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
