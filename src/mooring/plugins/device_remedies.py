"""What would make devices of a node fit the claims of a pod: one change at a time, tried on the node's devices."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mooring.model.api.claims import DeviceToleration
from mooring.model.devices.requests import Alternative, ClaimRequests
from mooring.state.devices.allocator import allocate
from mooring.state.devices.table import NOTHING, DeviceState, DeviceTable

MOST_STATES = 32
"""So many kinds of nodes are looked at; the others are like one of them, or rare."""
MOST_STEPS = 5_000
"""Of each search: a remedy that takes longer to find is not told."""
EVERYTHING = DeviceToleration(operator="Exists")

Changed = tuple[str, Sequence[ClaimRequests]]
"""A change in words, and the claims with it."""


def device_remedies(
    table: DeviceTable, claims: Sequence[ClaimRequests], codes: NDArray[np.int32], refused: NDArray[np.intp]
) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Changes, each with the positions of the rows that it opens, of those that are refused."""
    states = [table.states[code] for code in dict.fromkeys(codes[refused].tolist())][:MOST_STATES]
    tried = [state for state in states if state.inventory.pools]
    opened: dict[str, set[int]] = {}
    for state in tried:
        empty = table.state(state.inventory, NOTHING)
        if _fits(empty, claims):
            words = f"free devices of class {_classes(claims)} that others have"
            opened.setdefault(words, set()).add(state.code)
        for words, changed in _changes(claims):
            if _fits(state, changed):
                opened.setdefault(words, set()).add(state.code)
    for words, by in opened.items():
        yield words, refused[np.isin(codes[refused], list(by))]


def _fits(state: DeviceState, claims: Sequence[ClaimRequests]) -> bool:
    return not isinstance(allocate(state, claims, most_steps=MOST_STEPS), str)


def _classes(claims: Sequence[ClaimRequests]) -> str:
    found = {each.class_name for claim in claims for request in claim.requests for each in request.alternatives}
    return " or ".join(sorted(found))


def _changes(claims: Sequence[ClaimRequests]) -> Iterator[Changed]:
    for index, claim in enumerate(claims):

        def with_claim(changed: ClaimRequests, index: int = index) -> Sequence[ClaimRequests]:
            return [*claims[:index], changed, *claims[index + 1 :]]

        for position, constraint in enumerate(claim.constraints):
            rest = (*claim.constraints[:position], *claim.constraints[position + 1 :])
            word = "distinctAttribute" if constraint.is_distinct else "matchAttribute"
            yield f"drop the constraint {word} {constraint.attribute}", with_claim(replace(claim, constraints=rest))
        for words, change in _changes_of_requests(claim):
            yield words, with_claim(_each(claim, change))


def _changes_of_requests(claim: ClaimRequests) -> Iterator[tuple[str, Callable[[Alternative], Alternative]]]:
    def tolerating(asked: Alternative) -> Alternative:
        return replace(asked, tolerations=(*asked.tolerations, EVERYTHING))

    yield "tolerate the taints of devices", tolerating
    for request in claim.requests:
        for wanted in request.alternatives:
            for number, (whose, _) in enumerate(wanted.selectors):
                text = wanted.selectors[number][1].text

                def without(asked: Alternative, wanted: Alternative = wanted, number: int = number) -> Alternative:
                    if asked is not wanted:
                        return asked
                    return replace(asked, selectors=(*asked.selectors[:number], *asked.selectors[number + 1 :]))

                yield f"drop {whose}: {text}", without
            for fewer in range(wanted.count - 1, 0, -1):

                def with_fewer(asked: Alternative, wanted: Alternative = wanted, fewer: int = fewer) -> Alternative:
                    return replace(asked, count=fewer) if asked is wanted else asked

                yield f"ask for {fewer} in request {wanted.name}, not {wanted.count}", with_fewer


def _each(claim: ClaimRequests, change: Callable[[Alternative], Alternative]) -> ClaimRequests:
    requests = [
        replace(request, alternatives=tuple(change(each) for each in request.alternatives))
        for request in claim.requests
    ]
    return replace(claim, requests=tuple(requests))
