"""One preemption from beginning to end: may the pod, where could it help, who would have to go, and which is cheapest.

Every node is looked at, where kube-scheduler stops at a sample: see docs/preemption.md.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.actions.preempt.bounds import least_costs
from mooring.actions.preempt.choice import costs_of
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
    key: tuple[int, ...]


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
        # 3. Where the victims matter to nobody else, all nodes at once; elsewhere one by one, the most promising first.
        what_if = WhatIf(self.cluster, answer.shape, filters.unsettled)
        elsewhere = WhatIf(self.cluster, answer.shape, filters.elsewhere)
        matters = elsewhere.matters(room) if filters.elsewhere else np.zeros(len(room), np.bool_)
        best = self._calm(room.at(np.flatnonzero(~matters)), filters)
        refused = list[Rejection]()
        best = self._restless(room.at(np.flatnonzero(matters)), filters, what_if, best, refused)
        if best is None:
            tally = Counter({NOT_HELPFUL: len(answer.rows) - len(rows), NO_VICTIMS: len(rows) - len(crowd)})
            for rejection in (*refused, *self._refusals(crowd, filters, set(room.rows[matters].tolist()))):
                tally.update(rejection.reasons)
            return InVain(_in_vain(len(answer.rows), tally))
        return self._found(best)

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

    def _calm(self, crowd: Crowd, filters: "Filters") -> Candidate | None:
        """The cheapest of the rows whose victims matter to filters by usage only."""
        shape = filters.answer.shape
        if len(crowd) and filters.elsewhere:
            nodes = self.cluster.rows(crowd.rows)
            crowd = crowd.at(np.flatnonzero(passes_all(filters.elsewhere, shape, nodes)))
        if not len(crowd):
            return None
        crowd = mark_violating(crowd, self.running)
        reprieve(crowd, filters.by_usage, shape)
        crowd = crowd.at(np.flatnonzero(crowd.gone.any(axis=1)))
        if not len(crowd):
            return None
        costs = costs_of(crowd)
        position = costs.cheapest()
        return Candidate(crowd, position, costs.key(position))

    def _restless(
        self, crowd: Crowd, filters: "Filters", what_if: WhatIf, best: Candidate | None, refused: list[Rejection]
    ) -> Candidate | None:
        """The cheapest of these rows and the best so far; the others are tried only while they could cost less."""
        if not len(crowd):
            return best
        crowd = mark_violating(crowd, self.running)
        bounds = least_costs(crowd, filters.by_usage, filters.answer.shape)
        for position in np.lexsort(bounds.columns()[::-1]).tolist():
            if best is not None and best.key <= bounds.key(position):
                break
            gone = what_if.victims(crowd, position)
            if isinstance(gone, Rejection):
                refused.append(gone)
            elif gone.any():
                one = crowd.at(np.array([position]))
                one.gone = gone[np.newaxis, : one.gone.shape[1]]
                key = costs_of(one).key(0)
                if best is None or key < best.key:
                    best = Candidate(one, 0, key)
        return best

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
        records = [self.cluster.pods.by_slot[slot] for slot in crowd.slots[position][crowd.gone[position]].tolist()]
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


def _in_vain(nodes: int, tally: Counter[str]) -> str:
    return "preemption: " + fit_message(
        nodes, ((Rejection((reason,)), count) for reason, count in tally.items() if count)
    )
