"""The Workloads that manifests hold, found for the jobs and pods that they stand for."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from mooring.model.api.kueue_labels import PREBUILT_WORKLOAD
from mooring.model.api.kueue_workload import FINISHED, Workload
from mooring.model.api.meta import ObjectMeta, OwnerReference, timestamp_seconds
from mooring.model.jobs.expansion import OwnerKey
from mooring.model.jobs.pod_sets import api_group


class GivenWorkloads:
    """Workloads by name and by owner, each used once."""

    def __init__(self, workloads: Sequence[Workload]) -> None:
        self._by_name = {(found.metadata.namespace, found.metadata.name): found for found in workloads}
        self._by_owner: defaultdict[OwnerKey, list[Workload]] = defaultdict(list)
        self._used: set[str] = set()
        for workload in workloads:
            for owner in workload.metadata.owner_references or ():
                self._by_owner[owner.kind, workload.metadata.namespace, owner.name].append(workload)

    def named(self, namespace: str, name: str) -> Workload | None:
        found = self._by_name.get((namespace, name))
        if found is not None:
            self._used.add(found.key)
        return found

    def find(self, metadata: ObjectMeta, reference: OwnerReference, name: str, prefix: str) -> Workload | None:
        """The one that the owner names, the one with the right name, or of its own the one that counts.

        An owner that queues in parts has a Workload for each, told apart by how their names begin.
        """
        prebuilt = (metadata.labels or {}).get(PREBUILT_WORKLOAD)
        found = self.named(metadata.namespace, prebuilt or name)
        if found is not None:
            return found
        owned = [
            workload
            for workload in self._by_owner.get((reference.kind, metadata.namespace, reference.name), ())
            if workload.key not in self._used and _names(workload, reference)
        ]
        own = [workload for workload in owned if workload.metadata.name.startswith(prefix)]
        if not own and len(owned) == 1:
            own = owned
        if not own:
            return None
        # What earlier tries left behind is not asked for: what holds quota counts, then what is newest.
        self._used.update(workload.key for workload in own)
        return max(own, key=_standing)

    def left(self) -> Iterator[Workload]:
        """Those that nobody here owns and that are not over: they hold quota, or wait for it, all the same."""
        for workload in self._by_name.values():
            if workload.key not in self._used and workload.condition(FINISHED) is None:
                yield workload


def _standing(workload: Workload) -> tuple[bool, bool, float]:
    created = timestamp_seconds(workload.metadata.creation_timestamp) or 0.0
    return workload.condition(FINISHED) is None, workload.status.admission is not None, created


def _names(workload: Workload, reference: OwnerReference) -> bool:
    """Whether a Workload names this very object: not another API's kind, nor one that had the name before."""
    return any(
        (owner.kind, owner.name) == (reference.kind, reference.name)
        and (not owner.api_version or api_group(owner.api_version) == api_group(reference.api_version))
        and (not owner.uid or not reference.uid or owner.uid == reference.uid)
        for owner in workload.metadata.owner_references or ()
    )
