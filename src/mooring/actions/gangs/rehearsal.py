"""Place pods for a trial, with the real plugins, gangs whole and near one another, and without preemption.

This is how admission knows placement: a workload that has quota, and whose gang no rack would hold, is not started in
vain. It is how any action finds out where pods would go: on all rows or on some only, and on nodes that are on offer,
in a state that it has changed in a trial of its own, such as by taking pods off their rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from mooring.actions.gangs.placing import GangPlacer
from mooring.engine.evaluate import evaluate
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.model.node_offer import NodeOffer
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodRecord


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """Where pods would go, or why they would not."""

    rows: Mapping[PodKey, int] = field(default_factory=dict)
    offers: Mapping[PodKey, int] = field(default_factory=dict)
    """Of the pods that would go to nodes on offer: which of these, by index."""
    problem: str = ""


class Rehearsal:
    """Rehearses with the profiles that there are."""

    def __init__(self, profiles: Mapping[str, Profile], placer: GangPlacer) -> None:
        self._profiles = profiles
        self._placer = placer

    def __call__(self, cluster: Cluster, pods: Sequence[Pod]) -> str | None:
        """See `mooring.actions.admit.lifecycle.gatekeeper.Rehearse`."""
        return self.place(cluster, pods).problem or None

    def place(
        self,
        cluster: Cluster,
        pods: Sequence[Pod],
        rows: Iterable[int] | None = None,
        offers: Sequence[NodeOffer] = (),
    ) -> Rehearsed:
        """Let all of these pods that wait have a place, or none; with `rows`, on these only, and on nodes on offer.

        Rows of nodes that are being launched count if they are among `rows`. Pods that have places keep them. The
        caller undoes it all by a trial of its own, if it only asks.
        """
        with cluster.what_if() as trial:
            before = cluster.offered_rows
            opened = [row for offer, same in groupby(offers) for row in cluster.open_rows(offer, len(list(same)))]
            if rows is not None:
                cluster.offer_only((*rows, *map(int, opened)))
            entries = [entry for pod in pods if (entry := self._entry(cluster, pod)) is not None]
            for members in _together(cluster, entries):
                problem = self._place(cluster, members)
                if problem is not None:
                    return Rehearsed(problem=problem)
            if rows is not None:
                cluster.offer_only(before)
            trial.keep()
        found = {entry.record.key: entry.record.row for entry in entries}
        index = {int(row): at for at, row in enumerate(opened)}
        return Rehearsed(found, {key: index[row] for key, row in found.items() if row in index})

    def _entry(self, cluster: Cluster, pod: Pod) -> Entry | None:
        """A pod that waits, as it would be once admitted; None for one that is not ours, not there or in its place."""
        profile = self._profiles.get(pod.spec.scheduler_name)
        record = cluster.pods.records.get(pod.key)
        if profile is None or record is None or record.row != UNBOUND or record.node_name:
            return None
        cluster.replace_pod(pod)
        return Entry((), record.slot, record, profile)

    def _place(self, cluster: Cluster, members: list[Entry]) -> str | None:
        record = cluster.gangs.of(members[0].record.key)
        if record is not None and record.gang is not None:
            root = cluster.gangs.root_of(record)
            gang = GangEntry(root, 0, members[0].profile, {entry.record.key: entry for entry in members})
            problem = self._placer.try_together(cluster, gang, members)
            return None if problem is None else f"gang {gang.name} cannot be placed: {problem}"
        placed = self._placer.batches.rehearse(cluster, members)
        if placed == len(members):
            return None
        first = members[placed]
        problem = evaluate(first.profile, cluster, first.record.shape).message()
        return f"pod {first.record.key} cannot be placed: {problem}"


def _together(cluster: Cluster, entries: Sequence[Entry]) -> list[list[Entry]]:
    """Members of one gang, and other pods of one shape, as they are placed."""
    found: dict[tuple[str, int], list[Entry]] = {}
    for entry in entries:
        gang = _root_of(cluster, entry.record)
        found.setdefault((gang, -1 if gang else entry.record.shape.id), []).append(entry)
    return list(found.values())


def _root_of(cluster: Cluster, record: PodRecord) -> str:
    gang = cluster.gangs.of(record.key)
    return "" if gang is None or gang.gang is None else cluster.gangs.root_of(gang).key
