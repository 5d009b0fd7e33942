"""Disruption budgets: which pods they protect, and how many each lets go.

A budget that carries a status says so itself, as the disruption controller worked it out. Where there is no such
controller, as with manifests in a file, it is worked out here from the pods that run. Every eviction spends what its
pod's budgets allow, on the undo log. What is worked out follows the pods that changed: budgets that nothing happened to
cost nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.keys import PodKey
from mooring.model.values.selectors import Selector, compile_label_selector
from mooring.state.columns import Interner
from mooring.state.pods import UNBOUND, PodRecord, PodTable
from mooring.state.related import RelatedObjects
from mooring.state.undo import UndoLog

UNPROTECTED = 0
"""The code of the set of no budgets."""


@dataclass(frozen=True)
class Matching:
    """Which pods a budget protects."""

    namespace: str
    selector: Selector
    disrupted: frozenset[str]
    """Pods whose eviction the API server has granted already: they count no longer."""

    @property
    def common_label(self) -> tuple[str, str, str]:
        """Its namespace, and the key and the value of a label that all of these pods have; empty where none is."""
        for requirement in self.selector.requirements:
            if requirement.operator == "In" and len(requirement.values) == 1:
                return self.namespace, requirement.key, next(iter(requirement.values))
        return self.namespace, "", ""

    def matches(self, pod: Pod) -> bool:
        if not pod.metadata.labels or pod.metadata.namespace != self.namespace or self.selector.is_empty:
            return False
        return pod.metadata.name not in self.disrupted and self.selector.matches(pod.metadata.labels)


@dataclass(frozen=True, slots=True)
class Spent:
    """The evictions that were decided since a budget was seen as it is now."""

    budget: PodDisruptionBudget
    pods: frozenset[PodKey] = frozenset()


class DisruptionBudgets:
    """All budgets by index, in order of their names; a pod's budgets are one code, because few sets occur."""

    def __init__(self, related: RelatedObjects, pods: PodTable, log: UndoLog) -> None:
        self._related, self._pods, self._log = related, pods, log
        self.all: list[PodDisruptionBudget] = []
        self.sets = Interner()
        self.sets.code(())
        self.matching_version = 0
        """Rises when budgets may protect other pods than before."""
        self._matching: list[Matching] = []
        self._names: list[str] = []
        self._index_of: dict[str, int] = {}
        """By name."""
        self._by_label: dict[tuple[str, str, str], list[int]] = {}
        """By namespace, key and value of a label: the budgets whose pods all have it. The key is empty for others."""
        self._namespaces = set[str]()
        self._keys: tuple[str, ...] = ()
        """The labels that any of them selects on."""
        self._disrupted = frozenset[str]()
        """The names of pods that no longer count for some of them."""
        self._known: dict[tuple[str, tuple[str | None, ...], str], int] = {}
        self._version = -1
        self._spent: dict[str, Spent] = {}
        """By the budget's name."""
        self._allowed = np.zeros(0, np.int64)
        self._stale = set[int]()
        """The budgets for which `_allowed` is to be worked out again."""
        self._healthy = np.zeros(0, np.int64)
        """By budget, as far as pods are counted."""
        self._counted: dict[PodKey, int] = {}
        """The pods that are counted, each with the code of its set."""
        self._changed: set[PodKey] | None = None
        """Collects the pods to be counted anew, while some budget has no status."""

    def __bool__(self) -> bool:
        return bool(self.all)

    def refresh(self) -> None:
        """Take in the budgets as they are now."""
        related = self._related
        if self._version == related.version:
            return
        self._version = related.version
        budgets, before = related.disruption_budgets, self.all
        names = self._names if self._names == list(budgets) else sorted(budgets)
        self.all = [budgets[name] for name in names]
        if names == self._names:
            changed = [i for i, (old, new) in enumerate(zip(before, self.all, strict=True)) if old is not new]
            matching = [(i, _matching(self.all[i])) for i in changed]
            if all(found == self._matching[i] for i, found in matching):
                self._stale.update(changed)
                if changed:
                    self._watch()
                return
        self._names = names
        self._match([_matching(budget) for budget in self.all])
        self._watch()

    def _match(self, matching: list[Matching]) -> None:
        """Find anew which pods budgets protect."""
        self.matching_version += 1
        self._matching = matching
        self._index_of = {name: index for index, name in enumerate(self._names)}
        self._by_label = {}
        for index, found in enumerate(matching):
            self._by_label.setdefault(found.common_label, []).append(index)
        self._namespaces = {found.namespace for found in matching}
        self._keys = tuple(sorted({key for found in matching for key in found.selector.keys}))
        self._disrupted = frozenset[str]().union(*(found.disrupted for found in matching))
        self.sets = Interner()
        self.sets.code(())
        self._known.clear()
        self._allowed = np.zeros(len(self.all), np.int64)
        self._stale = set(range(len(self.all)))
        self._healthy, self._counted = np.zeros(len(self.all), np.int64), {}
        if self._changed is not None:
            self._changed.update(self._pods.records)

    def _watch(self) -> None:
        """Count pods as long as some budget has no status."""
        is_needed = any(budget.status is None for budget in self.all)
        if is_needed and self._changed is None:
            self._changed = self._pods.watch()
            self._changed.update(self._pods.records)
        elif not is_needed and self._changed is not None:
            self._pods.unwatch(self._changed)
            self._changed = None

    def is_own(self, watched: set[PodKey]) -> bool:
        """Whether a set of pods that changed is the one that the budgets look into."""
        return watched is self._changed

    def set_of(self, pod: Pod) -> int:
        """The code of the set of budgets that protect a pod; `refresh` comes before."""
        metadata = pod.metadata
        labels = metadata.labels
        if not labels or metadata.namespace not in self._namespaces:
            return UNPROTECTED
        name = metadata.name if metadata.name in self._disrupted else ""
        known = (metadata.namespace, tuple(map(labels.get, self._keys)), name)
        code = self._known.get(known)
        if code is None:
            wanted = ((metadata.namespace, key, value) for key, value in (("", ""), *labels.items()))
            indices = sorted(index for label in wanted for index in self._by_label.get(label, ()))
            code = self.sets.code(tuple(index for index in indices if self._matching[index].matches(pod)))
            self._known[known] = code
        return code

    def of(self, pod: Pod) -> Sequence[int]:
        """The indices of the budgets that protect a pod."""
        self.refresh()
        indices: tuple[int, ...] = self.sets.values[self.set_of(pod)]
        return indices

    # Spending.

    def spend(self, pod: Pod) -> None:
        """Note that a pod is being evicted: until a budget is seen anew, it has one less to give."""
        for index in self.of(pod):
            budget = self.all[index]
            self._set_spent(budget, self._pods_spent(budget) | {pod.key})

    def give_back(self, pod: Pod) -> None:
        """Note that a pod is not being evicted after all."""
        for index in self.of(pod):
            budget = self.all[index]
            if pod.key in self._pods_spent(budget):
                self._set_spent(budget, self._pods_spent(budget) - {pod.key})

    def _pods_spent(self, budget: PodDisruptionBudget) -> frozenset[PodKey]:
        spent = self._spent.get(_key(budget))
        return spent.pods if spent is not None and spent.budget is budget else frozenset()

    def _set_spent(self, budget: PodDisruptionBudget, pods: frozenset[PodKey]) -> None:
        self._log.note(self._set_spent, budget, self._pods_spent(budget))
        if pods:
            self._spent[_key(budget)] = Spent(budget, pods)
        else:
            self._spent.pop(_key(budget), None)
        index = self._index_of.get(_key(budget))
        if index is not None:
            self._stale.add(index)

    # What is left.

    def allowed(self) -> NDArray[np.int64]:
        """How many more pods each budget lets go now; not to be written to."""
        self.refresh()
        self._count()
        for index in self._stale:
            self._allowed[index] = self._work_out(index)
        self._stale.clear()
        return self._allowed

    def allows(self, pod: Pod) -> bool:
        """Whether every budget of a pod lets one more pod go."""
        indices = self.of(pod)
        return not indices or bool((self.allowed()[list(indices)] > 0).all())

    def _work_out(self, index: int) -> int:
        budget = self.all[index]
        spent = self._pods_spent(budget)
        if budget.status is not None:
            return budget.status.disruptions_allowed - len(spent)
        healthy = int(self._healthy[index])
        # The count of what runs has followed the pods that are gone by now.
        return max(0, healthy - desired_healthy(budget, healthy)) - sum(key in self._counted for key in spent)

    def _count(self) -> None:
        """Follow the pods that changed."""
        if not self._changed:
            return
        for key in self._changed:
            record = self._pods.records.get(key)
            code = UNPROTECTED if record is None or not _is_healthy(record) else self.set_of(record.pod)
            was = self._counted.get(key, UNPROTECTED)
            if code == was:
                continue
            for counted, sign in ((was, -1), (code, 1)):
                for index in self.sets.values[counted]:
                    self._healthy[index] += sign
                    self._stale.add(index)
            if code == UNPROTECTED:
                del self._counted[key]
            else:
                self._counted[key] = code
        self._changed.clear()

    def fingerprint(self) -> dict[str, frozenset[PodKey]]:
        """What is spent of budgets, for comparing."""
        return {key: spent.pods for key, spent in self._spent.items()}


def _is_healthy(record: PodRecord) -> bool:
    return record.row != UNBOUND and not record.nominated and not record.shape.terminating


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
