"""Pods as controllers see them, and how controllers make and remove them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.controllers.informers import MetaView
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod

Object = dict[str, Any]


class ContainerView(msgspec.Struct):
    ports: list[dict[str, Any]] = []


class ConditionView(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerStatusView(msgspec.Struct, rename="camel"):
    name: str = ""
    restart_count: int = 0
    state: dict[str, Any] = {}


class PodSpecView(msgspec.Struct, rename="camel"):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: list[ContainerView] = []
    restart_policy: str = ""
    readiness_gates: list[dict[str, Any]] = []
    tolerations: list[dict[str, Any]] = []
    volumes: list[dict[str, Any]] = []
    resource_claims: list[dict[str, Any]] = []
    affinity: dict[str, Any] | None = None


class PodStatusView(msgspec.Struct, rename="camel"):
    phase: str = "Pending"
    reason: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: list[ConditionView] = []
    container_statuses: list[ContainerStatusView] = []
    init_container_statuses: list[ContainerStatusView] = []
    resource_claim_statuses: list[dict[str, Any]] = []


class PodView(msgspec.Struct):
    """A pod, as far as controllers read it."""

    metadata: MetaView = msgspec.field(default_factory=MetaView)
    spec: PodSpecView = msgspec.field(default_factory=PodSpecView)
    status: PodStatusView = msgspec.field(default_factory=PodStatusView)

    @property
    def key(self) -> tuple[str, str]:
        return self.metadata.namespace, self.metadata.name

    @property
    def is_terminal(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_leaving(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_active(self) -> bool:
        """Whether it counts as a replica."""
        return not self.is_terminal and not self.is_leaving

    def condition(self, type_: str) -> ConditionView | None:
        return next((one for one in self.status.conditions if one.type == type_), None)

    @property
    def is_ready(self) -> bool:
        ready = self.condition("Ready")
        return ready is not None and ready.status == "True"

    @property
    def ready_since(self) -> float | None:
        """Since when it is ready, if it is."""
        ready = self.condition("Ready")
        return timestamp_seconds(ready.last_transition_time) if ready is not None and ready.status == "True" else None

    def is_available(self, min_ready_seconds: float, now: float) -> bool:
        """Whether it has been ready for long enough."""
        since = self.ready_since
        if since is None:
            return self.is_ready and not min_ready_seconds
        return min_ready_seconds == 0 or since + min_ready_seconds <= now

    @property
    def restarts(self) -> int:
        return sum(one.restart_count for one in self.status.container_statuses)


def make_pod(template: Object, owner: Object, namespace: str, *, name: str = "") -> Object:
    """A pod of a template: named, or named after its owner with a suffix that the API server makes."""
    given = template.get("metadata") or {}
    metadata: Object = {key: dict(given[key]) for key in ("labels", "annotations") if given.get(key)}
    if given.get("finalizers"):
        metadata["finalizers"] = list(given["finalizers"])
    metadata |= {"namespace": namespace, "ownerReferences": [owner_reference(owner)]}
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = name_prefix(owner["metadata"]["name"])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": msgspec.json.decode(msgspec.json.encode(template["spec"])),
    }


_FROM_MODEL = ("affinity", "nodeSelector", "tolerations", "schedulerName", "priorityClassName")


def pod_document(template: Object, made: Pod) -> Object:
    """The document of a pod that the model made of a template: named, labelled and placed as the model says, with all
    else that the template has."""
    metadata: Object = msgspec.to_builtins(made.metadata)
    spec: Object = msgspec.json.decode(msgspec.json.encode(template["spec"]))
    given = msgspec.to_builtins(made.spec)
    spec |= {field: given[field] for field in _FROM_MODEL if given.get(field)}
    for owner in metadata.get("ownerReferences") or ():
        owner["blockOwnerDeletion"] = True
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def name_prefix(owner_name: str) -> str:
    """What the names of an owner's pods begin with."""
    return f"{owner_name}-"


def delete_pod(api: Api, pod: PodView) -> None:
    """Delete a pod, this one and no other of its name; one that is gone already is fine."""
    try:
        api.delete("pods", pod.metadata.namespace, pod.metadata.name, uid=pod.metadata.uid)
    except ApiError as error:
        if error.code not in (404, 409):
            raise


def rank_for_deletion(pods: Iterable[PodView], crowd: dict[str, int]) -> list[PodView]:
    """Order pods by how little is lost with each: the first are to go first. `crowd` counts related pods by node."""
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}

    def loss(pod: PodView) -> tuple[Any, ...]:
        since = pod.ready_since
        created = timestamp_seconds(pod.metadata.creation_timestamp) or 0.0
        return (
            bool(pod.spec.node_name),
            phases.get(pod.status.phase, 0),
            pod.is_ready,
            _deletion_cost(pod),
            -crowd.get(pod.spec.node_name, 0),
            -(since or 0.0),
            -pod.restarts,
            -created,
        )

    return sorted(pods, key=loss)


def _deletion_cost(pod: PodView) -> int:
    text = pod.metadata.annotations.get("controller.kubernetes.io/pod-deletion-cost", "0")
    try:
        return int(text)
    except ValueError:
        return 0
