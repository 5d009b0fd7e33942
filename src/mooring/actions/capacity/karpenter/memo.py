"""Requirements, taints and tolerations by number, with answers about pairs of them kept."""

from collections.abc import Hashable, Iterable

from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Toleration
from mooring.model.capacity.labels import WELL_KNOWN
from mooring.model.capacity.requirements import Requirement, Requirements
from mooring.model.values.tolerations import is_tolerated
from mooring.state.remembered import Derived

Tolerations = tuple[tuple[str, str, str, str], ...]
"""Key, operator, value and effect of each."""


def tolerations_of(given: Iterable[Toleration] | None) -> Tolerations:
    return tuple((each.key, each.operator, each.value, each.effect) for each in given or ())


def tolerates_all(tolerations: Tolerations, taints: Iterable[Taint]) -> bool:
    """Tell whether all taints are tolerated, those that only ask for another node included."""
    found = [
        Toleration(key=key, operator=operator, value=value, effect=effect)
        for key, operator, value, effect in tolerations
    ]
    return all(is_tolerated(found, taint) for taint in taints)


class Memo:
    """Numbers for requirements and for taints: equal ones have the same, so that pairs are cheap keys."""

    def __init__(self) -> None:
        self._numbers: dict[Requirements, int] = {}
        self._all: list[Requirements] = []
        self._merged: Derived[tuple[int, int], int] = Derived()
        self._claim_accepts: Derived[tuple[int, int], bool] = Derived()
        self._node_accepts: Derived[tuple[int, int], bool] = Derived()
        self._selections: dict[Hashable, dict[tuple[str, frozenset[tuple[str, str]]], bool]] = {}
        self._tolerated: Derived[tuple[Tolerations, tuple[Taint, ...]], bool] = Derived()

    def number(self, requirements: Requirements) -> int:
        found = self._numbers.get(requirements)
        if found is None:
            found = self._numbers[requirements] = len(self._all)
            self._all.append(requirements)
        return found

    def __getitem__(self, number: int) -> Requirements:
        return self._all[number]

    def merge(self, one: int, other: int) -> int:
        merged = self._merged.get((one, other))
        if merged is None:
            merged = self._merged.put((one, other), self.number(self._all[one].merged(self._all[other])))
        return merged

    def require(self, number: int, key: str, requirement: Requirement) -> int:
        return self.merge(number, self.number(Requirements({key: requirement})))

    def claim_accepts(self, claim: int, asked: int) -> bool:
        """Tell whether a node that is yet to be launched can satisfy requirements."""
        answer = self._claim_accepts.get((claim, asked))
        if answer is None:
            answer = self._claim_accepts.put((claim, asked), self._all[claim].accepts(self._all[asked], WELL_KNOWN))
        return answer

    def node_accepts(self, node: int, asked: int) -> bool:
        """Tell whether a node that exists satisfies requirements: a label that it lacks, it lacks."""
        answer = self._node_accepts.get((node, asked))
        if answer is None:
            answer = self._node_accepts.put((node, asked), self._all[node].accepts(self._all[asked]))
        return answer

    def selections(self, term: Hashable) -> dict[tuple[str, frozenset[tuple[str, str]]], bool]:
        """Which labels a term selects, as far as that was asked before."""
        return self._selections.setdefault(term, {})

    def tolerates(self, tolerations: Tolerations, taints: tuple[Taint, ...]) -> bool:
        if not taints:
            return True
        return self._tolerated.of((tolerations, taints), tolerates_all, tolerations, taints)
