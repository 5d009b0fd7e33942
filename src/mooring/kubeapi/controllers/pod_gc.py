"""Pods that nobody would remove otherwise: of nodes that are gone, or gone for good, and too many that have ended."""

from mooring.kubeapi.controllers.conditions import set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.pods import PodView
from mooring.kubeapi.controllers.slices import SLICE
from mooring.kubeapi.status import ApiError

PERIOD_SECONDS = 20.0
QUARANTINE_SECONDS = 40.0
MOST_TERMINATED = 12_500
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class PodGC(Controller):
    """Looks at all pods now and then; the key is always the same."""

    name = "pod-garbage-collector-controller"
    _all: Key = ("", "all pods")

    def start(self) -> None:
        self._missing: dict[str, float] = {}
        self._left = SLICE
        """Pods that this look may still remove."""
        self._nodes = self.informers.of("nodes")
        self.enqueue(self._all, after=PERIOD_SECONDS)

    def sync(self, key: Key) -> None:
        self.enqueue(key, after=PERIOD_SECONDS)
        self._left = SLICE
        orphaned: list[PodView] = []
        terminated: list[PodView] = []
        for pod in self.informers.pods.list():
            node = self._nodes.get("", pod.spec.node_name) if pod.spec.node_name else None
            if pod.spec.node_name and node is None:
                orphaned.append(pod)
            elif pod.is_leaving and _waits_for_others(pod):
                continue
            elif pod.is_leaving and (not pod.spec.node_name or _is_out_of_service(node)):
                self._delete(pod)
            elif pod.is_terminal and not pod.is_leaving:
                terminated.append(pod)
        self._collect_orphans(orphaned)
        terminated.sort(key=lambda pod: pod.metadata.creation_timestamp or "")
        for pod in terminated[: max(0, len(terminated) - MOST_TERMINATED)]:
            self._delete(pod)
        if self._left <= 0:
            self.enqueue(key, after=0.1)

    def _collect_orphans(self, orphaned: list[PodView]) -> None:
        """A node may come back: its pods are given a while."""
        names = {pod.spec.node_name for pod in orphaned}
        self._missing = {name: self._missing.get(name, self.now) for name in names}
        for pod in orphaned:
            if self._left > 0 and self.now - self._missing[pod.spec.node_name] >= QUARANTINE_SECONDS:
                self._fail(pod)
                self._delete(pod)

    def _fail(self, pod: PodView) -> None:
        found = self.api.find("pods", *pod.key)
        if found is None or pod.is_terminal:
            return
        status = found.setdefault("status", {})
        status["phase"] = "Failed"
        message = "PodGC: node no longer exists"
        set_condition(status, "DisruptionTarget", "True", self.now, reason="DeletionByPodGC", message=message)
        self.api.update("pods", found, subresource="status")

    def _delete(self, pod: PodView) -> None:
        self._left -= 1
        if self._left < 0:
            return
        try:
            self.api.delete("pods", *pod.key, uid=pod.metadata.uid, grace_period=0)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _waits_for_others(pod: PodView) -> bool:
    """Whether a pod that is leaving waits for its finalizers only."""
    return bool(pod.metadata.finalizers) and not pod.metadata.deletion_grace_period_seconds


def _is_out_of_service(node: Object | None) -> bool:
    return any(one["key"] == OUT_OF_SERVICE for one in ((node or {}).get("spec") or {}).get("taints") or ())
