"""ReplicaSets and ReplicationControllers: as many pods of a template as asked for."""

from collections import Counter
from typing import Any

from mooring.kubeapi.controllers.conditions import drop_condition, find_condition, set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.informers import controller_of
from mooring.kubeapi.controllers.ownership import Claims, selector_of
from mooring.kubeapi.controllers.pods import PodView, delete_pod, make_pod, rank_for_deletion
from mooring.kubeapi.controllers.slices import SLICE, at_most
from mooring.kubeapi.status import ApiError
from mooring.model.values.selectors import Selector, compile_equality


class ReplicaSets(Controller):
    """Keeps the pods of ReplicaSets."""

    name = "replicaset-controller"
    resource = "replicasets.apps"
    kind = "ReplicaSet"

    def start(self) -> None:
        self._sets = self.follow(self.resource)
        self.follow_controlled(self.informers.pods, self.kind)
        self.informers.pods.on_change(self._orphan_changed)

    def selector(self, owner: Object) -> Selector:
        return selector_of(owner["spec"].get("selector"))

    def _orphan_changed(self, old: PodView | None, new: PodView | None) -> None:
        """A pod of nobody concerns whoever selects it."""
        if (
            old is not None
            and new is not None
            and (old.metadata.controller, old.metadata.labels) == (None, new.metadata.labels)
        ):
            return  # who could adopt it has seen it
        for pod in (old, new):
            if pod is None or pod.metadata.controller is not None or pod.is_leaving or not pod.metadata.labels:
                continue
            for owner in list(self._sets.list(pod.metadata.namespace)):
                if self.selector(owner).matches(pod.metadata.labels):
                    self.enqueue((pod.metadata.namespace, owner["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        owner = self._sets.get(*key)
        if owner is None:
            return
        selector = self.selector(owner)
        candidates = [
            pod
            for pod in (*self.informers.pods.controlled_by(owner["metadata"]["uid"]), *self._orphans(key[0], selector))
            if not pod.is_terminal
        ]
        claimed = Claims(self.api, "pods", owner, selector).settle(candidates, lambda pod: pod.metadata)
        pods = [pod for pod in (self.informers.pods.get(*found.key) for found in claimed) if pod is not None]
        failure = None
        if "deletionTimestamp" not in owner["metadata"]:
            failure = self._scale(owner, [pod for pod in pods if pod.is_active])
        self._write_status(key, failure)

    def _orphans(self, namespace: str, selector: Selector) -> list[PodView]:
        if selector.is_nothing or selector.is_empty:
            return []
        return [pod for pod in self.informers.pods.orphans(namespace) if selector.matches(pod.metadata.labels)]

    def _scale(self, owner: Object, active: list[PodView]) -> tuple[str, str] | None:
        """Make or remove pods; a failure to do so is the condition's reason and message."""
        lacking = at_most(self, owner, owner["spec"].get("replicas", 1)) - len(active)
        for _ in range(min(lacking, SLICE)):
            try:
                created = self.api.create(
                    "pods", make_pod(owner["spec"]["template"], owner, owner["metadata"]["namespace"])
                )
            except ApiError as error:
                self._event(owner, "Warning", "FailedCreate", f"Error creating: {error}")
                self.try_again((owner["metadata"]["namespace"], owner["metadata"]["name"]))
                return "FailedCreate", str(error)
            self._event(owner, "Normal", "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")
        if lacking < 0:
            crowd = Counter(pod.spec.node_name for pod in self._related(owner))
            for pod in rank_for_deletion(active, crowd)[: min(-lacking, SLICE)]:
                delete_pod(self.api, pod)
                self._event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
        if abs(lacking) > SLICE:
            self.enqueue((owner["metadata"]["namespace"], owner["metadata"]["name"]))
        return None

    def _related(self, owner: Object) -> list[PodView]:
        """Active pods of this set and of those with the same controller: a crowded node gives first."""
        above = controller_of(owner)
        sets = self._sets.controlled_by(above["uid"]) if above else [owner]
        found = (pod for one in sets for pod in self.informers.pods.controlled_by(one["metadata"]["uid"]))
        return [pod for pod in found if pod.is_active]

    def _event(self, owner: Object, type_: str, reason: str, message: str) -> None:
        self.context.recorder.event(owner, type_, reason, message, self.name)

    def _write_status(self, key: Key, failure: tuple[str, str] | None) -> None:
        owner = self.api.find(self.resource, *key)
        if owner is None:
            return
        pods = list(self.informers.pods.controlled_by(owner["metadata"]["uid"]))
        status = dict(owner.get("status") or {})
        self._count(owner, status, pods)
        if failure is not None:
            if find_condition(status, "ReplicaFailure") is None:
                set_condition(status, "ReplicaFailure", "True", self.now, reason=failure[0], message=failure[1])
        else:
            drop_condition(status, "ReplicaFailure")
            if not status.get("conditions"):
                status.pop("conditions", None)
        if status != owner.get("status"):
            owner["status"] = status
            self.api.update(self.resource, owner, subresource="status")

    def _count(self, owner: Object, status: dict[str, Any], pods: list[PodView]) -> None:
        active = [pod for pod in pods if pod.is_active]
        labels = compile_equality((owner["spec"]["template"].get("metadata") or {}).get("labels") or {})
        min_ready = owner["spec"].get("minReadySeconds") or 0
        counts = {
            "fullyLabeledReplicas": sum(labels.matches(pod.metadata.labels) for pod in active),
            "readyReplicas": sum(pod.is_ready for pod in active),
            "availableReplicas": sum(pod.is_available(min_ready, self.now) for pod in active),
        }
        if self.kind == "ReplicaSet":
            counts["terminatingReplicas"] = sum(pod.is_leaving and not pod.is_terminal for pod in pods)
        status["replicas"] = len(active)
        for name, count in counts.items():
            if count or name == "terminatingReplicas":
                status[name] = count
            else:
                status.pop(name, None)
        status["observedGeneration"] = owner["metadata"].get("generation", 0)
        self._look_again(owner, active, min_ready)

    def _look_again(self, owner: Object, active: list[PodView], min_ready: float) -> None:
        """Come back when the next pod has been ready for long enough."""
        waits = (
            [pod.ready_since + min_ready - self.now for pod in active if pod.ready_since is not None]
            if min_ready
            else []
        )
        coming = [wait for wait in waits if wait > 0]
        if coming:
            self.enqueue((owner["metadata"]["namespace"], owner["metadata"]["name"]), after=min(coming) + 0.01)


class ReplicationControllers(ReplicaSets):
    """The older kind: its selector is a plain map."""

    name = "replication-controller"
    resource = "replicationcontrollers"
    kind = "ReplicationController"

    def selector(self, owner: Object) -> Selector:
        return compile_equality(owner["spec"].get("selector") or {})
