"""What a Deployment says of itself: counts, and whether it is available and makes progress."""

from typing import TYPE_CHECKING

from mooring.kubeapi.controllers.conditions import drop_condition, find_condition, set_condition
from mooring.kubeapi.controllers.controller import Object
from mooring.kubeapi.controllers.rollouts import rolling_bounds
from mooring.model.api.meta import timestamp_seconds, timestamp_text

if TYPE_CHECKING:
    from mooring.kubeapi.controllers.deployments import Deployments

FOREVER = 2**31 - 1
"""A progressDeadlineSeconds of this says that there is none."""


class DeploymentStatus:
    """The status of one Deployment, made of its ReplicaSets."""

    def __init__(self, controller: "Deployments", deployment: Object, new: Object | None, old: list[Object]) -> None:
        self._controller, self._deployment, self._new, self._old = controller, deployment, new, old
        self._spec, self._now = deployment["spec"], controller.now

    def write(self) -> None:
        before = self._deployment.get("status") or {}
        status = self._counts(before)
        self._set_available(status)
        self._set_progress(before, status)
        self._set_failure(status)
        if status != before:
            self._deployment["status"] = status
            self._controller.api.update("deployments.apps", self._deployment, subresource="status")

    def _counts(self, before: Object) -> Object:
        sets = [*self._old, *([self._new] if self._new else [])]
        totals = {
            name: sum((one.get("status") or {}).get(name, 0) for one in sets)
            for name in ("replicas", "readyReplicas", "availableReplicas", "terminatingReplicas")
        }
        totals["updatedReplicas"] = (self._new.get("status") or {}).get("replicas", 0) if self._new else 0
        missing = max(0, sum(one["spec"].get("replicas", 0) for one in sets) - totals["availableReplicas"])
        totals["unavailableReplicas"] = missing
        status: Object = {name: count for name, count in totals.items() if count or name == "terminatingReplicas"}
        status["observedGeneration"] = self._deployment["metadata"].get("generation", 0)
        status["conditions"] = [dict(one) for one in before.get("conditions") or ()]
        if "collisionCount" in before:
            status["collisionCount"] = before["collisionCount"]
        return status

    def _condition(self, status: Object, type_: str, value: str, reason: str, message: str) -> None:
        """Deployments' conditions also say when anything about them was last written."""
        found = find_condition(status, type_)
        if found is not None and found["status"] == value and found.get("reason") == reason:
            return
        set_condition(
            status, type_, value, self._now, reason=reason, message=message, lastUpdateTime=timestamp_text(self._now)
        )

    def _set_available(self, status: Object) -> None:
        _, unavailable = rolling_bounds(self._spec)
        if status.get("availableReplicas", 0) >= self._spec["replicas"] - unavailable:
            self._condition(
                status, "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
            )
        else:
            message = "Deployment does not have minimum availability."
            self._condition(status, "Available", "False", "MinimumReplicasUnavailable", message)

    def _set_failure(self, status: Object) -> None:
        for one in ([self._new] if self._new else []) + self._old:
            failure = find_condition(one.get("status") or {}, "ReplicaFailure")
            if failure is not None:
                self._condition(status, "ReplicaFailure", "True", failure["reason"], failure["message"])
                return
        drop_condition(status, "ReplicaFailure")

    # Progress

    def _set_progress(self, before: Object, status: Object) -> None:
        deadline = self._spec.get("progressDeadlineSeconds")
        if deadline is None or deadline == FOREVER:
            drop_condition(status, "Progressing")
            return
        found = find_condition(status, "Progressing")
        if self._spec.get("paused"):
            self._condition(status, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
            return
        if found is not None and found.get("reason") == "DeploymentPaused":
            self._condition(status, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed")
            found = find_condition(status, "Progressing")
        was_complete = found is not None and found.get("reason") == "NewReplicaSetAvailable"
        is_complete = self._is_complete(status)
        if status.get("replicas", 0) == status.get("updatedReplicas", 0) and was_complete and is_complete:
            return
        name = (
            f'ReplicaSet "{self._new["metadata"]["name"]}"'
            if self._new
            else f'Deployment "{self._deployment["metadata"]["name"]}"'
        )
        if is_complete:
            self._condition(
                status, "Progressing", "True", "NewReplicaSetAvailable", f"{name} has successfully progressed."
            )
        elif self._has_progressed(before, status) or found is None:
            self._progressed(status, name)
        elif self._is_late(found, deadline):
            self._condition(
                status, "Progressing", "False", "ProgressDeadlineExceeded", f"{name} has timed out progressing."
            )

    def _is_complete(self, status: Object) -> bool:
        wanted = self._spec["replicas"]
        return all(
            status.get(name, 0) == wanted for name in ("updatedReplicas", "replicas", "availableReplicas")
        ) and bool(self._new)

    @staticmethod
    def _has_progressed(before: Object, status: Object) -> bool:
        def old_replicas(one: Object) -> int:
            return int(one.get("replicas", 0) - one.get("updatedReplicas", 0))

        return (
            status.get("updatedReplicas", 0) > before.get("updatedReplicas", 0)
            or old_replicas(status) < old_replicas(before)
            or status.get("readyReplicas", 0) > before.get("readyReplicas", 0)
            or status.get("availableReplicas", 0) > before.get("availableReplicas", 0)
        )

    def _progressed(self, status: Object, name: str) -> None:
        """Each step forward starts the deadline anew."""
        found = find_condition(status, "Progressing")
        is_new = found is None or found.get("reason") in ("NewReplicaSetAvailable", "DeploymentResumed")
        reason = "NewReplicaSetCreated" if found is None and self._new else "ReplicaSetUpdated"
        message = (
            f"Created new replica set {name.split(' ')[-1]}"
            if reason == "NewReplicaSetCreated"
            else f"{name} is progressing."
        )
        drop_condition(status, "Progressing")
        moment = timestamp_text(self._now)
        since = moment if found is None or is_new or found["status"] != "True" else found["lastTransitionTime"]
        status["conditions"].append(
            {
                "type": "Progressing",
                "status": "True",
                "lastUpdateTime": moment,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            }
        )
        self._look_again()

    def _look_again(self) -> None:
        deadline = self._spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline != FOREVER:
            metadata = self._deployment["metadata"]
            self._controller.enqueue((metadata["namespace"], metadata["name"]), after=deadline + 0.5)

    def _is_late(self, found: Object, deadline: int) -> bool:
        if found.get("reason") == "ProgressDeadlineExceeded":
            return True
        since = timestamp_seconds(found.get("lastUpdateTime")) or self._now
        if since + deadline < self._now:
            return True
        metadata = self._deployment["metadata"]
        self._controller.enqueue((metadata["namespace"], metadata["name"]), after=since + deadline - self._now + 1)
        return False
