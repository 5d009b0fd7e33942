"""Whether pods could be placed together as things stand, gangs whole and near one another.

This is how admission knows placement: a workload that has quota, and whose gang no rack would hold, is not started in
vain.
"""

from collections.abc import Mapping, Sequence

from mooring.actions.gangs.placing import GangPlacer
from mooring.engine.evaluate import evaluate
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.model.api.pods import Pod
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodRecord


class GangRehearsal:
    """See `mooring.actions.admit.lifecycle.gatekeeper.Rehearse`."""

    def __init__(self, profiles: Mapping[str, Profile], placer: GangPlacer) -> None:
        self._profiles = profiles
        self._placer = placer

    def __call__(self, cluster: Cluster, pods: Sequence[Pod]) -> str | None:
        with cluster.what_if() as trial:
            entries = [entry for pod in pods if (entry := self._entry(cluster, pod)) is not None]
            for members in _together(cluster, entries):
                problem = self._place(cluster, members)
                if problem is not None:
                    return problem
            trial.keep()
        return None

    def _entry(self, cluster: Cluster, pod: Pod) -> Entry | None:
        """A pod that waits, as it would be once admitted; None for one that is not ours, not there or in its place."""
        profile = self._profiles.get(pod.spec.scheduler_name)
        record = cluster.pods.records.get(pod.key)
        if profile is None or record is None or record.row != UNBOUND or record.node_name:
            return None
        cluster.see_waiting_as(pod)
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
