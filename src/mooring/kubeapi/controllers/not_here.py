"""What this control plane keeps and does nothing about says so: autoscalers have no metrics, requests no signer."""

from mooring.kubeapi.controllers.conditions import find_condition, set_condition
from mooring.kubeapi.controllers.context import Context
from mooring.kubeapi.controllers.controller import Controller, Key
from mooring.model.api.kueue_labels import QUEUE_NAME

AUTOSCALERS = "horizontalpodautoscalers.autoscaling"
REQUESTS = "certificatesigningrequests.certificates.k8s.io"


class NotMade(Controller):
    """Gives objects of a kind whose pods nothing makes here an event that says so."""

    def __init__(self, context: Context, resource: str) -> None:
        super().__init__(context)
        self._resource = resource
        self._recorded: set[str] = set()

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"not-made-{self._resource}"

    def start(self) -> None:
        self.follow(self._resource)

    def sync(self, key: Key) -> None:
        found = self.api.find(self._resource, *key)
        if found is None or found["metadata"]["uid"] in self._recorded:
            return
        self._recorded.add(found["metadata"]["uid"])
        message = f"this control plane makes no pods of a {found['kind']}: its operator does not run here"
        if QUEUE_NAME in (found["metadata"].get("labels") or {}):
            message += "; it is not admitted to its queue"
        self.context.recorder.event(found, "Warning", "NoController", message, "mooring")


class Autoscalers(Controller):
    """Gives HorizontalPodAutoscalers the condition of a cluster without metrics."""

    name = "horizontal-pod-autoscaler-controller"

    def start(self) -> None:
        self.follow(AUTOSCALERS)

    def sync(self, key: Key) -> None:
        found = self.api.find(AUTOSCALERS, *key)
        if found is None or find_condition(found.get("status") or {}, "ScalingActive") is not None:
            return
        message = "this control plane has no metrics: containers do not run, and nothing is scaled"
        status = found["status"] = dict(found.get("status") or {})
        set_condition(status, "ScalingActive", "False", self.now, reason="FailedGetResourceMetric", message=message)
        self.api.update(AUTOSCALERS, found, subresource="status")


class CertificateRequests(Controller):
    """Says of approved CertificateSigningRequests that nothing signs them."""

    name = "csrsigning-controller"

    def start(self) -> None:
        self.follow(REQUESTS)

    def sync(self, key: Key) -> None:
        found = self.api.find(REQUESTS, *key)
        status = dict((found or {}).get("status") or {})
        if found is None or status.get("certificate") or find_condition(status, "Failed") is not None:
            return
        if find_condition(status, "Approved") is None:
            return
        found["status"] = status
        message = "this control plane signs no certificates; `kubectl create token` gives access as a service account"
        set_condition(status, "Failed", "True", self.now, reason="NoSigner", message=message)
        self.api.update(REQUESTS, found, subresource="status")
