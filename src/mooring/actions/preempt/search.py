"""One preemption from beginning to end: may the pod, where could it help, who would have to go, and which is cheapest.

Every node is looked at, where kube-scheduler stops at a sample: see docs/preemption.md.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.bounds import least_costs
from mooring.actions.preempt.choice import Key, cheapest, key_of
from mooring.actions.preempt.concern import Concerns
from mooring.actions.preempt.crowd import Crowd, Shares, gather_crowd
from mooring.actions.preempt.eligible import NOT_HELPFUL, potential_rows, why_not
from mooring.actions.preempt.reprieve import AskedFilter, mark_violating, passes_all, reprieve
from mooring.actions.preempt.running import RunningPods, importance
from mooring.actions.preempt.what_if import WhatIf
from mooring.engine.answers import is_by_usage
from mooring.engine.evaluate import Evaluation, ask_filter, prepare_filters, run_filters
from mooring.engine.plugin import SKIP
from mooring.engine.profile import Profile
from mooring.engine.settled import SettledCache, is_settled
from mooring.engine.verdict import Rejection, fit_message
from mooring.model.pods import Pod
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape

NO_VICTIMS = "No preemption victims found for incoming pod"


@dataclass(frozen=True)
class Found:
    """Room can be made."""

    row: int
    node: str
    victims: tuple[PodRecord, ...]
    """The most important first."""
    violations: int
    """How many of them a disruption budget would have protected."""

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


@dataclass
class Candidate:
    """The cheapest way so far."""

    crowd: Crowd
    position: int
    key: Key


def refusals(profile: Profile, cluster: Cluster, shape: Shape) -> Evaluation:
    """What every node says to a pod, without scores."""
    answer = Evaluation(shape, cluster, profile, cluster.nodes.live_rows())
    allowed = prepare_filters(answer)
    if answer.refused is None:
        run_filters(answer, allowed)
    return answer


class Search:
    """Searches one cluster; keeps what the next search can use."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.running = RunningPods(cluster)
        self._shares = Shares(cluster)
        self._settled = SettledCache()
        self._concerns = Concerns(cluster)

    def find(self, answer: Evaluation, pod: Pod) -> Found | InVain:
        """Whom to evict from where, for a pod that every node has refused as `answer` says."""
        forbidden = why_not(answer, pod)
        if forbidden is not None:
            return InVain(f"preemption: {forbidden}")
        # 1. The nodes on which evicting could help at all, and whom the pod may evict there.
        rows = potential_rows(answer)
        priority = pod.spec.priority or 0
        crowd = self._crowd(rows, priority)
        # 2. Those that would do if all of them were gone, as far as columns can tell.
        filters = Filters(answer)
        room = crowd.at(np.flatnonzero(self._has_room(crowd, filters)))
        # 3. Where filters by usage alone care who goes, all nodes at once; the others one by one, most promising first.
        concerned = self._concerned(room, filters)
        best = self._cheapest_at_once(room.at(np.flatnonzero(~concerned)), filters)
        one_by_one = room.at(np.flatnonzero(concerned))
        best, refused = self._cheapest_one_by_one(one_by_one, filters, best)
        if best is not None:
            return self._found(best)
        # 4. Nothing helps: say why, node by node.
        tally = Counter({NOT_HELPFUL: len(answer.rows) - len(rows), NO_VICTIMS: len(rows) - len(crowd)})
        for rejection in (*refused, *self._refusals(crowd, filters, set(one_by_one.rows.tolist()))):
            tally.update(rejection.reasons)
        counted = ((Rejection((reason,)), count) for reason, count in tally.items() if count)
        return InVain(f"preemption: {fit_message(len(answer.rows), counted)}")

    def _crowd(self, rows: NDArray[np.intp], priority: int) -> Crowd:
        if not len(rows) or not self.running.has_below(priority):
            return gather_crowd(self.running, self._shares, rows[:0], priority)
        self.running.refresh()
        return gather_crowd(self.running, self._shares, rows, priority)

    def _has_room(self, crowd: Crowd, filters: "Filters") -> NDArray[np.bool_]:
        if not len(crowd):
            return np.zeros(0, np.bool_)
        answer = filters.answer
        settled = self._settled.of(answer.profile, self.cluster, answer.shape)
        if settled.refused:
            return np.zeros(len(crowd), np.bool_)
        return settled.is_row[crowd.rows] & passes_all(filters.by_usage, answer.shape, crowd.supposed())

    def _concerned(self, crowd: Crowd, filters: "Filters") -> NDArray[np.bool_]:
        """On which rows somebody might go whom a filter cares about that looks beyond the row's usage."""
        if not len(crowd) or not filters.elsewhere:
            return np.zeros(len(crowd), np.bool_)
        answer = filters.answer
        is_concern = self._concerns.of(answer.profile.name, answer.shape, filters.elsewhere)
        goes: NDArray[np.bool_] = is_concern[crowd.shapes] & crowd.gone
        concerned: NDArray[np.bool_] = np.logical_or.reduce(goes, axis=0)
        return concerned

    def _cheapest_at_once(self, crowd: Crowd, filters: "Filters") -> Candidate | None:
        shape = filters.answer.shape
        if len(crowd) and filters.elsewhere:
            crowd = crowd.at(np.flatnonzero(passes_all(filters.elsewhere, shape, crowd.nodes)))
        if not len(crowd):
            return None
        crowd = mark_violating(crowd, self.running)
        crowd = crowd.with_gone(reprieve(crowd, filters.by_usage, shape))
        crowd = crowd.at(np.flatnonzero(crowd.gone.any(axis=0)))
        if not len(crowd):
            return None
        position = cheapest(crowd)
        return Candidate(crowd, position, key_of(crowd, position))

    def _cheapest_one_by_one(
        self, crowd: Crowd, filters: "Filters", best: Candidate | None
    ) -> tuple[Candidate | None, list[Rejection]]:
        """The cheapest of the best so far and these rows, tried while they could cost less; why others will not do."""
        refused = list[Rejection]()
        if not len(crowd):
            return best, refused
        shape = filters.answer.shape
        what_if = WhatIf(self.cluster, shape, filters.unsettled)
        crowd = mark_violating(crowd, self.running)
        bounds = least_costs(crowd, filters.by_usage, shape)
        for position in np.lexsort(bounds[::-1]).tolist():
            if best is not None and best.key <= tuple(int(bound[position]) for bound in bounds):
                break
            gone = what_if.victims(crowd, position)
            if isinstance(gone, Rejection):
                refused.append(gone)
            elif gone.any():
                one = crowd.with_gone(np.where(np.arange(len(crowd)) == position, gone[:, np.newaxis], False))
                key = key_of(one, position)
                if best is None or key < best.key:
                    best = Candidate(one, position, key)
        return best, refused

    def _refusals(self, crowd: Crowd, filters: "Filters", tried: set[int]) -> Iterator[Rejection]:
        """Why rows will not do even without their victims, those aside that were tried one by one."""
        answer = filters.answer
        crowd = crowd.at(np.flatnonzero([row not in tried for row in crowd.rows.tolist()]))
        failed = np.zeros(len(crowd), np.bool_)
        for plugin, prepared in filters.asked:
            if not len(crowd):
                return
            nodes = crowd.supposed() if is_by_usage(plugin) else self.cluster.rows(crowd.rows)
            codes = ask_filter(plugin, answer.shape, nodes, prepared)
            codes[failed] = 0
            for code, count in zip(*np.unique(codes[codes != 0], return_counts=True), strict=True):
                yield from [plugin.rejection(answer.shape, int(code))] * int(count)
            failed |= codes != 0

    def _found(self, best: Candidate) -> Found:
        crowd, position = best.crowd, best.position
        slots = crowd.slots[crowd.gone[:, position], position].tolist()
        records = [self.cluster.pods.by_slot[slot] for slot in slots]
        victims = sorted((record for record in records if record is not None), key=importance)
        row = int(crowd.rows[position])
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
        self.by_usage = [asked for asked in self.unsettled if is_by_usage(asked[0])]
        self.elsewhere = [asked for asked in self.unsettled if not is_by_usage(asked[0])]
        """Those whose answers depend on pods elsewhere, or on more of the node's own pods than what they request."""
