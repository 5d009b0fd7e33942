"""VerticalPodAutoscalers: new pods are given what is recommended for them, as the autoscaler's webhook does it."""

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, Request
from mooring.kubeapi.status import Object
from mooring.model.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from mooring.model.api.pods import Pod
from mooring.model.quotas.objects import LimitRange
from mooring.model.rightsizing.admission import Controller, autoscaler_for, patch_for_new_pod
from mooring.model.values.quantity import QuantityError

AUTOSCALERS, REPLICA_SETS = "verticalpodautoscalers.autoscaling.k8s.io", "replicasets.apps"
HORIZONTAL = "horizontalpodautoscalers.autoscaling"
UPDATES = "vpaUpdates"
"""The annotation that says what was changed of a pod, and by which autoscaler."""


class VerticalAutoscalers:
    def __init__(self, api: Api) -> None:
        self._api = api

    def mutate(self, request: Request) -> None:
        if request.operation != CREATE or request.resource.key != "pods" or request.subresource:
            return
        stored = self._api.list(AUTOSCALERS, request.namespace)
        controllers = self._controllers(request) if stored else []
        if not controllers:
            return
        try:
            found = autoscaler_for(filter(None, map(_read, stored)), request.namespace, controllers)
            if found is None:
                return
            pod = msgspec.convert(request.object, Pod)
            pod.metadata.namespace = request.namespace
            ranges = [msgspec.convert(one, LimitRange) for one in self._api.list("limitranges", request.namespace)]
            horizontal = [
                msgspec.convert(one, HorizontalPodAutoscaler) for one in self._api.list(HORIZONTAL, request.namespace)
            ]
            patch = patch_for_new_pod(pod, found, ranges, horizontal)
        except (msgspec.ValidationError, QuantityError):  # what cannot be read is refused by others
            return
        documents = {one["name"]: one for one in request.object["spec"]["containers"]}
        for changed in patch.resources:
            resources = documents[changed.container].setdefault("resources", {})
            for field, amounts in (("requests", changed.requests), ("limits", changed.limits)):
                if amounts:
                    resources[field] = {**(resources.get(field) or {}), **dict(amounts)}
        if patch.resources:
            told = f"Pod resources updated by {found.metadata.name}: " + ", ".join(
                f"container {one.container}: {', '.join(name for name, _ in (*one.requests, *one.limits))}"
                for one in patch.resources
            )
            metadata = request.object["metadata"]
            metadata["annotations"] = {**(metadata.get("annotations") or {}), UPDATES: told}

    def _controllers(self, request: Request) -> list[Controller]:
        """The controller of a pod, and the one above it."""
        found: list[Controller] = []
        above: Object | None = request.object
        while above is not None and len(found) < 2:
            owners = above["metadata"].get("ownerReferences") or ()
            owner = next((one for one in owners if one.get("controller")), None)
            if owner is None:
                break
            found.append((owner["kind"], owner["name"]))
            is_replica_set = owner["kind"] == "ReplicaSet"
            above = self._api.find(REPLICA_SETS, request.namespace, owner["name"]) if is_replica_set else None
        return found


def _read(stored: Object) -> VerticalPodAutoscaler | None:
    """An autoscaler as it is stored; None for one that cannot be read: it stops nobody."""
    try:
        return msgspec.convert(stored, VerticalPodAutoscaler)
    except msgspec.ValidationError:
        return None
