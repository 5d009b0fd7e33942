"""What each device state has for some claims: found once a state, and looked up for all rows at a time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.model.api.claims import FIRST_AVAILABLE_MAX_SIZE
from mooring.model.devices.requests import ClaimRequests
from mooring.state.devices.allocator import CANNOT_ALLOCATE, Broken, Solution, allocate
from mooring.state.devices.table import DeviceTable

UNKNOWN = -1
FITS = 0
ENDLESS = 2**31 - 1


class ClaimAnswers:
    """The answers for claims that are allocated together, by device state."""

    def __init__(
        self, devices: DeviceTable, claims: Sequence[ClaimRequests], *, most_steps: int = 0, packs: bool = False
    ) -> None:
        self._devices = devices
        self.claims = claims
        self._most_steps = most_steps
        self._packs = packs
        self._solutions: dict[int, Solution | str] = {}
        self._rooms: dict[int, int] = {}
        self._reason = np.full(16, UNKNOWN, np.int64)
        """By state: FITS, or a number of `reasons`."""
        self._next = np.zeros(16, np.int32)
        """By state in which they fit: the state afterwards."""
        self._score = np.zeros(16, np.int64)
        self.reasons: list[str] = ["", CANNOT_ALLOCATE]
        self.has_alternatives = any(request.is_list for claim in claims for request in claim.requests)

    def solution(self, code: int) -> Solution | str:
        """What the claims get in a state; a text if they cannot be met."""
        found = self._solutions.get(code)
        if found is None:
            state = self._devices.states[code]
            found = allocate(state, self.claims, most_steps=self._most_steps, packs=self._packs)
            self._solutions[code] = found
            self._enter(code, found)
        return found

    def refusals(self, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        """For each state FITS, or which of `reasons` speaks against it."""
        self._find(codes)
        found: NDArray[np.int64] = self._reason[codes]
        return found

    def what_is_broken(self, codes: NDArray[np.int32]) -> str:
        """What is wrong with the claims themselves, if that shows in any of these states."""
        found = set(self.refusals(codes).tolist())
        return next(
            (reason for number, reason in enumerate(self.reasons) if number in found and _is_broken(reason)), ""
        )

    def after(self, codes: NDArray[np.int32], pods: NDArray[np.int64]) -> NDArray[np.int32]:
        """The states after so many more pods with such claims, as far as they fit."""
        codes = codes.copy()
        for step in range(int(pods.max(initial=0))):
            moving = pods > step
            fits = self.refusals(codes) == FITS
            moving &= fits
            if not moving.any():
                break
            codes[moving] = self._next[codes[moving]]
        return codes

    def room(self, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        """How many pods with such claims each state takes, one after the other."""
        return np.array([self._room(code) for code in codes.tolist()], np.int64)

    def _room(self, code: int) -> int:
        found, on_the_way = 0, []
        while code not in self._rooms:
            on_the_way.append(code)
            if isinstance(self.solution(code), str):
                found = -1
                break
            if int(self._next[code]) == code:
                self._rooms[code] = ENDLESS  # adminAccess takes nothing
                break
            code = int(self._next[code])
        if found == 0:
            found = self._rooms[code]
        for each in reversed(on_the_way):
            found = min(found + 1, ENDLESS)
            self._rooms[each] = found
        return self._rooms[on_the_way[0]] if on_the_way else self._rooms[code]

    def scores(self, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        """What the alternatives that were chosen are worth, by state."""
        self._find(codes)
        found: NDArray[np.int64] = self._score[codes]
        return found

    def _find(self, codes: NDArray[np.int32]) -> None:
        if len(self._reason) < len(self._devices.states):
            self._grow(2 * len(self._devices.states))
        known = self._reason[codes]
        if (known == UNKNOWN).any():
            for code in set(codes[known == UNKNOWN].tolist()):
                self.solution(code)

    def _enter(self, code: int, found: Solution | str) -> None:
        if len(self._reason) <= code:
            self._grow(2 * code + 2)
        if isinstance(found, str):
            if found not in self.reasons:
                self.reasons.append(found)
            self._reason[code] = self.reasons.index(found)
            return
        self._reason[code] = FITS
        self._next[code] = self._devices.state(self._devices.states[code].inventory, found.taken).code
        self._score[code] = _worth(self.claims, found)

    def _grow(self, size: int) -> None:
        for name, fill in (("_reason", UNKNOWN), ("_next", 0), ("_score", 0)):
            old = getattr(self, name)
            new = np.full(size, fill, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)


def _is_broken(reason: str) -> bool:
    return isinstance(reason, Broken)


def _worth(claims: Sequence[ClaimRequests], solution: Solution) -> int:
    """8 points for a first alternative, 7 for a second one: what kube-scheduler scores."""
    total = 0
    for claim, found in zip(claims, solution.claims, strict=True):
        chosen = {each.alternative.name for each in found}
        for request in claim.requests:
            if request.is_list:
                names = [each.name for each in request.alternatives]
                total += sum(FIRST_AVAILABLE_MAX_SIZE - names.index(name) for name in names if name in chosen)
    return total
