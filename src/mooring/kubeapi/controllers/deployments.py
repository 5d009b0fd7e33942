"""Deployments: a ReplicaSet for each revision of a template, and a rollout from one to the next."""

from typing import Any

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.deployment_status import DeploymentStatus
from mooring.kubeapi.controllers.informers import MetaView, controller_of
from mooring.kubeapi.controllers.new_replica_sets import HASH_LABEL, SETS, NewReplicaSet, revision_of, scale_marks
from mooring.kubeapi.controllers.ownership import Claims, selector_of
from mooring.kubeapi.controllers.rollouts import (
    DESIRED_REPLICAS,
    Replicas,
    proportional_scale,
    rolling_bounds,
    rolling_steps,
)
from mooring.kubeapi.controllers.template_hash import is_same_template
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_seconds


class Deployments(Controller):
    """Rolls Deployments out."""

    name = "deployment-controller"

    def start(self) -> None:
        self._deployments = self.follow("deployments.apps")
        self.sets = self.informers.of(SETS)
        self.follow_controlled(self.sets, "Deployment")
        self.sets.on_change(self._orphan_changed)

    def _orphan_changed(self, old: Object | None, new: Object | None) -> None:
        """A set of nobody concerns whoever selects it."""
        for found in (old, new):
            if found is None or controller_of(found) is not None:
                continue
            metadata = found["metadata"]
            for deployment in list(self._deployments.list(metadata["namespace"])):
                if selector_of(deployment["spec"].get("selector")).matches(metadata.get("labels") or {}):
                    self.enqueue((metadata["namespace"], deployment["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        found = self.api.find("deployments.apps", *key)
        if found is None:
            return
        self._adopt(found)
        if "deletionTimestamp" in found["metadata"]:
            self.write_status(found, self.new_set(found), self.old_sets(found))
            return
        rollout = Rollout(self, found)
        rollout.run()

    def _adopt(self, deployment: Object) -> None:
        selector = selector_of(deployment["spec"].get("selector"))
        if selector.is_empty:
            return
        candidates = list(self.sets.list(deployment["metadata"]["namespace"]))
        Claims(self.api, SETS, deployment, selector).settle(candidates, _meta)

    def sets_of(self, deployment: Object) -> list[Object]:
        """All ReplicaSets of a Deployment, oldest first."""
        found = self.sets.controlled_by(deployment["metadata"]["uid"])
        return sorted(found, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))

    def new_set(self, deployment: Object) -> Object | None:
        template = deployment["spec"]["template"]
        sets = self.sets_of(deployment)
        return next((one for one in sets if is_same_template(one["spec"]["template"], template, HASH_LABEL)), None)

    def old_sets(self, deployment: Object) -> list[Object]:
        new = self.new_set(deployment)
        return [
            one for one in self.sets_of(deployment) if new is None or one["metadata"]["uid"] != new["metadata"]["uid"]
        ]

    def write_status(self, deployment: Object, new: Object | None, old: list[Object]) -> None:
        DeploymentStatus(self, deployment, new, old).write()


class Rollout:
    """One look at one Deployment."""

    def __init__(self, controller: Deployments, deployment: Object) -> None:
        self.controller, self.api = controller, controller.api
        self.deployment, self.spec = deployment, deployment["spec"]
        self.namespace = deployment["metadata"]["namespace"]

    def run(self) -> None:
        if self.spec.get("paused"):
            self._scale_only()
        elif self._is_scaling():
            self._scale_only(creates=False)
        elif self.spec["strategy"]["type"] == "Recreate":
            self._recreate()
        else:
            self._roll()

    @property
    def old(self) -> list[Object]:
        return self.controller.old_sets(self.deployment)

    def _is_scaling(self) -> bool:
        """Whether somebody changed replicas since the sets were last scaled."""
        wanted = str(self.spec["replicas"])
        sets = [one for one in self.controller.sets_of(self.deployment) if one["spec"].get("replicas")]
        return any((one["metadata"].get("annotations") or {}).get(DESIRED_REPLICAS, wanted) != wanted for one in sets)

    def _scale_only(self, creates: bool = False) -> None:
        new = NewReplicaSet(self).get(creates=creates)
        self._scale_proportionally(new)
        if self.spec.get("paused"):
            self._clean_up()
        self._finish()

    def _recreate(self) -> None:
        new = NewReplicaSet(self).get(creates=False)
        active = [one for one in self.old if one["spec"].get("replicas")]
        if active:
            for one in active:
                self.scale(one, 0)
            self._finish()
            return
        pods = self.controller.informers.pods
        running = [pod for one in self.old for pod in pods.controlled_by(one["metadata"]["uid"]) if not pod.is_terminal]
        if running:
            self._finish()
            # The last of them leaves without a change of its ReplicaSet.
            self.controller.enqueue((self.namespace, self.deployment["metadata"]["name"]), after=0.2)
            return
        new = NewReplicaSet(self).get()
        if new is not None:
            self.scale(new, self.spec["replicas"])
        self._clean_up_when_complete()
        self._finish()

    def _roll(self) -> None:
        new = NewReplicaSet(self).get()
        if new is None:
            return
        steps = rolling_steps(
            self.spec, _replicas(new), [_replicas(one) for one in self.old if one["spec"].get("replicas")]
        )
        by_name = {one["metadata"]["name"]: one for one in (new, *self.old)}
        for name, count in steps:
            self.scale(by_name[name], count)
        self._clean_up_when_complete()
        self._finish()

    def _finish(self) -> None:
        fresh = self.api.find("deployments.apps", self.namespace, self.deployment["metadata"]["name"])
        if fresh is not None:
            self.controller.write_status(fresh, self.controller.new_set(fresh), self.controller.old_sets(fresh))

    # Scaling

    def scale(self, found: Object, replicas: int) -> None:
        fresh = self.api.find(SETS, self.namespace, found["metadata"]["name"])
        if fresh is None:
            return
        before = fresh["spec"].get("replicas", 0)
        annotations = {**(fresh["metadata"].get("annotations") or {}), **scale_marks(self.spec)}
        if before == replicas and annotations == fresh["metadata"].get("annotations"):
            return
        fresh["spec"]["replicas"] = replicas
        fresh["metadata"]["annotations"] = annotations
        self.api.update(SETS, fresh)
        if before != replicas:
            direction = "up" if replicas > before else "down"
            name = found["metadata"]["name"]
            self.event("ScalingReplicaSet", f"Scaled {direction} replica set {name} from {before} to {replicas}")

    def event(self, reason: str, message: str) -> None:
        self.controller.context.recorder.event(self.deployment, "Normal", reason, message, "deployment-controller")

    def _scale_proportionally(self, new: Object | None) -> None:
        wanted = int(self.spec["replicas"])
        sets = self.controller.sets_of(self.deployment)
        active = [one for one in sets if one["spec"].get("replicas")]
        if len(active) == 1 or (not active and sets):
            only = active[0] if active else (new or sets[-1])
            self.scale(only, wanted)
            return
        if (
            new is not None
            and (new.get("status") or {}).get("availableReplicas", 0) == new["spec"].get("replicas") == wanted
        ):
            for one in active:
                if one["metadata"]["uid"] != new["metadata"]["uid"]:
                    self.scale(one, 0)
            return
        if self.spec["strategy"]["type"] != "RollingUpdate":
            return
        surge, _ = rolling_bounds(self.spec)
        for one, count in proportional_scale(wanted, surge, active):
            self.scale(one, count)

    # The history

    def _is_complete(self) -> bool:
        fresh = self.api.find("deployments.apps", self.namespace, self.deployment["metadata"]["name"])
        status, wanted = (fresh or {}).get("status") or {}, self.spec["replicas"]
        counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
        is_seen = status.get("observedGeneration", 0) >= self.deployment["metadata"].get("generation", 0)
        return bool(is_seen and all(count == wanted for count in counts))

    def _clean_up_when_complete(self) -> None:
        if self._is_complete():
            self._clean_up()

    def _clean_up(self) -> None:
        limit = self.spec.get("revisionHistoryLimit")
        if limit is None:
            return
        cleanable = [one for one in self.old if _is_empty(one)]
        cleanable.sort(key=lambda one: (revision_of(one), one["metadata"]["creationTimestamp"]))
        for one in cleanable[: max(0, len(cleanable) - limit)]:
            try:
                self.api.delete(SETS, self.namespace, one["metadata"]["name"], uid=one["metadata"]["uid"])
            except ApiError as error:
                if error.code != 404:
                    raise


def _is_empty(found: Object) -> bool:
    status = found.get("status") or {}
    return (
        not status.get("replicas")
        and not found["spec"].get("replicas")
        and found["metadata"].get("generation", 0) <= status.get("observedGeneration", 0)
        and "deletionTimestamp" not in found["metadata"]
    )


def _replicas(found: Object) -> Replicas:
    status = found.get("status") or {}
    return Replicas(
        name=found["metadata"]["name"],
        wanted=found["spec"].get("replicas", 0),
        available=status.get("availableReplicas", 0),
        created=timestamp_seconds(found["metadata"]["creationTimestamp"]) or 0.0,
    )


def _meta(found: Any) -> MetaView:
    metadata = found["metadata"]
    return MetaView(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        labels=metadata.get("labels") or {},
        owner_references=metadata.get("ownerReferences") or [],
        deletion_timestamp=metadata.get("deletionTimestamp"),
    )
