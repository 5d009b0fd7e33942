"""Disruption budgets: whom they protect, and how many pods each lets go.

A budget that carries a status says so itself, as the disruption controller worked it out. Where there is no such
controller, as with manifests in a file, it is worked out here from the pods that run.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.keys import PodKey
from mooring.model.values.selectors import Selector, compile_label_selector
from mooring.state.columns import Interner
from mooring.state.related import RelatedObjects

NOBODY = 0
"""The code of the set of no budgets."""


@dataclass(frozen=True)
class Matching:
    """Which pods a budget protects."""

    namespace: str
    selector: Selector
    disrupted: frozenset[str]
    """Pods whose eviction the API server has granted already: they count no longer."""

    def matches(self, pod: Pod) -> bool:
        if not pod.metadata.labels or pod.metadata.namespace != self.namespace or self.selector.is_empty:
            return False
        return pod.metadata.name not in self.disrupted and self.selector.matches(pod.metadata.labels)


@dataclass
class Spent:
    """The evictions that were decided since a budget was seen as it is now."""

    budget: PodDisruptionBudget
    pods: set[PodKey] = field(default_factory=set)


class Budgets:
    """All budgets by index, in order of their names; a pod's budgets are one code, because few sets occur."""

    def __init__(self) -> None:
        self.all: list[PodDisruptionBudget] = []
        self.sets = Interner()
        self.sets.code(())
        self._matching: list[Matching] = []
        self._in_namespace: dict[str, list[int]] = {}
        self._keys: tuple[str, ...] = ()
        """The labels that any of them selects on."""
        self._disrupted = frozenset[str]()
        """The names of pods that no longer count for some of them."""
        self._known: dict[tuple[str, tuple[str | None, ...], str], int] = {}
        self._spent: dict[str, Spent] = {}
        self._version = -1

    def __bool__(self) -> bool:
        return bool(self.all)

    def refresh(self, related: RelatedObjects) -> bool:
        """Take in the budgets as they are now; tell whether they may protect other pods than before."""
        if self._version == related.version:
            return False
        self._version = related.version
        self.all = [related.disruption_budgets[key] for key in sorted(related.disruption_budgets)]
        matching = [_matching(budget) for budget in self.all]
        if matching == self._matching:
            return False
        self._matching = matching
        self._in_namespace = {}
        for index, found in enumerate(matching):
            self._in_namespace.setdefault(found.namespace, []).append(index)
        self._keys = tuple(sorted({key for found in matching for key in found.selector.keys}))
        self._disrupted = frozenset[str]().union(*(found.disrupted for found in matching))
        self.sets = Interner()
        self.sets.code(())
        self._known.clear()
        return True

    def set_of(self, pod: Pod) -> int:
        """The code of the set of budgets that protect a pod."""
        metadata = pod.metadata
        labels = metadata.labels
        indices = self._in_namespace.get(metadata.namespace)
        if not indices or not labels:
            return NOBODY
        name = metadata.name if metadata.name in self._disrupted else ""
        known = (metadata.namespace, tuple(map(labels.get, self._keys)), name)
        code = self._known.get(known)
        if code is None:
            code = self.sets.code(tuple(index for index in indices if self._matching[index].matches(pod)))
            self._known[known] = code
        return code

    def spend(self, budget_set: int, key: PodKey) -> None:
        """Note that a pod is being evicted: until a budget is seen anew, it has one less to give."""
        for index in self.sets.values[budget_set]:
            budget = self.all[index]
            spent = self._spent.get(_key(budget))
            if spent is None or spent.budget is not budget:
                spent = self._spent[_key(budget)] = Spent(budget)
            spent.pods.add(key)

    def allowed(self, healthy: Callable[[], NDArray[np.int64]], runs: Callable[[PodKey], bool]) -> NDArray[np.int64]:
        """How many more pods each budget lets go.

        `healthy` counts the pods that run and are not on their way out, by code of a set of budgets; it is asked only
        if some budget has no status. `runs` tells of one of those that are being evicted whether it is among them.
        """
        by_status = [budget.status.disruptions_allowed if budget.status else 0 for budget in self.all]
        allowed = np.array(by_status, np.int64)
        without = [index for index, budget in enumerate(self.all) if budget.status is None]
        if without:
            counts = self._by_budget(healthy())
            for index in without:
                allowed[index] = max(0, counts[index] - desired_healthy(self.all[index], counts[index]))
        for index, budget in enumerate(self.all):
            spent = self._spent.get(_key(budget))
            if spent is not None and spent.budget is budget:
                # A count of what runs has followed those that are gone by now.
                gone = sum(map(runs, spent.pods)) if budget.status is None else len(spent.pods)
                allowed[index] -= gone
        return allowed

    def _by_budget(self, healthy: NDArray[np.int64]) -> list[int]:
        counts = [0] * len(self.all)
        for code, indices in enumerate(self.sets.values[: len(healthy)]):
            for index in indices:
                counts[index] += int(healthy[code])
        return counts


def _matching(budget: PodDisruptionBudget) -> Matching:
    disrupted = (budget.status.disrupted_pods if budget.status else None) or {}
    selector = compile_label_selector(budget.spec.selector)
    return Matching(budget.metadata.namespace, selector, frozenset(disrupted))


def _key(budget: PodDisruptionBudget) -> str:
    return f"{budget.metadata.namespace}/{budget.metadata.name}"


def desired_healthy(budget: PodDisruptionBudget, expected: int) -> int:
    """How many of the expected pods have to stay, as the disruption controller works it out."""
    if budget.spec.max_unavailable is not None:
        return max(0, expected - _scaled(budget.spec.max_unavailable, expected))
    return _scaled(budget.spec.min_available or 0, expected)


def _scaled(given: int | str, of: int) -> int:
    """A number, or a percentage rounded up."""
    if isinstance(given, str) and given.endswith("%"):
        return -(-of * int(given[:-1]) // 100)
    return int(given)


def split_one_by_one(sets: Iterable[tuple[int, ...]], allowed: NDArray[np.int64]) -> list[bool]:
    """Which of a node's victims, the most important first, would break a budget; each by its set of budgets."""
    left = allowed.tolist()
    violating = []
    for indices in sets:
        breaks = False
        for index in indices:
            left[index] -= 1
            if left[index] < 0:
                breaks = True
                break
        violating.append(breaks)
    return violating
