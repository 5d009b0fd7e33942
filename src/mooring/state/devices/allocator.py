"""Which devices of a row claims would get: Kubernetes' structured allocation, and the same result.

Claims are taken in order, their requests in order, the alternatives of a request in order; for each device that is
wanted, one device after the other is tried in the order of pools, slices and devices. The first solution counts. Three
things are done besides, and change nothing in what is found: a device is passed over if one that is its equal in
everything that the claims ask about has just been tried in vain; so is a request if it has been tried in vain with as
much taken before it; and the search ends after a stated number of steps.

With `packs`, devices are tried in another order (`packing.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from mooring.model.api.claims import RESULTS_MAX_SIZE
from mooring.model.devices.requests import Alternative, ClaimRequests, Request
from mooring.state.devices.draft import Allocated, Draft, Unanswerable, has_enough
from mooring.state.devices.packing import packed_order
from mooring.state.devices.table import DeviceState, Taken

STEPS_PER_SECOND = 10_000
"""kube-scheduler gives up on a node after a time (filterTimeout); here so many steps stand for a second of it, so that
the same claims get the same answer on every machine."""
CANNOT_ALLOCATE = "cannot allocate all claims"
INVALID_POOLS = "invalid resource pools were encountered"


@dataclass(frozen=True, slots=True)
class Solution:
    """What each claim gets, and what a row is like afterwards."""

    claims: tuple[tuple[Allocated, ...], ...]
    taken: Taken


class _Outcome(Enum):
    DONE = auto()
    FAILED = auto()
    TOO_MANY = auto()
    """More devices than the API allows a claim: other devices would not help, other alternatives may."""


class Broken(str):
    """Why claims cannot be met where a selector has no answer: something is wrong with the claim or its class, and its
    pod is not placed anywhere, lest that go unnoticed."""

    __slots__ = ()


def allocate(
    state: DeviceState, claims: Sequence[ClaimRequests], *, most_steps: int = 0, packs: bool = False
) -> Solution | str:
    """What claims get of a row in some state; a text, in kube-scheduler's words, if they cannot be met there."""
    try:
        return _DeviceSearch(state, claims, most_steps, packs).run()
    except Unanswerable as error:
        found: str = error.args[0]
        return found


@dataclass(slots=True)
class _Wanted:
    """An alternative, as it concerns one row."""

    claim: int
    request: Request
    alternative: Alternative
    count: int
    all_of_them: list[int] = field(default_factory=list)
    known: dict[int, bool] = field(default_factory=dict)
    """By position, whether it is selected."""


class _DeviceSearch:
    def __init__(self, state: DeviceState, claims: Sequence[ClaimRequests], most_steps: int, packs: bool) -> None:
        self._inventory = state.inventory
        self._claims = claims
        self._steps_left = most_steps or -1
        self._most_steps = most_steps
        usable = [pool.is_usable for pool in self._inventory.pools]
        order = [position for position in range(self._inventory.here) if usable[self._inventory.pool_of[position]]]
        self._order = packed_order(state, order) if packs else order
        self._draft = Draft(state, claims)
        self._wanted: list[list[list[_Wanted]]] = []
        """By claim and request, its alternatives."""
        self._in_vain: dict[tuple[object, ...], _Outcome] = {}
        """By claim, request and what was taken before it, what came of it."""

    def run(self) -> Solution | str:
        self._wanted = [self._validated(index, claim) for index, claim in enumerate(self._claims)]
        if self._request(0, 0) is not _Outcome.DONE:
            invalid = any(pool.invalid for pool in self._inventory.pools)
            return INVALID_POOLS if invalid else CANNOT_ALLOCATE
        return Solution(tuple(tuple(found) for found in self._draft.results), self._draft.taken_after())

    # Before the search.

    def _validated(self, index: int, claim: ClaimRequests) -> list[list[_Wanted]]:
        """Each request's alternatives as they concern this row; raises where a claim cannot be met anywhere."""
        total, found = 0, []
        for request in claim.requests:
            wanted = [self._want(index, request, alternative) for alternative in request.alternatives]
            least = min(each.count for each in wanted)
            if least > RESULTS_MAX_SIZE - total:
                raise Unanswerable(
                    f"request {request.name}: adding {least} devices exceeds the claim limit of {RESULTS_MAX_SIZE}, "
                    f"with {total} already accounted for"
                )
            total += least
            found.append(wanted)
        return found

    def _want(self, claim: int, request: Request, alternative: Alternative) -> _Wanted:
        wanted = _Wanted(claim, request, alternative, alternative.count)
        if not alternative.wants_all:
            return wanted
        for pool in self._inventory.pools:
            if not pool.is_usable:
                what = "being updated" if pool.is_incomplete else "invalid"
                name = f"{pool.driver}/{pool.name}" if pool.name else f"of {pool.driver}"
                raise Unanswerable(
                    f"request {alternative.name}: asks for all devices, but resource pool {name} is currently {what}"
                )
        for position in sorted(self._order):
            device = self._inventory.devices[position]
            if self._is_selected(wanted, position) and has_enough(alternative, device):
                wanted.all_of_them.append(position)
        wanted.count = len(wanted.all_of_them)
        return wanted

    def _is_selected(self, wanted: _Wanted, position: int) -> bool:
        known = wanted.known.get(position)
        if known is None:
            device = self._inventory.devices[position]
            found = wanted.alternative.selects(device)
            if isinstance(found, str):
                raise Unanswerable(Broken(found))
            known = wanted.known[position] = found and device.is_here
        return known

    # The search. Each finds devices for its part, and then for all that follows.

    def _request(self, claim: int, request: int) -> _Outcome:
        """For a request and all after it, of this claim and of the others."""
        if claim == len(self._claims):
            return _Outcome.DONE
        if request == len(self._wanted[claim]):
            found = self._request(claim + 1, 0)
            return _Outcome.FAILED if found is _Outcome.TOO_MANY else found
        if self._in_vain:  # until something fails, nothing has to be compared
            known = self._in_vain.get((claim, request, self._draft.standing(claim)))
            if known is not None:
                return known
        outcomes = set[_Outcome]()
        for wanted in self._wanted[claim][request]:
            found = self._places(wanted, request, 0, 0)
            if found is _Outcome.DONE:
                return found
            outcomes.add(found)
        found = _Outcome.TOO_MANY if outcomes == {_Outcome.TOO_MANY} else _Outcome.FAILED
        self._in_vain[claim, request, self._draft.standing(claim)] = found
        return found

    def _places(self, wanted: _Wanted, request: int, place: int, start: int) -> _Outcome:
        """For the places of an alternative from one on, by devices from one of the order on."""
        self._count_step()
        if place == wanted.count and (wanted.count or not wanted.alternative.wants_all):
            return self._request(wanted.claim, request + 1)
        if wanted.count - place > RESULTS_MAX_SIZE - len(self._draft.results[wanted.claim]):
            return _Outcome.TOO_MANY
        if wanted.alternative.wants_all:
            return self._next_of_all(wanted, request, place)
        in_vain = set[tuple[object, ...]]()
        for index in range(start, len(self._order)):
            position = self._order[index]
            if self._draft.is_in_use(wanted.claim, wanted.alternative, position):
                continue
            if not self._is_selected(wanted, position):
                continue
            kind = self._draft.kind(position)
            if kind in in_vain or not self._take(wanted, position, must=False):
                continue
            found = self._places(wanted, request, place + 1, index + 1)
            if found is _Outcome.DONE:
                return found
            self._put_back(wanted, position)
            if found is _Outcome.TOO_MANY:
                return found
            in_vain.add(kind)
        return _Outcome.FAILED

    def _next_of_all(self, wanted: _Wanted, request: int, place: int) -> _Outcome:
        """The same where it has to be every device that matches, and at least one."""
        if not wanted.all_of_them or not self._take(wanted, wanted.all_of_them[place], must=True):
            return _Outcome.FAILED
        found = self._places(wanted, request, place + 1, 0)
        if found is not _Outcome.DONE:
            self._put_back(wanted, wanted.all_of_them[place])
        return found

    def _count_step(self) -> None:
        self._steps_left -= 1
        if self._steps_left == 0:
            raise Unanswerable(f"gave up after {self._most_steps} steps of trying to allocate devices")

    def _take(self, wanted: _Wanted, position: int, *, must: bool) -> bool:
        return self._draft.take(wanted.claim, wanted.request, wanted.alternative, position, must=must)

    def _put_back(self, wanted: _Wanted, position: int) -> None:
        self._draft.put_back(wanted.claim, wanted.request, wanted.alternative, position)
