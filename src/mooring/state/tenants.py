"""What the world says of tenants' queues and of the workload that queues in them.

Nothing is decided here. Whoever decides on quota reads the objects, and learns from `touched` which workloads to see
again: those that came, changed or went, and those of whose pods that is so.
"""

from typing import Any

from mooring.model.api.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from mooring.model.api.pods import Pod
from mooring.model.decisions import Admit, Suspend
from mooring.model.events import Failed
from mooring.model.keys import PodKey, WorkloadKey
from mooring.model.queued.gathering import is_same_workload
from mooring.model.queued.workloads import QueuedWorkload
from mooring.model.what_matters import is_same_to_engine

MOST_TOUCHED = 1 << 16


class TenantTable:
    """Queues, cohorts, flavors and checks by name, workloads by key; only the cluster writes to it."""

    def __init__(self) -> None:
        self.version = 0
        """Rises with every change of queues, cohorts, flavors or checks that matters to somebody."""
        self.cluster_queues: dict[str, ClusterQueue] = {}
        self.cohorts: dict[str, Cohort] = {}
        self.local_queues: dict[str, LocalQueue] = {}
        """By namespace/name."""
        self.flavors: dict[str, ResourceFlavor] = {}
        self.checks: dict[str, AdmissionCheck] = {}
        self._by_kind: dict[str, dict[str, Any]] = {
            "ClusterQueue": self.cluster_queues,
            "Cohort": self.cohorts,
            "LocalQueue": self.local_queues,
            "ResourceFlavor": self.flavors,
            "AdmissionCheck": self.checks,
        }
        self._deleted_flavors: set[str] = set()
        """Flavors that the world has deleted and that stay until no ClusterQueue names them, as by Kueue's finalizer:
        whatever was admitted to them keeps their node labels and tolerations."""
        self.workloads: dict[WorkloadKey, QueuedWorkload] = {}
        self.workload_of: dict[PodKey, WorkloadKey] = {}
        """pod key -> workload key"""
        self._succeeded: dict[WorkloadKey, set[PodKey]] = {}
        self._refused: dict[WorkloadKey, Failed] = {}
        """By workload: what the world has refused to do of what was decided on it."""
        self._touched: list[WorkloadKey] = []
        self._start = 0

    # Queues and what belongs to them.

    def put(self, found: Any) -> bool:
        """Take in an object; False if it is of another kind than those kept here."""
        known = self._by_kind.get(found.kind)
        if known is None:
            return False
        metadata = found.metadata
        key = f"{metadata.namespace}/{metadata.name}" if found.kind == "LocalQueue" else metadata.name
        if key not in known or not is_same_to_engine(known[key], found):
            self.version += 1
        known[key] = found
        if known is self.flavors:
            self._deleted_flavors.discard(key)
        elif self._deleted_flavors and known is self.cluster_queues:
            self._release_flavors()
        return True

    def remove(self, kind: str, key: str) -> bool:
        """Drop an object; a flavor stays as long as a ClusterQueue names it."""
        known = self._by_kind.get(kind)
        if known is None:
            return False
        if known is self.flavors and key in known:
            self._deleted_flavors.add(key)
            self._release_flavors()
        elif known.pop(key, None) is not None:
            self.version += 1
            if self._deleted_flavors:
                self._release_flavors()
        return True

    def _release_flavors(self) -> None:
        """Drop the deleted flavors that no ClusterQueue names any more."""
        in_use = {
            flavor.name
            for queue in self.cluster_queues.values()
            for group in queue.spec.resource_groups or ()
            for flavor in group.flavors
        }
        for name in self._deleted_flavors - in_use:
            self._deleted_flavors.discard(name)
            del self.flavors[name]
            self.version += 1

    # Works and their pods.

    def put_workload(self, workload: QueuedWorkload) -> None:
        key = workload.workload.key
        known = self.workloads.get(key)
        if known is not None and is_same_workload(known, workload):
            self.workloads[key] = workload
            return
        self._leave_pods(key)
        self.workloads[key] = workload
        listed = {pod for pods in workload.pods.values() for pod in pods}
        self.workload_of.update(dict.fromkeys(listed, key))
        if workload.workload.status.reclaimable_pods is not None:
            self._succeeded.pop(key, None)  # the world has counted them
        elif key in self._succeeded:
            self._succeeded[key] &= listed
        self._touch(key)

    def remove_workload(self, key: WorkloadKey) -> None:
        if key not in self.workloads:
            return
        self._leave_pods(key)
        self.workloads.pop(key, None)
        self._succeeded.pop(key, None)
        self._touch(key)

    def _leave_pods(self, key: WorkloadKey) -> None:
        old = self.workloads.get(key)
        for pods in old.pods.values() if old is not None else ():
            for pod in pods:
                self.workload_of.pop(pod, None)

    def note_pod(self, pod: Pod) -> None:
        """A pod was seen, as it is now."""
        key = self.workload_of.get(pod.key) if self.workload_of else None
        if key is not None:
            if pod.status.phase == "Succeeded":
                self._succeeded.setdefault(key, set()).add(pod.key)
            self._touch(key)

    def touch_pod(self, pod_key: PodKey) -> None:
        """A pod is gone, or could not be evicted: its workload is to be looked at again."""
        key = self.workload_of.get(pod_key)
        if key is not None:
            self._touch(key)

    def note_refused(self, failure: Failed) -> None:
        """The world did not admit or suspend a workload as decided."""
        assert isinstance(failure.decision, Admit | Suspend)
        key = WorkloadKey(failure.decision.workload)
        if key in self.workloads:
            self._refused[key] = failure
            self._touch(key)

    def take_refused(self) -> list[Failed]:
        """What the world has refused since this was last asked."""
        refused = list(self._refused.values())
        self._refused.clear()
        return refused

    def finished_pods(self, key: WorkloadKey) -> dict[str, int]:
        """By pod set of a workload, how many of its pods are done, those included that the world has counted."""
        workload = self.workloads.get(key)
        if workload is None:
            return {}
        done = {found.name: found.count for found in workload.workload.status.reclaimable_pods or ()}
        succeeded = self._succeeded.get(key)
        for name, pods in workload.pods.items() if succeeded else ():
            count = sum(1 for pod in pods if pod in (succeeded or ()))
            if count:
                done[name] = done.get(name, 0) + count
        return done

    # The log.

    @property
    def position(self) -> int:
        """One past the last touch, counted from the beginning."""
        return self._start + len(self._touched)

    def touched(self, position: int) -> list[WorkloadKey] | None:
        """The workloads touched since a position, each once; None if that is no longer known: then look at all."""
        if position < self._start:
            return None
        return list(dict.fromkeys(self._touched[position - self._start :]))

    def _touch(self, key: WorkloadKey) -> None:
        if len(self._touched) >= MOST_TOUCHED:
            kept = MOST_TOUCHED // 2
            self._start += len(self._touched) - kept
            del self._touched[:-kept]
        self._touched.append(key)
