"""How much of what is idle on a node's GPUs is as good as lost, and by how much that falls with a pod.

Nodes come to the same few thousand states again and again. So a state's worth is kept, whoever asks, and for each kind
of pod by how much it falls: nearly all that is asked is known already.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mooring.model.devices.cards import WHOLE
from mooring.state.devices.cards import Matrix

Milli = NDArray[np.int64]
Floats = NDArray[np.float64]
State: TypeAlias = tuple[int, ...]
"""A node's idle CPU, the model of its cards, and what is left of each card, the least first."""
MOST_KEPT = 1 << 17
"""States of nodes whose worth is kept: some hundred bytes each."""


class Asked(NamedTuple):
    """What matters of a pod: thousandths of each card, how many cards, and CPU."""

    milli: int
    cards: int
    cpu: int


class IdleMeasure:
    """How much of what is idle on a node is as good as lost."""

    def __init__(self, *, is_choosy: bool) -> None:
        self.is_choosy = is_choosy
        """Whether it has to be told the models of cards."""
        self._models: dict[str, int] = {}
        self._lost: dict[State, float] = {}
        self._drops: dict[Asked, dict[bytes, float]] = {}
        self._kept = 0

    def lost(self, cpu: Milli, cards: Matrix, models: list[str] | None) -> Floats:
        """By state: thousandths of GPUs; of the cards of each, (states, cards), those with the most left come first."""
        raise NotImplementedError

    def of(self, cpu: Milli, left: Matrix, models: Sequence[str] | None = None) -> Floats:
        """By node: thousandths of GPUs; `left` is (nodes, cards), and less than 0 for no card."""
        lines = self._lines(cpu, np.sort(left, axis=1), models)
        keys = _keys(lines)
        first = {key: at for at, key in enumerate(keys)}
        states = _states(lines, first.values())
        known = self._known(states)
        by_key = {key: known[state] for key, state in zip(first, states, strict=True)}
        return np.array([by_key[key] for key in keys])

    def drops(self, cpu: Milli, left: Matrix, models: Sequence[str] | None, asked: Asked) -> Floats:
        """By node: how much less is lost once such a pod is there, on the best of its cards.

        It fits on each of them; of the cards of each, those with the least left come first.
        """
        lines = self._lines(cpu, left, models)
        keys, drops = _keys(lines), self._drops.setdefault(asked, {})
        new = {key: at for at, key in enumerate(keys) if key not in drops}
        if new:
            before = _states(lines, new.values())
            after = [states_after(state, asked).values() for state in before]
            known = self._known([*before, *(state for states in after for state in states)])
            for key, state, states in zip(new, before, after, strict=True):
                drops[key] = known[state] - min(known[each] for each in states)
            self._kept += len(new)
        return np.array([drops[key] for key in keys])

    def drops_by_card(self, cpu: Milli, left: Matrix, models: Sequence[str] | None, asked: Asked) -> Floats:
        """(nodes, cards): how much less is lost once a share is put there; minus infinity where it does not fit."""
        found = np.full(left.shape, -np.inf)
        before = _states(self._lines(cpu, np.sort(left, axis=1), models), range(len(left)))
        after = [states_after(state, asked) for state in before]
        known = self._known([*before, *(state for states in after for state in states.values())])
        for at, (state, amounts) in enumerate(zip(before, left.tolist(), strict=True)):
            for card, amount in enumerate(amounts):
                if amount >= asked.milli:
                    found[at, card] = known[state] - known[after[at][amount]]
        return found

    def _lines(self, cpu: Milli, left: Matrix, models: Sequence[str] | None) -> Matrix:
        """(nodes, 2 + cards): the states of nodes; of the cards of each, those with the least left come first."""
        lines = np.zeros((len(cpu), left.shape[1] + 2), np.int64)
        lines[:, 0] = cpu
        if models is not None:
            lines[:, 1] = [self._models.setdefault(model, len(self._models)) for model in models]
        np.maximum(left, 0, out=lines[:, 2:])
        return lines

    def _known(self, states: Iterable[State]) -> Mapping[State, float]:
        """What is lost in states, these among them."""
        if self._kept > MOST_KEPT:
            self._lost, self._drops, self._kept = {}, {}, 0
        lost = self._lost
        new = [state for state in dict.fromkeys(states) if state not in lost]
        if new:
            lines = np.array(new, np.int64)
            names = list(self._models)
            models = [names[model] for model in lines[:, 1].tolist()] if names else None
            found = self.lost(lines[:, 0], np.ascontiguousarray(lines[:, :1:-1]), models)
            lost.update(zip(new, found.tolist(), strict=True))
            self._kept += len(new)
        return lost


def states_after(state: State, asked: Asked) -> Mapping[int, State]:
    """What becomes of a state with a pod that fits: of a share of one card, by what is left of the card that it goes
    to; else the first cards that fit are taken."""
    milli, count, cpu = asked
    node, cards = (state[0] - cpu, state[1]), state[2:]
    first = bisect_left(cards, milli)
    if count == 1 and 0 < milli < WHOLE:
        found: dict[int, State] = {}
        for at in range(first, len(cards)):
            amount = cards[at]
            if amount not in found:
                place = bisect_left(cards, amount - milli, 0, at)
                found[amount] = (*node, *cards[:place], amount - milli, *cards[place:at], *cards[at + 1 :])
        return found
    taken = [amount - milli for amount in cards[first : first + count]]
    return {0: (*node, *sorted((*cards[:first], *taken, *cards[first + count :])))}


def _keys(lines: Matrix) -> list[bytes]:
    """A key for each line."""
    found: list[bytes] = lines.view(f"V{lines.itemsize * lines.shape[1]}")[:, 0].tolist()
    return found


def _states(lines: Matrix, at: Iterable[int]) -> list[State]:
    return [tuple(line) for line in lines[list(at)].tolist()]
