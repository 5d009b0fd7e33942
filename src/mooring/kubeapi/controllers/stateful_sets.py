"""StatefulSets: pods with a number, a name and claims of their own, one after the other or side by side."""

import re
from collections.abc import Iterable

from mooring.kubeapi.controllers.claims_of_sets import SetClaims
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import Claims, selector_of
from mooring.kubeapi.controllers.pods import PodView, delete_pod, make_pod
from mooring.kubeapi.controllers.revisions import Revisions, template_of
from mooring.kubeapi.controllers.rollouts import scaled
from mooring.kubeapi.controllers.slices import SLICE, at_most
from mooring.kubeapi.status import ApiError

RESOURCE = "statefulsets.apps"
REVISION_LABEL = "controller-revision-hash"
POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
_NAME = re.compile(r"(.*)-(\d+)")


class StatefulSets(Controller):
    """Keeps the pods of StatefulSets."""

    name = "statefulset-controller"

    def start(self) -> None:
        self._sets = self.follow(RESOURCE)
        self.revisions = self.informers.of("controllerrevisions.apps")
        self.follow_controlled(self.informers.pods, "StatefulSet")
        self.informers.pods.on_change(self._orphan_changed)
        self.informers.of("persistentvolumeclaims").on_change(self._claim_changed)

    def _orphan_changed(self, old: PodView | None, new: PodView | None) -> None:
        """A pod of nobody concerns the set whose name it has."""
        for pod in (old, new):
            if pod is None or pod.metadata.controller is not None:
                continue
            if (match := _NAME.fullmatch(pod.metadata.name)) and self._sets.get(pod.metadata.namespace, match[1]):
                self.enqueue((pod.metadata.namespace, match[1]))

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        """A claim that is gone may be what a pod waits for."""
        if new is None and old is not None:
            for reference in old["metadata"].get("ownerReferences") or ():
                match = _NAME.fullmatch(reference["name"])
                if reference["kind"] == "Pod" and match:
                    self.enqueue((old["metadata"]["namespace"], match[1]))

    def sync(self, key: Key) -> None:
        found = self.api.find(RESOURCE, *key)
        if found is None:
            return
        selector = selector_of(found["spec"].get("selector"))
        candidates = [
            pod
            for pod in (
                *self.informers.pods.controlled_by(found["metadata"]["uid"]),
                *self.informers.pods.orphans(key[0]),
            )
            if (match := _NAME.fullmatch(pod.metadata.name)) and match[1] == key[1]
        ]
        claimed = Claims(self.api, "pods", found, selector).settle(candidates, lambda pod: pod.metadata)
        pods = [pod for pod in (self.informers.pods.get(*one.key) for one in claimed) if pod is not None]
        _Turn(self, found, pods).run()


def _ordinal(pod: PodView) -> int:
    match = _NAME.fullmatch(pod.metadata.name)
    return int(match[2]) if match else -1


class _Turn:
    """One look at one StatefulSet."""

    def __init__(self, controller: StatefulSets, found: Object, pods: list[PodView]) -> None:
        self.controller, self.api, self.now = controller, controller.api, controller.now
        self.set, self.spec = found, found["spec"]
        self.name, self.namespace = found["metadata"]["name"], found["metadata"]["namespace"]
        self.wanted = at_most(controller, found, int(self.spec.get("replicas", 1)))
        self.made = 0
        self.first = int((self.spec.get("ordinals") or {}).get("start", 0))
        self.min_ready = float(self.spec.get("minReadySeconds") or 0)
        self.is_ordered = self.spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
        self.strategy = (self.spec.get("updateStrategy") or {}).get("type", "RollingUpdate")
        self.rolling = (self.spec.get("updateStrategy") or {}).get("rollingUpdate")
        self.claims = SetClaims(self.api, found)
        self.history = Revisions(self.api, controller.revisions, found, "controller.kubernetes.io/hash")
        in_range = range(self.first, self.first + self.wanted)
        self.replicas = {_ordinal(pod): pod for pod in pods if _ordinal(pod) in in_range}
        self.condemned = sorted((pod for pod in pods if _ordinal(pod) not in in_range), key=_ordinal, reverse=True)

    def run(self) -> None:
        self.history.adopt_orphans((self.spec.get("selector") or {}).get("matchLabels") or {})
        status = self.set.get("status") or {}
        update, self.collisions = self.history.of_now(status.get("collisionCount") or 0)
        known = {one["metadata"]["name"]: one for one in self.history.all()}
        current = known.get(status.get("currentRevision", "")) or update
        self.current, self.update = current["metadata"]["name"], update["metadata"]["name"]
        self.templates = {self.current: template_of(current), self.update: template_of(update)}
        if "deletionTimestamp" not in self.set["metadata"]:
            self._work()
        self._write_status()
        keep = {
            self.current,
            self.update,
            *(pod.metadata.labels.get(REVISION_LABEL, "") for pod in self.replicas.values()),
        }
        self.history.truncate(keep, self.spec.get("revisionHistoryLimit", 10))

    def _work(self) -> None:
        if self.strategy == "Recreate" and not self._old_are_gone():
            return
        if not self._bring_up() or not self._bring_down():
            return
        if self.strategy == "RollingUpdate":
            self._roll()

    # Up

    def _bring_up(self) -> bool:
        """Make and mend replicas in order; False if something has to be waited for."""
        goes_on = True
        for ordinal in range(self.first, self.first + self.wanted):
            if not self._bring_up_one(ordinal):
                goes_on = False
                if self.is_ordered:
                    return False
            if self.made >= SLICE:
                self.controller.enqueue((self.namespace, self.name))
                return False
        return goes_on

    def _bring_up_one(self, ordinal: int) -> bool:
        pod = self.replicas.get(ordinal)
        if pod is None:
            return self._create(ordinal)
        if pod.is_terminal:
            if not pod.is_leaving:
                self._event(
                    "Warning",
                    "RecreatingTerminatedPod",
                    f"StatefulSet {self.namespace}/{self.name} is recreating terminated Pod {pod.metadata.name}",
                )
                delete_pod(self.api, pod)
            return False
        if pod.status.phase == "Pending" and not pod.is_leaving:
            self.claims.create(pod.metadata.name)
        if self.is_ordered and not self._is_available(pod):
            return False
        self.claims.follow_policy(pod.metadata.name, is_scaled_down=False)
        return True

    def _create(self, ordinal: int) -> bool:
        name = f"{self.name}-{ordinal}"
        if self.claims.are_stale(name):
            return False
        try:
            self.claims.create(name)
            self.api.create("pods", self._make_pod(name, ordinal), self.namespace)
        except ApiError as error:
            if error.code == 409:
                return False
            message = f"create Pod {name} in StatefulSet {self.name} failed error: {error}"
            self._event("Warning", "FailedCreate", message)
            raise
        self.made += 1
        self._event("Normal", "SuccessfulCreate", f"create Pod {name} in StatefulSet {self.name} successful")
        created = self.controller.informers.pods.get(self.namespace, name)
        if created is not None:
            self.replicas[ordinal] = created
        self.claims.follow_policy(name, is_scaled_down=False)
        return not self.is_ordered

    def _revision_for(self, ordinal: int) -> str:
        """A pod that is made anew below the partition, or before the rollout came to it, is of the current revision."""
        if self.rolling is not None:
            is_old = ordinal < self.first + int(self.rolling.get("partition") or 0)
        else:
            before = (self.set.get("status") or {}).get("currentReplicas", 0)
            is_old = self.strategy == "RollingUpdate" and ordinal < self.first + before
        return str(self.current if is_old else self.update)

    def _make_pod(self, name: str, ordinal: int) -> Object:
        revision = self._revision_for(ordinal)
        pod = make_pod(self.templates[revision], self.set, self.namespace, name=name)
        labels = {REVISION_LABEL: revision, POD_NAME: name, POD_INDEX: str(ordinal)}
        pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **labels}
        spec = pod["spec"]
        spec["hostname"] = name
        if self.spec.get("serviceName"):
            spec["subdomain"] = self.spec["serviceName"]
        claims = self.claims.names(name)
        if claims:
            kept = [one for one in spec.get("volumes") or () if one["name"] not in claims]
            spec["volumes"] = [
                *({"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()),
                *kept,
            ]
        return pod

    def _is_available(self, pod: PodView) -> bool:
        return pod.status.phase == "Running" and not pod.is_leaving and pod.is_available(self.min_ready, self.now)

    # Down

    def _bring_down(self) -> bool:
        """Remove replicas beyond those wanted, the last first."""
        for pod in self.condemned:
            self.claims.follow_policy(pod.metadata.name, is_scaled_down=True)
        everyone = [*self.replicas.values(), *reversed(self.condemned)]
        unhealthy = next((pod for pod in everyone if not self._is_available(pod)), None)
        for pod in self.condemned:
            if pod.is_leaving:
                if self.is_ordered:
                    return False
                continue
            if self.is_ordered and not self._is_available(pod) and pod is not unhealthy:
                return False
            self._delete(pod)
            if self.is_ordered:
                return False
        return not self.condemned

    def _delete(self, pod: PodView) -> None:
        delete_pod(self.api, pod)
        self._event(
            "Normal", "SuccessfulDelete", f"delete Pod {pod.metadata.name} in StatefulSet {self.name} successful"
        )

    # From revision to revision

    def _is_old(self, pod: PodView) -> bool:
        return bool(pod.metadata.labels.get(REVISION_LABEL) != self.update)

    def _roll(self) -> None:
        """Remove old replicas from the last down to the partition, as many at a time as may be missing."""
        partition = int((self.rolling or {}).get("partition") or 0)
        most = (self.rolling or {}).get("maxUnavailable")
        allowed = max(1, scaled(most, self.wanted, round_up=False)) if most is not None else 1
        missing = sum(not self._is_available(pod) for pod in self.replicas.values())
        for ordinal in sorted(self.replicas, reverse=True):
            pod = self.replicas[ordinal]
            if ordinal < self.first + partition or (not self._is_old(pod) and self._is_available(pod)):
                continue
            if self._is_old(pod) and not pod.is_leaving:
                is_counted = not self._is_available(pod)
                if missing - is_counted >= allowed:
                    return
                self._delete(pod)
                missing += not is_counted
            elif missing >= allowed:
                return

    def _old_are_gone(self) -> bool:
        old = [pod for pod in (*self.replicas.values(), *self.condemned) if self._is_old(pod)]
        for pod in old:
            if not pod.is_leaving:
                self._delete(pod)
        return not old

    # What is written

    def _event(self, type_: str, reason: str, message: str) -> None:
        self.controller.context.recorder.event(self.set, type_, reason, message, self.controller.name)

    def _write_status(self) -> None:
        found = self.api.find(RESOURCE, self.namespace, self.name)
        if found is None:
            return
        before = found.get("status") or {}
        pods = [pod for pod in self._current_pods() if not pod.is_terminal]
        status = {key: value for key, value in before.items() if key == "conditions"}
        kept = [pod for pod in pods if not pod.is_leaving]
        status |= {
            "observedGeneration": found["metadata"].get("generation", 0),
            "replicas": len(pods),
            "availableReplicas": sum(self._is_available(pod) for pod in pods),
            "currentRevision": self.current,
            "updateRevision": self.update,
            "collisionCount": self.collisions,
        }
        counts = {
            "readyReplicas": sum(pod.is_ready and pod.status.phase == "Running" for pod in pods),
            "currentReplicas": sum(pod.metadata.labels.get(REVISION_LABEL) == self.current for pod in kept),
            "updatedReplicas": sum(pod.metadata.labels.get(REVISION_LABEL) == self.update for pod in kept),
        }
        if counts["updatedReplicas"] == len(pods) == counts["readyReplicas"] == self.wanted and self._is_rolled_out():
            status["currentRevision"] = self.update
            counts["currentReplicas"] = counts["updatedReplicas"]
        status |= {name: count for name, count in counts.items() if count}
        if status != before:
            found["status"] = status
            self.api.update(RESOURCE, found, subresource="status")
        self._look_again(pods)

    def _is_rolled_out(self) -> bool:
        return self.strategy in ("RollingUpdate", "Recreate")

    def _current_pods(self) -> Iterable[PodView]:
        return self.controller.informers.pods.controlled_by(self.set["metadata"]["uid"])

    def _look_again(self, pods: list[PodView]) -> None:
        waits = [pod.ready_since + self.min_ready - self.now for pod in pods if pod.ready_since is not None]
        coming = [wait for wait in waits if wait > 0] if self.min_ready else []
        if coming:
            self.controller.enqueue((self.namespace, self.name), after=min(coming) + 0.01)
