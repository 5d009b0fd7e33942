"""Pods: what creation fills in, what an update, a status, a resize and ephemeral containers may change."""

import copy
from typing import Any, ClassVar

import msgspec

from mooring.kubeapi.kinds.field_errors import forbidden, immutable, invalid
from mooring.kubeapi.kinds.metadata import check_metadata_update
from mooring.kubeapi.kinds.pod_changes import check_changes, check_ephemeral_containers, check_resize, only_resources
from mooring.kubeapi.kinds.pod_spec import check_pod_spec, check_resources
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.status import FieldError, Object
from mooring.model.api.pods import PodSpec
from mooring.model.defaults import default_pod_spec
from mooring.model.kubelet.qos import qos_class

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class Pods(Standard):
    returns_deleted = True
    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {
        name: tuple(name.split("."))
        for name in (
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        )
    }

    def begin(self, obj: Object) -> None:
        spec = obj["spec"]
        status: Object = {"phase": "Pending"}
        if spec.get("schedulingGates"):
            status["conditions"] = [dict(_GATED)]
        _merge_label_keys(spec, obj["metadata"].get("labels") or {})
        _default_pod_level(spec)
        status["qosClass"] = qos_class(spec)
        obj["status"] = status

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            _keep_over_status(new, old)
        elif subresource == "ephemeralcontainers":
            added = new["spec"].get("ephemeralContainers")
            new["spec"] = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
            if added:
                new["spec"]["ephemeralContainers"] = added
        elif subresource == "resize":
            only_resources(new, old)
            _default_pod_level(new["spec"])
        super().prepare_update(new, old, subresource)

    def change(self, new: Object, old: Object, subresource: str) -> None:
        level = old["spec"].get("resources")
        if level and "resources" not in new["spec"]:
            new["spec"]["resources"] = level

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        found = check_pod_spec(spec)
        if spec.get("resources"):
            found += check_resources(spec["resources"], "spec.resources")
        return found

    def validate(self, obj: Object) -> list[FieldError]:
        found = super().validate(obj)
        if obj["spec"].get("ephemeralContainers"):
            found.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
        return found

    def validate_update(self, new: Object, old: Object, subresource: str) -> list[FieldError]:
        found = check_metadata_update(new, old)
        match subresource:
            case "status":
                return found + self.check_status(new, old)
            case "resize":
                return found + self.check(new) + check_resize(new, old)
            case "ephemeralcontainers":
                return found + self.check(new) + check_ephemeral_containers(new, old)
        if new["spec"] == old["spec"]:
            return found
        return found + self.check(new) + check_changes(new, old)

    def check_status(self, new: Object, old: Object) -> list[FieldError]:
        status, before = new.get("status", {}), old.get("status", {})
        found = immutable("status.qosClass", status.get("qosClass"), before.get("qosClass"))
        if (generation := status.get("observedGeneration") or 0) < 0:
            found.append(invalid("status.observedGeneration", generation, "must be a non-negative integer"))
        nominated = status.get("nominatedNodeName")
        if nominated and old["spec"].get("nodeName") and nominated != before.get("nominatedNodeName"):
            detail = "may not be set on pods that are already bound to a node"
            found.append(forbidden("status.nominatedNodeName", detail))
        return found

    def grace_period(self, obj: Object, asked: int | None) -> int:
        spec, phase = obj["spec"], obj.get("status", {}).get("phase")
        if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
            return 0
        seconds: int = spec.get("terminationGracePeriodSeconds", 0) if asked is None else asked
        return seconds if seconds >= 0 else 1


def _keep_over_status(new: Object, old: Object) -> None:
    """What a status update leaves as it was: owners, and what an older client does not know."""
    if "ownerReferences" in old["metadata"]:
        new["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]
    else:
        new["metadata"].pop("ownerReferences", None)
    status, before = new.setdefault("status", {}), old.get("status", {})
    for name in ("qosClass", "resourceClaimStatuses", "extendedResourceClaimStatus", "observedGeneration"):
        if name in before and not status.get(name):
            status[name] = before[name]
    generations = {each.get("type"): each.get("observedGeneration") for each in before.get("conditions") or ()}
    for condition in status.get("conditions") or ():
        generation = generations.get(condition.get("type"))
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def _default_pod_level(spec: Object) -> None:
    """Complete requests and limits of a whole pod from those of its containers."""
    if not spec.get("resources"):
        return
    typed = msgspec.convert(copy.deepcopy(spec), PodSpec)
    default_pod_spec(typed)
    if typed.resources is not None:
        amounts = {"requests": typed.resources.requests, "limits": typed.resources.limits}
        kept = {name: value for name, value in spec["resources"].items() if name not in amounts}
        spec["resources"] = kept | {name: dict(value) for name, value in amounts.items() if value}


def _merge_label_keys(spec: Object, labels: dict[str, str]) -> None:
    """Put the pod's own label values into the selectors that name only their keys."""
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge_keys(constraint, labels)
    affinity = spec.get("affinity") or {}
    for side in (affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}):
        for term in side.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            _merge_keys(term, labels)
        for weighted in side.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            _merge_keys(weighted.get("podAffinityTerm") or {}, labels)


def _merge_keys(term: Object, labels: dict[str, str]) -> None:
    selector: Any = term.get("labelSelector")
    if selector is None:
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field) or ():
            if key in labels:
                expression = {"key": key, "operator": operator, "values": [labels[key]]}
                selector.setdefault("matchExpressions", []).append(expression)
