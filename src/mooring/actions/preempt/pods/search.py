"""One preemption from beginning to end: may the pod, where could it help, who would have to go, and which is cheapest.

Every node is looked at, where kube-scheduler stops at a sample: see docs/preemption.md. First only pods may go that go
by themselves; where that is in vain, whole gangs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.cost import NEVER_SECONDS, Cost
from mooring.actions.preempt.gangs.whole_gangs import Asking, cheapest_with_gangs
from mooring.actions.preempt.pods.candidates import Candidates, ShapeAmounts
from mooring.actions.preempt.pods.choice import Key, cheapest, key_of, least_costs
from mooring.actions.preempt.pods.eligible import NOT_HELPFUL, potential_rows, why_not
from mooring.actions.preempt.pods.relevance import Relevance
from mooring.actions.preempt.pods.reprieve import AskedFilter, mark_violating, passes_all, reprieve
from mooring.actions.preempt.pods.victims import Victims, relied_on
from mooring.actions.preempt.pods.what_if import WhatIf
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.engine.answers.answers import is_by_amounts
from mooring.engine.answers.settled import SettledCache, is_settled
from mooring.engine.asking import ask_filter, ask_filter_without, ask_rejection
from mooring.engine.evaluate import PASSED, Evaluation, prepare_filters, run_filters
from mooring.engine.plugin import SKIP, FilterAnswers, Mask
from mooring.engine.profile import Profile
from mooring.engine.shortcuts import SupposingFilter
from mooring.engine.verdict import Rejection, fit_message
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.state.rows import Rows
from mooring.state.running import importance, preemptor_priority
from mooring.state.shapes import Shape

NO_VICTIMS = "No preemption victims found for incoming pod"
PROTECTED = "victims are protected for another {}s"
TOLERATED = "victims tolerate preemption by this priority"


def why_protected(seconds: int) -> str:
    """Say for how long victims are protected; some are for ever."""
    return TOLERATED if seconds >= NEVER_SECONDS else PROTECTED.format(seconds)


@dataclass(frozen=True)
class Found:
    """Room can be made."""

    row: int
    node: str
    victims: tuple[PodRecord, ...]
    """The most important first."""
    violations: int
    """How many of them a disruption budget would have protected."""
    gangs: Mapping[str, str] = field(default_factory=dict)
    """The victims that go because their whole gang does, by pod key: the gang's name."""

    @property
    def message(self) -> str:
        return (
            "preemption: found a potential placement for pod on node "
            f"{self.node}, preempting {len(self.victims)} victims"
        )


@dataclass(frozen=True)
class InVain:
    """Nobody's going would help, or the pod may not evict; the message says so in kube-scheduler's words."""

    message: str
    again_after: float | None = None
    """In so many seconds it could help, because somebody is protected no longer than that."""


@dataclass
class Candidate:
    """The cheapest way so far."""

    candidates: Candidates
    position: int
    key: Key


def refusals(profile: Profile, cluster: Cluster, shape: Shape, rows: Rows | None = None) -> Evaluation:
    """What every node says to a pod, or some rows do, without scores."""
    answer = Evaluation(shape, cluster, profile, cluster.nodes.live_rows() if rows is None else rows)
    allowed = prepare_filters(answer)
    if answer.refused is None:
        run_filters(answer, allowed)
    return answer


class VictimSearch:
    """Searches one cluster; keeps what the next search can use."""

    def __init__(self, cluster: Cluster, *, with_costs: bool = False) -> None:
        """`with_costs` is for profiles that say what preemption may cost."""
        self.cluster = cluster
        self.running = cluster.running_pods(with_costs=with_costs)
        self.shares = ShapeAmounts(cluster)
        self.settled = SettledCache()
        self.relevance = Relevance(cluster)

    def find(
        self, answer: Evaluation, pod: Pod, now: float = 0.0, costs: PreemptionCostArgs | None = None
    ) -> Found | InVain:
        """Whom to evict from where, for a pod that every node has refused as `answer` says."""
        forbidden = why_not(answer, pod)
        if forbidden is not None:
            return InVain(f"preemption: {forbidden}")
        # 1. The nodes on which evicting could help at all, and whom the pod may evict there.
        fits = answer.refused is None and bool((answer.failed_by == PASSED).any())
        assert not fits, "nothing is evicted for a pod that fits"
        rows = potential_rows(answer)
        priority = preemptor_priority(self.cluster, pod)
        victims = self.victims(priority, pod.key, rows, now, costs, answer.profile.filters)
        candidates = victims.going_alone
        # 2. Those that would do if all of them were gone, as far as columns can tell.
        filters = Filters(answer)
        room = candidates.at(np.flatnonzero(self._has_room(candidates, filters)))
        # 3. Where columns tell all about who goes, all nodes at once; the others one by one, most promising first.
        relevant = self._relevant(room, filters)
        best = self._cheapest_at_once(room.at(np.flatnonzero(~relevant)), filters)
        one_by_one = room.at(np.flatnonzero(relevant))
        best, refused = self._cheapest_one_by_one(one_by_one, filters, best)
        if best is not None:
            return self._found(best)
        # 4. Where pods by themselves are not enough, whole gangs.
        if victims.has_gangs:
            found, refused_with_gangs = self._with_gangs(victims, filters)
            if found is not None:
                return found
            refused |= refused_with_gangs
        # 5. Nothing helps: say why, node by node.
        return self._in_vain(victims, filters, refused)

    def victims(
        self,
        priority: int,
        pod_key: PodKey,
        rows: Rows,
        now: float,
        costs: PreemptionCostArgs | None,
        filters: Sequence[FilterAnswers],
    ) -> Victims:
        """Who might have to go from some rows, for a pod or gang of this priority; `filters` are of its profile.

        Pods on which a more urgent pod relies that holds a row are not among them.
        """
        if not len(rows) or not self.running.has_below(priority):
            return Victims(self.running, self.shares, priority, rows[:0], pod_key)
        self.running.refresh()
        preemptions = self.cluster.preemptions
        cost = None if costs is None or costs.is_off else Cost(costs, self.running, preemptions, now, priority)
        needed = relied_on(self.running, filters, priority)
        return Victims(self.running, self.shares, priority, rows, pod_key, cost, needed)

    def _has_room(self, candidates: Candidates, filters: "Filters") -> NDArray[np.bool_]:
        if not len(candidates):
            return np.zeros(0, np.bool_)
        answer = filters.answer
        settled = self.settled.of(answer.profile, self.cluster, answer.shape)
        if settled.refused:
            return np.zeros(len(candidates), np.bool_)
        return settled.is_row[candidates.rows] & passes_all(filters.in_columns, answer.shape, candidates.supposed())

    def _relevant(self, candidates: Candidates, filters: "Filters") -> NDArray[np.bool_]:
        """On which rows somebody might go whom a filter cares about that only trying can tell about."""
        if not len(candidates) or not filters.to_be_tried:
            return np.zeros(len(candidates), np.bool_)
        answer = filters.answer
        is_concern = self.relevance.of(answer.profile.name, answer.shape, filters.to_be_tried)
        goes: NDArray[np.bool_] = is_concern[candidates.shapes] & candidates.gone
        relevant: NDArray[np.bool_] = np.logical_or.reduce(goes, axis=0)
        return relevant

    def _cheapest_at_once(self, candidates: Candidates, filters: "Filters") -> Candidate | None:
        shape = filters.answer.shape
        if len(candidates) and filters.to_be_tried:
            candidates = candidates.at(np.flatnonzero(passes_all(filters.to_be_tried, shape, candidates.nodes)))
        if not len(candidates):
            return None
        candidates = mark_violating(candidates, self.running)
        candidates = candidates.with_gone(reprieve(candidates, filters.in_columns, shape))
        candidates = candidates.at(np.flatnonzero(candidates.gone.any(axis=0)))
        if not len(candidates):
            return None
        position = cheapest(candidates)
        return Candidate(candidates, position, key_of(candidates, position))

    def _cheapest_one_by_one(
        self, candidates: Candidates, filters: "Filters", best: Candidate | None
    ) -> tuple[Candidate | None, dict[int, Rejection]]:
        """The cheapest of the best so far and these rows, tried while they could cost less; why others will not do."""
        refused = dict[int, Rejection]()
        if not len(candidates):
            return best, refused
        shape = filters.answer.shape
        what_if = WhatIf(self.cluster, shape, filters.unsettled)
        candidates = mark_violating(candidates, self.running)
        bounds = least_costs(candidates, filters.by_usage, shape)
        for position in np.lexsort(bounds[::-1]).tolist():
            if best is not None and best.key <= tuple(int(bound[position]) for bound in bounds):
                break
            with self.running.supposing():
                gone = what_if.victims(candidates, position)
            if isinstance(gone, Rejection):
                refused[int(candidates.rows[position])] = gone
            elif gone.any():
                one = candidates.with_gone(np.where(np.arange(len(candidates)) == position, gone[:, np.newaxis], False))
                key = key_of(one, position)
                if best is None or key < best.key:
                    best = Candidate(one, position, key)
        return best, refused

    def _with_gangs(self, victims: Victims, filters: "Filters") -> tuple[Found | None, dict[int, Rejection]]:
        answer = filters.answer
        settled = self.settled.of(answer.profile, self.cluster, answer.shape)
        pool = victims.pool()
        asking = Asking(
            answer.shape,
            filters.by_usage,
            filters.elsewhere,
            WhatIf(self.cluster, answer.shape, filters.unsettled),
            lambda: self.relevance.of(answer.profile.name, answer.shape, filters.elsewhere),
        )
        rows = victims.rows[settled.is_row[victims.rows]] if not settled.refused else victims.rows[:0]
        found, refused = cheapest_with_gangs(pool, self.shares, rows, asking)
        if found is None:
            return None, refused
        going, gangs = pool.goers(found.units)
        return Found(found.row, self.cluster.nodes.name(found.row), going, found.violations, gangs), refused

    def _in_vain(self, victims: Victims, filters: "Filters", refused: dict[int, Rejection]) -> InVain:
        answer = filters.answer
        candidates = victims.everybody
        is_tried = np.isin(candidates.rows, list(refused))
        is_protected = self._has_room(candidates, filters) & ~is_tried & self._protects(victims, candidates, filters)
        not_helpful = len(answer.rows) - len(potential_rows(answer))
        tally = Counter({NOT_HELPFUL: not_helpful, NO_VICTIMS: len(answer.rows) - not_helpful - len(candidates)})
        again_after = None
        if is_protected.any():
            again_after = victims.seconds_protected(candidates.at(np.flatnonzero(is_protected)))
            tally[why_protected(again_after)] = int(np.count_nonzero(is_protected))
        others = candidates.at(np.flatnonzero(~is_protected & ~is_tried))
        for rejection in (*refused.values(), *self._refusals(others, filters)):
            tally.update(rejection.reasons)
        counted = ((Rejection((reason,)), count) for reason, count in tally.items() if count)
        return InVain(f"preemption: {fit_message(len(answer.rows), counted)}", again_after)

    def _protects(self, victims: Victims, candidates: Candidates, filters: "Filters") -> Mask:
        """On which rows there is too little room only because somebody is protected."""
        if not victims.has_protected:
            return np.zeros(len(candidates), np.bool_)
        others = victims.unprotected
        return ~np.isin(candidates.rows, others.rows[self._has_room(others, filters)])

    def _refusals(self, candidates: Candidates, filters: "Filters") -> Iterator[Rejection]:
        """Why rows will not do even without their victims."""
        answer = filters.answer
        failed = np.zeros(len(candidates), np.bool_)
        for plugin, prepared in filters.asked:
            if not len(candidates):
                return
            if isinstance(plugin, SupposingFilter):
                codes = ask_filter_without(plugin, answer.shape, candidates.nodes, prepared, candidates.given_back)
            else:
                nodes = candidates.supposed() if is_by_amounts(plugin) else candidates.nodes
                codes = ask_filter(plugin, answer.shape, nodes, prepared)
            codes[failed] = 0
            for code, count in zip(*np.unique(codes[codes != 0], return_counts=True), strict=True):
                yield from [ask_rejection(plugin, answer.shape, int(code))] * int(count)
            failed |= codes != 0

    def _found(self, best: Candidate) -> Found:
        candidates, position = best.candidates, best.position
        slots = candidates.slots[candidates.gone[:, position], position].tolist()
        records = [self.cluster.pods.by_slot[slot] for slot in slots]
        victims = sorted((record for record in records if record is not None), key=importance)
        row = int(candidates.rows[position])
        return Found(row, self.cluster.nodes.name(row), tuple(victims), best.key[0])


class Filters:
    """The filters that have something to say about a pod, in order, with what they prepared."""

    def __init__(self, answer: Evaluation) -> None:
        self.answer = answer
        prepared = answer.prepared
        self.asked: list[AskedFilter] = [
            (plugin, prepared.get(plugin.name))
            for plugin in answer.profile.filters
            if prepared.get(plugin.name) is not SKIP
        ]
        self.unsettled = [asked for asked in self.asked if not is_settled(asked[0])]
        self.by_usage = [asked for asked in self.unsettled if is_by_amounts(asked[0])]
        self.elsewhere = [asked for asked in self.unsettled if not is_by_amounts(asked[0])]
        """Those whose answers depend on pods elsewhere, or on more of the node's own pods than what they request."""
        supposing = [asked for asked in self.elsewhere if isinstance(asked[0], SupposingFilter)]
        self.to_be_tried = [asked for asked in self.elsewhere if asked not in supposing]
        self.in_columns = self.by_usage + supposing
        """Those that answer for all rows at once, whoever is supposed to be gone."""
