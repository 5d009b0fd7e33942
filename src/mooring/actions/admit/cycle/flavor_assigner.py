"""Which flavor each pod set gets, and what it would take: free quota, borrowing, or preemption.

A pod set takes all resources of one group from one flavor. Flavors are tried in the queue's order until one is good
enough for the queue's policy; otherwise the best one seen is taken. Where the search stopped is remembered, so that a
workload that could not start with that flavor tries the ones behind it next time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from mooring.actions.admit.cycle.conditions import Note, Shortage, TooMuch, pod_sets_message
from mooring.actions.admit.cycle.flavor_modes import (
    BEST,
    WORST,
    FlavorMode,
    Mode,
    Possibility,
    Reason,
    is_preferred,
    milder,
    tries_next,
)
from mooring.actions.admit.cycle.quota_requests import QuotaRequest, QuotaRequests
from mooring.actions.admit.quota.structure import FlavorGroup, FlavorMatcher, FlavorOption, Queue
from mooring.actions.admit.quota.topology_needs import Unplaceable, flavor_mismatch, needs_of
from mooring.actions.admit.quota.workload_info import PendingWorkload, PodSetRequest, ScanPosition
from mooring.actions.admit.topology.assigner import Found, PodSetNeed, TopologyAssigner
from mooring.actions.admit.topology.usage import TopologyUse
from mooring.model.api.kueue import NEVER
from mooring.model.decisions import PodSetFlavors
from mooring.state.quota_tree import QuotaTree

Oracle = Callable[[PendingWorkload, Queue, int, int], FlavorMode]
"""Asks preemption what could be done for (workload, queue, column, amount)."""

Pins = Sequence[Mapping[str, str]]
"""For each pod set: by resource, the only flavor that may be used."""


@dataclass(slots=True)
class Choice:
    """The flavor found for the resources of one group."""

    option: FlavorOption
    flavor_modes: dict[str, FlavorMode] = field(default_factory=dict)
    tried: int = -1
    is_first: bool = True
    """Whether no other was looked at."""
    fits: bool = True
    """Whether all of it is free."""


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
    is_first_choice: bool = False
    """Whether no other flavor was looked at, and all of it comes from equally far up: no more than one number to check
    to see that the same would be found again."""
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
        self._quota_requests = QuotaRequests(ignores_undeclared=ignores_undeclared)

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
        search = _FlavorSearch(self, pending, queue, position, pins)
        given = tuple(counts) if counts is not None else tuple([pod_set.count for pod_set in pending.pod_sets])
        parts = list[_FlavorsTogether]()
        usage = dict[int, int]()
        for quota_request in self._quota_requests.of(pending, queue, given, is_whole=counts is None):
            part = search.assign_together(quota_request, given, usage)
            parts.append(part)
            for column, amount, _ in part.taken:
                usage[column] = usage.get(column, 0) + amount
            if not part.flavors:
                break
        assignment = _put_together(parts, usage, given, ScanPosition(*now_at, tuple(_tried(parts))))
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

    def flavor_mode(
        self, pending: PendingWorkload, queue: Queue, column: int, amount: int
    ) -> tuple[FlavorMode, Reason]:
        """What it takes for the queue to have the amount in one column."""
        tree, node = self._tree, queue.node
        if amount > tree.potential_of(node, column):
            return FlavorMode(Possibility.NO_FIT, 0), Reason.ExceedsMaxQuota
        height, is_more_above = tree.borrow_height(node, column, amount)
        if amount <= tree.available(node, column):
            return FlavorMode(Possibility.FIT, height), Reason.NONE
        may_borrow_and_preempt = queue.borrows_while_preempting or (self._fair_sharing and queue.reclaim != NEVER)
        if amount <= tree.nominal_of(node, column) or is_more_above or may_borrow_and_preempt:
            return self._oracle(pending, queue, column, amount), Reason.NONE
        return FlavorMode(Possibility.NO_FIT, height), Reason.WaitingForQuota

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


@dataclass(frozen=True, slots=True)
class _FlavorsTogether:
    """The flavors of a pod set, or of a group that must have the same; none if they were not found."""

    flavors: tuple[PodSetFlavors, ...] = ()
    tried: tuple[Mapping[str, int], ...] = ({},)
    """By pod set: where the next search goes on, by resource."""
    taken: tuple[tuple[int, int, FlavorMode], ...] = ()
    """What is used of each column, and what that takes."""
    notes: tuple[tuple[str, list[Note]], ...] = ()
    reason: Reason = Reason.NONE
    is_first_choice: bool = True


def _tried(parts: Sequence[_FlavorsTogether]) -> Iterator[Mapping[str, int]]:
    return chain.from_iterable(part.tried for part in parts)


def _put_together(
    parts: Sequence[_FlavorsTogether], usage: dict[int, int], counts: tuple[int, ...], position: ScanPosition
) -> Assignment:
    """The assignment that the parts of a workload make up."""
    taken = [found for part in parts for found in part.taken]
    flavors = tuple(chain.from_iterable(part.flavors for part in parts))
    short_columns = frozenset(column for column, _, found in taken if found.possibility != Possibility.FIT)
    heights = {found.borrow_height for _, _, found in taken}
    # Pod sets are looked at one after another: what is theirs by right is so of each; else there must be one.
    is_of_one_height = len(heights) < 2 and (len(flavors) == 1 or not any(heights))
    is_found = all(part.flavors for part in parts)
    return Assignment(
        mode=Mode.NO_FIT if not is_found else Mode.PREEMPT if short_columns else Mode.FIT,
        counts=counts,
        pod_sets=flavors,
        usage=usage,
        short_columns=short_columns,
        borrow_height=max(heights, default=0),
        position=position,
        reason=parts[-1].reason if parts else Reason.NONE,
        notes=[note for part in parts for note in part.notes],
        is_first_choice=is_of_one_height and all(part.is_first_choice for part in parts),
    )


@dataclass(frozen=True, slots=True)
class _FlavorSearch:
    """What is looked for: flavors for one workload."""

    assigner: FlavorAssigner
    pending: PendingWorkload
    queue: Queue
    position: ScanPosition | None
    pins: Pins | None

    def assign_together(
        self, quota_request: QuotaRequest, counts: Sequence[int], usage: Mapping[int, int]
    ) -> _FlavorsTogether:
        """Find flavors for a pod set, or for a group that must have the same, besides what is in use by column."""
        pod_sets = self.pending.pod_sets
        together = [pod_sets[index] for index in quota_request.members]
        chosen: dict[str, Choice] = {}
        notes: list[Note] = []
        is_first_choice = True
        for resource, group, wanted in quota_request.groups:
            in_the_way: list[Note] = []
            choice: Choice | Reason = Reason.NoMatchingFlavor
            if group is None:
                in_the_way.append(f"resource {resource} unavailable in ClusterQueue")
            else:
                choice = self._find_flavor(quota_request.members, resource, group, wanted, in_the_way, usage)
            if isinstance(choice, Reason):
                named_notes = tuple((pod_set.name, in_the_way) for pod_set in together)
                return _FlavorsTogether(notes=named_notes, reason=choice, is_first_choice=is_first_choice)
            for name in wanted:
                chosen[name] = choice
            is_first_choice &= choice.is_first
            if not choice.fits:
                notes += in_the_way
        tried = list[Mapping[str, int]]()
        taken = list[tuple[int, int, FlavorMode]]()
        flavors = list[PodSetFlavors]()
        for index, total in zip(quota_request.members, quota_request.totals, strict=True):
            # Of a group each has what it asks for itself; who asks for nothing goes where the others go.
            is_one_of_several = total and len(quota_request.members) > 1
            own = {name: chosen[name] for name in chosen if name in total} if is_one_of_several else chosen
            taken += [
                (choice.option.columns[resource], total.get(resource, 0), choice.flavor_modes[resource])
                for resource, choice in own.items()
            ]
            named = {resource: choice.option.flavor for resource, choice in own.items()}
            flavors.append(PodSetFlavors(pod_sets[index].name, counts[index], named))
            tried.append({resource: choice.tried for resource, choice in own.items()})
        return _FlavorsTogether(
            tuple(flavors),
            tuple(tried),
            tuple(taken),
            tuple((pod_set.name, notes) for pod_set in together) if notes else (),
            is_first_choice=is_first_choice,
        )

    def _find_flavor(
        self,
        members: tuple[int, ...],
        resource: str,
        group: FlavorGroup,
        wanted: Mapping[str, int],
        in_the_way: list[Note],
        usage: Mapping[int, int],
    ) -> Choice | Reason:
        """The best flavor of a group, or why there is none."""
        start = self.position.next_flavor(members[0], resource) if self.position is not None else 0
        best, best_grade = None, WORST
        least = Reason.NONE
        tried = -1
        for tried in range(start, len(group.options)):
            option = group.options[tried]
            if self.pins is not None and all(self.pins[index].get(resource) != option.flavor for index in members):
                continue
            mismatch = self._mismatch(option.flavor, group, members)
            if mismatch:
                in_the_way.append(mismatch)
                least = milder(least, Reason.NoMatchingFlavor)
                continue
            choice = Choice(option)
            flavor_mode, reason = self._grade_option(choice, wanted, in_the_way, usage)
            if flavor_mode.possibility == Possibility.NO_FIT:
                least = milder(least, reason)
            if not tries_next(flavor_mode, self.queue):
                best = choice
                break
            if is_preferred(flavor_mode, best_grade, self.queue.prefers_preemption):
                best, best_grade = choice, flavor_mode
        if best is None:
            return least or Reason.NoMatchingFlavor
        best.is_first = tried == 0
        best.tried = -1 if tried == len(group.options) - 1 else tried
        return best

    def _mismatch(self, flavor: str, group: FlavorGroup, members: tuple[int, ...]) -> str:
        for index in members:
            wrong = self.assigner.mismatch(self.queue, flavor, group.resources, self.pending.pod_sets[index])
            if wrong:
                return wrong
        return ""

    def _grade_option(
        self, choice: Choice, wanted: Mapping[str, int], in_the_way: list[Note], usage: Mapping[int, int]
    ) -> tuple[FlavorMode, Reason]:
        """The worst grade over the resources that the group must provide."""
        queue, worst, reason = self.queue, BEST, Reason.NONE
        for resource, amount in wanted.items():
            column = choice.option.columns[resource]
            before = usage.get(column, 0)
            total = amount + before
            if worst.possibility == Possibility.NO_FIT:
                # Settled; all that the others can add is a more telling reason.
                reason = max(reason, self.assigner.lasting_reason(queue, column, total))
                if (note := self.assigner.note(queue, column, before, amount)) is not None:
                    in_the_way.append(note)
                continue
            flavor_mode, why = self.assigner.flavor_mode(self.pending, queue, column, total)
            if flavor_mode.possibility != Possibility.FIT:
                choice.fits = False
                reason = max(reason, why)
                if (note := self.assigner.note(queue, column, before, amount)) is not None:
                    in_the_way.append(note)
            if is_preferred(worst, flavor_mode, queue.prefers_preemption):
                worst = flavor_mode
            choice.flavor_modes[resource] = flavor_mode
        return worst, reason
