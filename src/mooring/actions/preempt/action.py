"""The action: for each pod that was just refused, in queue order, find victims, evict them, and hold the room.

The pod takes its place in the state at once, so that nobody else sees room there, and is bound when the world has
reported its victims gone: that is when `Bind` is returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mooring.actions.preempt.search import Found, InVain, Search, refusals
from mooring.engine.binding import needs_steps, take_steps
from mooring.engine.evaluate import Evaluation
from mooring.engine.plugin import PostFilter
from mooring.engine.queue import Entry, Parked, Queue
from mooring.model.decisions import Bind, Decision, Evict, Wait
from mooring.model.events import PodSeen
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodRecord

PLUGIN = "DefaultPreemption"
"""The plugin that switches this on, where a profile runs it."""


@dataclass(frozen=True)
class Leaving:
    """A pod that is being evicted, as it was when that was decided."""

    key: str
    uid: str
    row: int

    def is_gone(self, cluster: Cluster) -> bool:
        record = cluster.pods.records.get(self.key)
        return record is None or record.row != self.row or record.pod.metadata.uid != self.uid


@dataclass(frozen=True)
class Nomination:
    """A pod for which room is being made."""

    entry: Entry
    uid: str
    node: str
    row: int
    victims: tuple[Leaving, ...]


class Preempt:
    """The action."""

    def __init__(self) -> None:
        self._search: Search | None = None
        self._nominations: dict[str, Nomination] = {}
        self._leaving: dict[str, Leaving] = {}
        self._tried: dict[int, tuple[Parked, set[int]]] = {}
        """By id of a group of parked pods: the group, and which of its pods have been tried. A group stays the same
        as long as nothing happens that could help it."""

    def run(self, cluster: Cluster, queue: Queue, now: float, at_most: int) -> list[Decision]:
        if self._search is None or self._search.cluster is not cluster:
            self._search = Search(cluster)
        # 1. Bind those whose victims are gone.
        decisions = self._follow_up(cluster, queue, now)
        # 2. Make room for those that were just refused.
        in_vain: dict[tuple[str, int, int, str | None, str], Decision] = {}
        for entry in self._just_parked(queue):
            pod = entry.record.pod
            alike = (
                entry.profile.name,
                entry.record.shape.id,
                entry.record.priority,
                pod.spec.preemption_policy,
                pod.status.nominated_node_name,
            )
            known = in_vain.get(alike)
            if isinstance(known, Wait):
                decisions.append(Wait(entry.record.key, known.message, known.plugins))
                continue
            answer = refusals(entry.profile, cluster, entry.record.shape)
            if not len(answer.rows) or len(answer.feasible):
                continue  # something happened since that helps it: it is to be placed, not to preempt
            others = [plugin for plugin in entry.profile.post_filter if plugin.name != PLUGIN]
            nominated = _ask_others(others, entry, answer)
            if nominated is not None:
                decisions.append(nominated)
                continue
            if len(others) == len(entry.profile.post_filter):
                continue
            found = self._search.find(answer, pod)
            wait = _wait(entry.record.key, answer, found)
            if isinstance(found, Found):
                decisions += self._carry_out(found, entry, cluster, queue)
                in_vain.clear()
            elif not others:
                in_vain[alike] = wait
            decisions.append(wait)
        return decisions

    def _just_parked(self, queue: Queue) -> list[Entry]:
        """The pods refused since the last cycle, in queue order."""
        new: list[Entry] = []
        tried: dict[int, tuple[Parked, set[int]]] = {}
        for parked in queue.parked():
            if not parked.profile.post_filter:
                continue
            before = self._tried.get(id(parked))
            known = before[1] if before is not None and before[0] is parked else set[int]()
            new += [entry for entry in parked.entries if entry.arrival not in known]
            tried[id(parked)] = (parked, {entry.arrival for entry in parked.entries})
        self._tried = tried
        return sorted(new)

    def _carry_out(self, found: Found, entry: Entry, cluster: Cluster, queue: Queue) -> list[Decision]:
        """Decide to evict the victims, and give the pod their room."""
        assert self._search is not None
        key, pod = entry.record.key, entry.record.pod
        reason = f"Preempted by pod {pod.metadata.uid or key} on node {found.node}"
        decisions: list[Decision] = []
        victims = []
        budgets = self._search.running.budgets
        for victim in found.victims:
            if victim.key in self._nominations:
                # It does not run yet: its room is taken back, and it waits again.
                cluster.release(victim.key)
                queue.put_back([self._nominations.pop(victim.key).entry])
                continue
            leaving = Leaving(victim.key, victim.pod.metadata.uid, found.row)
            victims.append(leaving)
            if not self._is_leaving(victim, leaving):
                self._leaving[victim.key] = leaving
                budgets.spend(budgets.set_of(victim.pod), victim.key)
                decisions.append(Evict(victim.key, found.node, key, reason))
        queue.remove(key)
        cluster.assume(key, found.row)
        self._nominations[key] = Nomination(entry, pod.metadata.uid, found.node, found.row, tuple(victims))
        return decisions

    def _is_leaving(self, victim: PodRecord, leaving: Leaving) -> bool:
        """Whether a pod is on its way out already, for another's sake or its own."""
        return victim.pod.metadata.deletion_timestamp is not None or self._leaving.get(victim.key) == leaving

    # What became of earlier decisions.

    def _follow_up(self, cluster: Cluster, queue: Queue, now: float) -> list[Decision]:
        decisions: list[Decision] = []
        self._leaving = {key: leaving for key, leaving in self._leaving.items() if not leaving.is_gone(cluster)}
        for key, nomination in list(self._nominations.items()):
            if not self._is_held(nomination, cluster, queue, now):
                del self._nominations[key]
            elif all(victim.is_gone(cluster) for victim in nomination.victims):
                del self._nominations[key]
                decisions += self._bind(nomination, cluster, queue)
        return decisions

    def _is_held(self, nomination: Nomination, cluster: Cluster, queue: Queue, now: float) -> bool:
        """Whether a nominated pod still has its place; it takes it again if the world showed it as waiting."""
        key = nomination.entry.record.key
        record = cluster.pods.records.get(key)
        if record is None or record.pod.metadata.uid != nomination.uid:
            return False
        if record.row != UNBOUND:
            # Seen anew, it may have been placed anew, there or elsewhere; no longer assumed, it was bound by the world.
            return record is nomination.entry.record and record.row == nomination.row and record.assumed
        if record.node_name:  # its node is gone while it held room there
            cluster.observe(PodSeen(record.pod))
            queue.add(cluster.pods.records[key], nomination.entry.profile, now)
            return False
        if cluster.nodes.row_of.get(nomination.node) != nomination.row or record.pod.spec.scheduling_gates:
            return False
        nomination.entry.record = record
        queue.remove(key)
        cluster.assume(key, nomination.row)
        return True

    def _bind(self, nomination: Nomination, cluster: Cluster, queue: Queue) -> list[Decision]:
        """Bind a pod whose victims are gone, if the filters agree; else it is to be tried anew."""
        entry, row = nomination.entry, nomination.row
        profile, record = entry.profile, entry.record
        cluster.release(record.key)
        answer = refusals(profile, cluster, record.shape)
        if not np.isin(row, answer.feasible):
            queue.put_back([entry])
            return []
        cluster.assume(record.key, row)
        if needs_steps(profile, record.shape) and take_steps(profile, cluster, record, row) is not None:
            cluster.release(record.key)
            queue.put_back([entry])
            return []
        return [Bind(record.key, nomination.node)]


def _wait(key: str, answer: Evaluation, found: Found | InVain) -> Wait:
    node = found.node if isinstance(found, Found) else ""
    return Wait(key, f"{answer.message()} {found.message}", answer.refusing_plugins(), node)


def _ask_others(plugins: Sequence[PostFilter], entry: Entry, answer: Evaluation) -> Wait | None:
    """Ask users' own plugins, before anybody is evicted, whether they make room somewhere."""
    if not plugins:
        return None
    verdicts = ((answer.cluster.nodes.name(row), answer.verdict(i)) for i, row in enumerate(answer.rows.tolist()))
    refused = {name: verdict.rejection for name, verdict in verdicts if verdict is not None}
    for plugin in plugins:
        node = plugin.post_filter(entry.record, answer.cluster, refused)
        if node is not None:
            return Wait(entry.record.key, answer.message(), answer.refusing_plugins(), node)
    return None
