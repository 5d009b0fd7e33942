"""What is left of CPUs, memory and devices inside each node, and which pod has what: a kubelet's books, kept here.

Nodes of one kind with the same things left share one state, and a state keeps what a kubelet would answer: thousands
of equal nodes cost one answer for each kind of pod.
"""

from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakValueDictionary

from mooring.model.keys import PodKey
from mooring.model.numa.ask import PodAsk
from mooring.model.numa.kubelet import Admitted, Free, Kubelet, Refused
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape
from mooring.state.undo import UndoLog


class NumaState:
    """What is left on nodes of one kind; never changed."""

    __slots__ = ("__weakref__", "_answers", "_free", "after", "kubelet")

    def __init__(self, kubelet: Kubelet, free: Free) -> None:
        self.kubelet = kubelet
        self._free = free
        self._answers: dict[PodAsk, Admitted | Refused] = {}
        self.after: WeakValueDictionary[PodAsk, NumaState] = WeakValueDictionary()
        """The states that nodes came to by admitting a pod, as long as some node is in them."""

    def copy_of_free(self) -> Free:
        return self._free.copy()

    def answer(self, ask: PodAsk) -> Admitted | Refused:
        """What the kubelet would say to such a pod now."""
        found = self._answers.get(ask)
        if found is None:
            found = self._answers[ask] = self.kubelet.admit(self._free.copy(), ask)
        return found


class Held(NamedTuple):
    """What a pod has; nothing if it runs where the kubelet would refuse it today."""

    row: int
    admitted: Admitted | None


class NumaTable:
    """The taker of devices (`devices/taking.py`) for CPUs, memory and devices that a kubelet gives out by NUMA node."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self.on_row: dict[int, NumaState] = {}
        self._held: dict[PodKey, Held] = {}
        self._states: WeakValueDictionary[tuple[object, ...], NumaState] = WeakValueDictionary()

    def describe(self, row: int, kubelet: Kubelet | None, pods: Iterable[PodRecord]) -> None:
        """A node's machine or its kubelet's settings are known now, or no longer. Its pods are admitted again in their
        order: which CPUs those got that started before is known to the kubelet alone."""
        known = self.on_row.get(row)
        if (known.kubelet if known else None) is kubelet:
            return
        pods = list(pods)
        for record in pods:
            self._held.pop(record.key, None)
        self.on_row.pop(row, None)
        if kubelet is not None:
            self.on_row[row] = self._state(kubelet, kubelet.at_start())
            for record in pods:
                self.take(record, row)

    @property
    def is_used(self) -> bool:
        """Whether any pod has something that its kubelet gave out."""
        return bool(self._held)

    def concerns(self, shape: Shape) -> bool:
        return bool(self.on_row) and not ask_of_shape(shape).is_nothing

    def take(self, record: PodRecord, row: int) -> None:
        state = self.on_row.get(row)
        if state is None or record.key in self._held:
            return
        ask = ask_of_shape(record.shape)
        answer = state.answer(ask)
        if isinstance(answer, Admitted):
            self._set(record.key, row, self._after(state, ask), Held(row, answer))
        else:
            self._set(record.key, row, state, Held(row, None))

    def give_back(self, record: PodRecord, row: int) -> None:
        held = self._held.get(record.key)
        if held is None:
            return
        state = self.on_row[held.row]
        if held.admitted is not None:
            free = state.copy_of_free()
            state.kubelet.release(free, held.admitted)
            state = self._state(state.kubelet, free)
        self._set(record.key, held.row, state, None)

    def held_by(self, record: PodRecord) -> Held | None:
        return self._held.get(record.key)

    def restore(self, record: PodRecord, row: int, held: Held | None) -> None:
        state = self.on_row.get(row)
        if held is None or state is None:
            return
        if held.admitted is not None:
            free = state.copy_of_free()
            state.kubelet.give_again(free, held.admitted)
            state = self._state(state.kubelet, free)
        self._set(record.key, row, state, held)

    def share_of(self, key: PodKey) -> Admitted | None:
        """What a pod has on its node."""
        held = self._held.get(key)
        return None if held is None else held.admitted

    def _set(self, key: PodKey, row: int, state: NumaState, held: Held | None) -> None:
        # The state as it was, not a release: what is given back is not always taken off where it was.
        self._log.note(self._set, key, row, self.on_row[row], self._held.get(key))
        self.on_row[row] = state
        if held is None:
            self._held.pop(key, None)
        else:
            self._held[key] = held

    def _after(self, state: NumaState, ask: PodAsk) -> NumaState:
        found = state.after.get(ask)
        if found is None:
            free = state.copy_of_free()
            state.kubelet.admit(free, ask)
            found = state.after[ask] = self._state(state.kubelet, free)
        return found

    def _state(self, kubelet: Kubelet, free: Free) -> NumaState:
        key = (id(kubelet), *free.key())
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = NumaState(kubelet, free)
        return found


def ask_of_shape(shape: Shape) -> PodAsk:
    """What such pods ask of a kubelet's managers."""
    found = shape.part("numa")
    assert isinstance(found, PodAsk)
    return found
