"""The ReplicaSet of a Deployment's template as it is now: made, or taken up again, with its revision."""

from typing import TYPE_CHECKING

from mooring.kubeapi.controllers.controller import Object
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.controllers.rollouts import DESIRED_REPLICAS, MAX_REPLICAS, rolling_bounds
from mooring.kubeapi.controllers.template_hash import template_hash
from mooring.kubeapi.status import ApiError

if TYPE_CHECKING:
    from mooring.kubeapi.controllers.deployments import Rollout

SETS = "replicasets.apps"
HASH_LABEL = "pod-template-hash"
REVISION, REVISION_HISTORY = "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"
_NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
)


class NewReplicaSet:
    """The newest set of one Deployment."""

    def __init__(self, rollout: "Rollout") -> None:
        self.rollout = rollout

    def get(self, creates: bool = True) -> Object | None:
        """The set of the template as it is now, with its revision, annotations and place in the history."""
        found = self.rollout.controller.new_set(self.rollout.deployment)
        revision = str(max((revision_of(one) for one in self.rollout.old), default=0) + 1)
        if found is not None:
            self._refresh(found, revision)
            self._note_revision(found)
            return self.rollout.controller.sets.get(self.rollout.namespace, found["metadata"]["name"])
        if not creates:
            return None
        created = self._create_set(revision)
        if created is not None:
            self._note_revision(created)
        return created

    def _create_set(self, revision: str) -> Object | None:
        collisions = (self.rollout.deployment.get("status") or {}).get("collisionCount") or 0
        template = self.rollout.spec["template"]
        mark = template_hash(template, collisions)
        labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: mark}
        selector = dict(self.rollout.spec["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: mark}
        name = f"{self.rollout.deployment['metadata']['name']}-{mark}"
        replicas = self._first_replicas()
        made = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": self.rollout.namespace,
                "labels": labels,
                "annotations": {**self._annotations(), REVISION: revision, **scale_marks(self.rollout.spec)},
                "ownerReferences": [owner_reference(self.rollout.deployment)],
            },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": self.rollout.spec.get("minReadySeconds") or 0,
                "selector": selector,
                "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
            },
        }
        try:
            created = self.rollout.api.create(SETS, made, self.rollout.namespace)
        except ApiError as error:
            if error.code == 409:
                self._collide(name)
                return None
            self._say_progress_failed(error)
            raise
        if replicas:
            self.rollout.event("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {replicas}")
        return created

    def _collide(self, name: str) -> None:
        """Another set has the name: make it of one more collision next time."""
        taken = self.rollout.controller.sets.get(self.rollout.namespace, name)
        mine = taken is not None and any(
            one["uid"] == self.rollout.deployment["metadata"]["uid"]
            for one in taken["metadata"].get("ownerReferences") or ()
        )
        if not mine:
            status = self.rollout.deployment.setdefault("status", {})
            status["collisionCount"] = (status.get("collisionCount") or 0) + 1
            self.rollout.api.update("deployments.apps", self.rollout.deployment, subresource="status")
        self.rollout.controller.enqueue((self.rollout.namespace, self.rollout.deployment["metadata"]["name"]))

    def _say_progress_failed(self, error: ApiError) -> None:
        self.rollout.controller.context.recorder.event(
            self.rollout.deployment,
            "Warning",
            "ReplicaSetCreateError",
            f"Failed to create new replica set: {error}",
            "deployment-controller",
        )

    def _first_replicas(self) -> int:
        wanted = int(self.rollout.spec["replicas"])
        if self.rollout.spec["strategy"]["type"] == "Recreate":
            return wanted
        surge, _ = rolling_bounds(self.rollout.spec)
        present = sum(int(one["spec"].get("replicas", 0)) for one in self.rollout.old)
        return max(0, min(wanted, wanted + surge - present))

    def _annotations(self) -> dict[str, str]:
        given = self.rollout.deployment["metadata"].get("annotations") or {}
        return {key: value for key, value in given.items() if key not in _NOT_COPIED}

    def _refresh(self, found: Object, revision: str) -> None:
        """Give the set of an old template that is wanted again the next revision, and new annotations."""
        annotations = dict(found["metadata"].get("annotations") or {})
        before = annotations.get(REVISION, "")
        if not before or int(before) < int(revision):
            if before:
                past = [one for one in annotations.get(REVISION_HISTORY, "").split(",") if one]
                annotations[REVISION_HISTORY] = ",".join([*past, before])
            annotations[REVISION] = revision
        annotations |= self._annotations()
        min_ready = self.rollout.spec.get("minReadySeconds") or 0
        if (
            annotations == (found["metadata"].get("annotations") or {})
            and (found["spec"].get("minReadySeconds") or 0) == min_ready
        ):
            return
        fresh = self.rollout.api.get(SETS, self.rollout.namespace, found["metadata"]["name"])
        fresh["metadata"]["annotations"] = annotations
        fresh["spec"]["minReadySeconds"] = min_ready
        self.rollout.api.update(SETS, fresh)

    def _note_revision(self, found: Object) -> None:
        fresh_set = self.rollout.controller.sets.get(self.rollout.namespace, found["metadata"]["name"]) or found
        revision = (fresh_set["metadata"].get("annotations") or {}).get(REVISION, "")
        annotations = self.rollout.deployment["metadata"].get("annotations") or {}
        if annotations.get(REVISION) != revision:
            fresh = self.rollout.api.get(
                "deployments.apps", self.rollout.namespace, self.rollout.deployment["metadata"]["name"]
            )
            fresh["metadata"]["annotations"] = {**(fresh["metadata"].get("annotations") or {}), REVISION: revision}
            self.rollout.deployment = self.rollout.api.update("deployments.apps", fresh, subresource="status")


def scale_marks(spec: Object) -> dict[str, str]:
    """What a set is to remember of its Deployment's size."""
    surge, _ = rolling_bounds(spec)
    wanted = int(spec["replicas"])
    return {DESIRED_REPLICAS: str(wanted), MAX_REPLICAS: str(wanted + surge)}


def revision_of(found: Object) -> int:
    text = (found["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0
