"""Taint-based eviction: pods that do not tolerate a NoExecute taint of their node leave it, or after a while."""

import math

import msgspec

from mooring.kubeapi.controllers.conditions import set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.pods import PodView, delete_pod
from mooring.kubeapi.status import ApiError
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Toleration
from mooring.model.values.tolerations import tolerates


class TaintEviction(Controller):
    """Evicts pods by taints. The key is a pod's."""

    name = "taint-eviction-controller"

    def start(self) -> None:
        self._since: dict[str, float] = {}
        self._nodes = self.informers.of("nodes")
        self._nodes.on_change(self._node_changed)
        self.informers.pods.on_change(self._pod_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or (_taints(old) == _taints(new)):
            return
        for pod in self.informers.pods_on(new["metadata"]["name"]):
            self.enqueue(pod.key)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        if new is None:
            if old is not None:
                self._since.pop(old.metadata.uid, None)
            return
        is_new_here = old is None or old.spec.node_name != new.spec.node_name
        if new.spec.node_name and (is_new_here or old is None or old.spec.tolerations != new.spec.tolerations):
            node = self._nodes.get("", new.spec.node_name)
            if node is not None and _taints(node):
                self.enqueue(new.key)

    def sync(self, key: Key) -> None:
        pod = self.informers.pods.get(*key)
        node = self._nodes.get("", pod.spec.node_name) if pod is not None else None
        if pod is None or node is None or pod.is_leaving:
            return
        taints = [msgspec.convert(one, Taint) for one in _taints(node)]
        if not taints:
            self._since.pop(pod.metadata.uid, None)
            return
        seconds = self._tolerated_seconds(pod, taints)
        since = self._since.setdefault(pod.metadata.uid, self.now)
        if seconds == math.inf:
            self._since.pop(pod.metadata.uid, None)
        elif since + seconds <= self.now:
            self._evict(pod)
        else:
            self.enqueue(key, after=since + seconds - self.now)

    @staticmethod
    def _tolerated_seconds(pod: PodView, taints: list[Taint]) -> float:
        """How long a pod may stay: as long as every taint is tolerated, by the shortest toleration that is used."""
        tolerations = [msgspec.convert(one, Toleration) for one in pod.spec.tolerations]
        least = math.inf
        for taint in taints:
            used = [one for one in tolerations if tolerates(one, taint)]
            if not used:
                return 0.0
            seconds = [max(0, one.toleration_seconds) for one in used if one.toleration_seconds is not None]
            least = min([least, *seconds])
        return least

    def _evict(self, pod: PodView) -> None:
        found = self.api.find("pods", *pod.key)
        if found is None or found["metadata"]["uid"] != pod.metadata.uid:
            return
        status = found.setdefault("status", {})
        message = "Taint manager: deleting due to NoExecute taint"
        set_condition(status, "DisruptionTarget", "True", self.now, reason="DeletionByTaintManager", message=message)
        try:
            self.api.update("pods", found, subresource="status")
        except ApiError as error:
            if error.code not in (404, 409):
                raise
        namespace, name = pod.key
        self.context.recorder.event(
            found, "Normal", "TaintManagerEviction", f"Marking for deletion Pod {namespace}/{name}", self.name
        )
        delete_pod(self.api, pod)


def _taints(node: Object | None) -> list[Object]:
    taints = ((node or {}).get("spec") or {}).get("taints") or ()
    return [
        {key: one.get(key, "") for key in ("key", "value", "effect")} for one in taints if one["effect"] == "NoExecute"
    ]
