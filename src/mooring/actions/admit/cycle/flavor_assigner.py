"""Which flavor each pod set gets, and what it would take: free quota, borrowing, or preemption.

A pod set takes all resources of one group from one flavor. Flavors are tried in the queue's order until one is good
enough for the queue's policy; otherwise the best one seen is taken. Where the search stopped is remembered, so that a
workload that could not start with that flavor tries the ones behind it next time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from mooring.actions.admit.lifecycle.conditions import Note, Shortage, TooMuch, pod_sets_message
from mooring.actions.admit.quota.structure import FlavorGroup, FlavorMatcher, FlavorOption, Queue
from mooring.actions.admit.quota.tree import QuotaTree
from mooring.actions.admit.topology.assigner import Found, PodSetNeed, TopologyAssigner
from mooring.actions.admit.topology.needs import Unplaceable, flavor_mismatch, needs_of
from mooring.actions.admit.topology.usage import TopologyUse
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
    needs: tuple[PodSetNeed, ...] = ()
    """What of it is placed in the topologies of its flavors."""
    topology_use: TopologyUse = ()
    """What it would use of the domains that it is assigned, if it is."""

    @property
    def message(self) -> str:
        return pod_sets_message(self.notes)

    def take_topology(self, found: Found) -> None:
        """Let the pods go where a place was found for them, if one was."""
        self.topology_use = tuple(found.uses)
        self.pod_sets = tuple(
            replace(given, topology=found.assignments.get(given.name)) if found.assignments or given.topology else given
            for given in self.pod_sets
        )


class FlavorAssigner:
    """Assigns flavors against the tree as it stands; changes nothing."""

    def __init__(
        self,
        tree: QuotaTree,
        matcher: FlavorMatcher,
        oracle: Oracle,
        *,
        topology: TopologyAssigner,
        fair_sharing: bool,
        ignores_undeclared: bool = False,
    ) -> None:
        self._topology = topology
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
        for members in _groups(pending.pod_sets) if pending.has_groups else ((index,) for index in range(len(given))):
            if not search.assign_together(members, given):
                break
        assignment = search.result(given, now_at)
        if queue.topology_flavors and assignment.mode != Mode.NO_FIT:
            self._assign_topology(pending, queue, assignment)
        return assignment

    def _assign_topology(self, pending: PendingWorkload, queue: Queue, assignment: Assignment) -> None:
        """Find a place as well. Where there is none, preempting others may help, unless not even that would."""
        needs = needs_of(queue, pending.pod_sets, assignment.pod_sets)
        if isinstance(needs, Unplaceable):
            assignment.mode, assignment.reason = Mode.NO_FIT, Reason.NoMatchingFlavor
            assignment.notes.append((needs.pod_set, [needs.message]))
            return
        if not needs:
            return
        assignment.needs = tuple(needs)
        if assignment.mode == Mode.FIT:
            found = self._topology.find(needs)
            if found.is_complete:
                assignment.take_topology(found)
                return
            assignment.notes.append((found.failed, [found.message]))
            assignment.mode = Mode.PREEMPT
        if not self._topology.find(needs, is_empty=True).is_complete:
            assignment.mode, assignment.reason = Mode.NO_FIT, Reason.TopologyPlacementFailed
            return
        named = {need.name for need in needs}
        assignment.short_columns |= {
            queue.group_by_resource[resource].column(flavor, resource)
            for given in assignment.pod_sets
            if given.name in named
            for resource, flavor in given.flavors.items()
        }

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

    def mismatch(self, queue: Queue, flavor: str, covered: frozenset[str], pod_set: PodSetRequest) -> str:
        if queue.topology_flavors:
            wrong = flavor_mismatch(queue, flavor, covered, pod_set, self._topology.flavors)
            if wrong:
                return wrong
        return self._matcher.mismatch(flavor, pod_set.selection, pod_set.spec)


def _groups(pod_sets: Sequence[PodSetRequest]) -> list[tuple[int, ...]]:
    """Pod sets that share their flavors: those of one group together, at the place of the first."""
    found: dict[str, list[int]] = {}
    for index, pod_set in enumerate(pod_sets):
        found.setdefault(pod_set.topology.group or f"\n{index}", []).append(index)
    return [tuple(members) for members in found.values()]


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

    def assign_together(self, members: tuple[int, ...], counts: Sequence[int]) -> bool:
        """Find flavors for a pod set, or for a group that must have the same; False if there are none."""
        queue, pod_sets = self._queue, self._pending.pod_sets
        with_pods = PODS in queue.group_by_resource
        totals = {index: pod_sets[index].total(counts[index], with_pods=with_pods) for index in members}
        requests = totals[members[0]] if len(members) == 1 else _sum(totals.values())
        together = [pod_sets[index] for index in members]
        chosen: dict[str, Choice] = {}
        notes: list[Note] = []
        for resource, amount in requests.items():
            if resource in chosen:
                continue
            group = queue.group_by_resource.get(resource)
            if group is None:
                if amount == 0 or self._assigner.ignores_undeclared:
                    continue
                return self._give_up(together, [f"resource {resource} unavailable in ClusterQueue"])
            wanted = {name: value for name, value in requests.items() if name in group.resources}
            in_the_way: list[Note] = []
            choice = self._find_flavor(members, resource, group, wanted, in_the_way)
            if choice is None:
                return self._give_up(together, in_the_way)
            chosen.update(dict.fromkeys(wanted, choice))
            if any(grade.possibility != Possibility.FIT for grade in choice.grades.values()):
                notes += in_the_way
        if notes:
            self._notes += [(pod_set.name, notes) for pod_set in together]
        for index, total in totals.items():
            self._take(pod_sets[index], counts[index], total, chosen)
        return True

    def _give_up(self, together: Sequence[PodSetRequest], in_the_way: list[Note]) -> bool:
        self._notes += [(pod_set.name, in_the_way) for pod_set in together]
        self._mode = Mode.NO_FIT
        self._tried.append({})
        self._reason = self._reason or Reason.NoMatchingFlavor
        return False

    def _find_flavor(
        self,
        members: tuple[int, ...],
        resource: str,
        group: FlavorGroup,
        wanted: Mapping[str, int],
        in_the_way: list[Note],
    ) -> Choice | None:
        start = self._position.next_flavor(members[0], resource) if self._position is not None else 0
        best, best_grade = None, WORST
        least = Reason.NONE
        tried = -1
        for tried in range(start, len(group.options)):
            option = group.options[tried]
            if self._pins is not None and all(self._pins[index].get(resource) != option.flavor for index in members):
                continue
            mismatch = self._mismatch(option.flavor, group, members)
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

    def _mismatch(self, flavor: str, group: FlavorGroup, members: tuple[int, ...]) -> str:
        for index in members:
            wrong = self._assigner.mismatch(self._queue, flavor, group.resources, self._pending.pod_sets[index])
            if wrong:
                return wrong
        return ""

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

    def _take(self, pod_set: PodSetRequest, count: int, requests: Mapping[str, int], group: dict[str, Choice]) -> None:
        # Of a group each has what it asks for itself; who asks for nothing goes where the others go.
        chosen = {resource: choice for resource, choice in group.items() if resource in requests} if requests else group
        for resource, choice in chosen.items():
            grade, column = choice.grades[resource], choice.option.columns[resource]
            self._usage[column] = self._usage.get(column, 0) + requests.get(resource, 0)
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


def _sum(totals: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """What a group asks for together, in Kueue's order: the first one decides where the search goes on next time."""
    found: dict[str, int] = {}
    for total in totals:
        for resource, amount in total.items():
            found[resource] = found.get(resource, 0) + amount
    return {resource: found[resource] for resource in sorted(found, key=_fnv_1a)}


def _fnv_1a(text: str) -> int:
    """The hash by which Kueue orders resources."""
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = ((found ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return found
