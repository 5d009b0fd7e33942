"""Which flavor each pod set gets, and what it would take: free quota, borrowing, or preemption.

A pod set takes all resources of one group from one flavor. Flavors are tried in the queue's order until one is good
enough for the queue's policy; otherwise the best one seen is taken. Where the search stopped is remembered, so that a
workload that could not start with that flavor tries the ones behind it next time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mooring.actions.admit.cycle.grades import (
    BEST,
    WORST,
    Grade,
    Mode,
    Possibility,
    Reason,
    is_preferred,
    milder,
    tries_next,
)
from mooring.actions.admit.cycle.matching import FlavorMatcher
from mooring.actions.admit.lifecycle.conditions import Note, Shortage, TooMuch, pod_sets_message
from mooring.actions.admit.quota.structure import FlavorGroup, FlavorOption, Queue
from mooring.actions.admit.quota.tree import QuotaTree
from mooring.actions.admit.workload_info import PendingWorkload, PodSetRequest, ScanPosition
from mooring.model.api.kueue import NEVER
from mooring.model.decisions import PodSetFlavors
from mooring.model.values.requests import PODS

Oracle = Callable[[PendingWorkload, Queue, int, int], Grade]
"""Asks preemption what could be done for (workload, queue, column, amount)."""

Pins = Sequence[Mapping[str, str]]
"""For each pod set: by resource, the only flavor that may be used."""


@dataclass(slots=True)
class Choice:
    """The flavor found for the resources of one group."""

    option: FlavorOption
    grades: dict[str, Grade] = field(default_factory=dict)
    tried: int = -1


@dataclass(slots=True)
class Assignment:
    """The flavors of a whole workload, as far as they were found."""

    mode: Mode
    counts: tuple[int, ...]
    pod_sets: tuple[PodSetFlavors, ...] = ()
    usage: dict[int, int] = field(default_factory=dict)
    """Amounts by column."""
    short_columns: frozenset[int] = frozenset()
    """The columns in which room must be made by preemption."""
    borrow_height: int = 0
    position: ScanPosition | None = None
    reason: Reason = Reason.NONE
    notes: list[tuple[str, list[Note]]] = field(default_factory=list)
    """By pod set that does not fit as things stand: what is in its way."""

    @property
    def message(self) -> str:
        return pod_sets_message(self.notes)


class FlavorAssigner:
    """Assigns flavors against the tree as it stands; changes nothing."""

    def __init__(
        self,
        tree: QuotaTree,
        matcher: FlavorMatcher,
        oracle: Oracle,
        *,
        fair_sharing: bool,
        ignores_undeclared: bool = False,
    ) -> None:
        self._tree = tree
        self._matcher = matcher
        self._oracle = oracle
        self._fair_sharing = fair_sharing
        self.ignores_undeclared = ignores_undeclared

    def assign(
        self,
        pending: PendingWorkload,
        queue: Queue,
        counts: Sequence[int] | None = None,
        *,
        position: ScanPosition | None = None,
        pins: Pins | None = None,
        now_at: tuple[int, int] = (0, 0),
    ) -> Assignment:
        """Find flavors for every pod set, with the given counts if not the full ones.

        `position` is where the last search stopped; `now_at` (cycle, generation) is noted with the new one.
        """
        search = _Search(self, pending, queue, position, pins)
        given = tuple(counts) if counts is not None else tuple(pod_set.count for pod_set in pending.pod_sets)
        for index, (pod_set, count) in enumerate(zip(pending.pod_sets, given, strict=True)):
            if not search.assign_pod_set(index, pod_set, count):
                break
        return search.result(given, now_at)

    def grade(self, pending: PendingWorkload, queue: Queue, column: int, amount: int) -> tuple[Grade, Reason]:
        """What it takes for the queue to have the amount in one column."""
        tree, node = self._tree, queue.node
        if amount > tree.potential_of(node, column):
            return Grade(Possibility.NO_FIT, 0), Reason.ExceedsMaxQuota
        height, is_more_above = tree.borrow_height(node, column, amount)
        if amount <= tree.available(node, column):
            return Grade(Possibility.FIT, height), Reason.NONE
        may_borrow_and_preempt = queue.borrows_while_preempting or (self._fair_sharing and queue.reclaim != NEVER)
        if amount <= tree.nominal_of(node, column) or is_more_above or may_borrow_and_preempt:
            return self._oracle(pending, queue, column, amount), Reason.NONE
        return Grade(Possibility.NO_FIT, height), Reason.WaitingForQuota

    def lasting_reason(self, queue: Queue, column: int, amount: int) -> Reason:
        is_too_much = amount > self._tree.potential_of(queue.node, column)
        return Reason.ExceedsMaxQuota if is_too_much else Reason.NONE

    def note(self, queue: Queue, column: int, before: int, amount: int) -> Note | None:
        """What is in the way of so much more, in one column, in words; None if nothing is."""
        tree, node = self._tree, queue.node
        flavor, resource = tree.columns[column]
        most = tree.potential_of(node, column)
        if before + amount > most:
            return TooMuch(resource, flavor, before, amount, most)
        missing = before + amount - tree.available(node, column)
        return Shortage(resource, flavor, missing) if missing > 0 else None

    def mismatch(self, flavor: str, pod_set: PodSetRequest) -> str:
        return self._matcher.mismatch(flavor, pod_set.selection, pod_set.spec)


class _Search:
    """One assignment in the making."""

    def __init__(
        self,
        assigner: FlavorAssigner,
        pending: PendingWorkload,
        queue: Queue,
        position: ScanPosition | None,
        pins: Pins | None,
    ) -> None:
        self._assigner = assigner
        self._pending = pending
        self._queue = queue
        self._position = position
        self._pins = pins
        self._usage: dict[int, int] = {}
        self._short: set[int] = set()
        self._tried: list[Mapping[str, int]] = []
        self._flavors: list[PodSetFlavors] = []
        self._mode = Mode.FIT
        self._borrow_height = 0
        self._reason = Reason.NONE
        self._notes: list[tuple[str, list[Note]]] = []

    def assign_pod_set(self, index: int, pod_set: PodSetRequest, count: int) -> bool:
        """Find flavors for one pod set; False if there are none."""
        queue = self._queue
        requests = pod_set.total(count, with_pods=PODS in queue.group_by_resource)
        chosen: dict[str, Choice] = {}
        notes: list[Note] = []
        for resource, amount in requests.items():
            if resource in chosen:
                continue
            group = queue.group_by_resource.get(resource)
            if group is None:
                if amount == 0 or self._assigner.ignores_undeclared:
                    continue
                return self._give_up(pod_set, [f"resource {resource} unavailable in ClusterQueue"])
            wanted = {name: value for name, value in requests.items() if name in group.resources}
            in_the_way: list[Note] = []
            choice = self._find_flavor(index, pod_set, resource, group, wanted, in_the_way)
            if choice is None:
                return self._give_up(pod_set, in_the_way)
            chosen.update(dict.fromkeys(wanted, choice))
            if any(grade.possibility != Possibility.FIT for grade in choice.grades.values()):
                notes += in_the_way
        if notes:
            self._notes.append((pod_set.name, notes))
        self._take(pod_set, count, requests, chosen)
        return True

    def _give_up(self, pod_set: PodSetRequest, in_the_way: list[Note]) -> bool:
        self._notes.append((pod_set.name, in_the_way))
        self._mode = Mode.NO_FIT
        self._tried.append({})
        self._reason = self._reason or Reason.NoMatchingFlavor
        return False

    def _find_flavor(
        self,
        index: int,
        pod_set: PodSetRequest,
        resource: str,
        group: FlavorGroup,
        wanted: Mapping[str, int],
        in_the_way: list[Note],
    ) -> Choice | None:
        start = self._position.next_flavor(index, resource) if self._position is not None else 0
        best, best_grade = None, WORST
        least = Reason.NONE
        tried = -1
        for tried in range(start, len(group.options)):
            option = group.options[tried]
            if self._pins is not None and self._pins[index].get(resource) != option.flavor:
                continue
            mismatch = self._assigner.mismatch(option.flavor, pod_set)
            if mismatch:
                in_the_way.append(mismatch)
                least = milder(least, Reason.NoMatchingFlavor)
                continue
            choice = Choice(option)
            grade, reason = self._grade_option(choice, wanted, in_the_way)
            if grade.possibility == Possibility.NO_FIT:
                least = milder(least, reason)
            if not tries_next(grade, self._queue):
                best = choice
                break
            if is_preferred(grade, best_grade, self._queue.prefers_preemption):
                best, best_grade = choice, grade
        if best is None:
            self._reason = least
            return None
        best.tried = -1 if tried == len(group.options) - 1 else tried
        return best

    def _grade_option(self, choice: Choice, wanted: Mapping[str, int], in_the_way: list[Note]) -> tuple[Grade, Reason]:
        """The worst grade over the resources that the group must provide."""
        queue, worst, reason = self._queue, BEST, Reason.NONE
        for resource, amount in wanted.items():
            column = choice.option.columns[resource]
            before = self._usage.get(column, 0)
            total = amount + before
            if worst.possibility == Possibility.NO_FIT:
                # Settled; all that the others can add is a more telling reason.
                reason = max(reason, self._assigner.lasting_reason(queue, column, total))
                if (note := self._assigner.note(queue, column, before, amount)) is not None:
                    in_the_way.append(note)
                continue
            grade, why = self._assigner.grade(self._pending, queue, column, total)
            if grade.possibility != Possibility.FIT:
                reason = max(reason, why)
                if (note := self._assigner.note(queue, column, before, amount)) is not None:
                    in_the_way.append(note)
            if is_preferred(worst, grade, queue.prefers_preemption):
                worst = grade
            choice.grades[resource] = grade
        return worst, reason

    def _take(self, pod_set: PodSetRequest, count: int, requests: Mapping[str, int], chosen: dict[str, Choice]) -> None:
        for resource, choice in chosen.items():
            grade, column = choice.grades[resource], choice.option.columns[resource]
            self._usage[column] = self._usage.get(column, 0) + requests[resource]
            self._borrow_height = max(self._borrow_height, grade.borrow_height)
            if grade.possibility != Possibility.FIT:
                self._short.add(column)
                self._mode = min(self._mode, Mode.PREEMPT)
        self._tried.append({resource: choice.tried for resource, choice in chosen.items()})
        flavors = {resource: choice.option.flavor for resource, choice in chosen.items()}
        self._flavors.append(PodSetFlavors(pod_set.name, count, flavors))

    def result(self, counts: tuple[int, ...], now_at: tuple[int, int]) -> Assignment:
        return Assignment(
            mode=self._mode,
            counts=counts,
            pod_sets=tuple(self._flavors),
            usage=self._usage,
            short_columns=frozenset(self._short),
            borrow_height=self._borrow_height,
            position=ScanPosition(now_at[0], now_at[1], tuple(self._tried)),
            reason=self._reason,
            notes=self._notes,
        )
