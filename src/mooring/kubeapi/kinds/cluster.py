"""Nodes and namespaces."""

from typing import ClassVar

from mooring.kubeapi.kinds.field_errors import forbidden, invalid, not_supported, required
from mooring.kubeapi.kinds.metadata import dns_label, label_value, qualified_name
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.status import FieldError, Object

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
KUBERNETES = "kubernetes"
"""The finalizer that keeps a namespace until its content is gone."""


class Nodes(Standard):
    counts_generation = False
    keeps_status = True
    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {"spec.unschedulable": ("spec", "unschedulable")}

    def check(self, obj: Object) -> list[FieldError]:
        return _check_taints((obj.get("spec") or {}).get("taints") or [])

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        found = []
        cidr = before.get("podCIDR")
        if cidr and spec.get("podCIDR") != cidr:
            found.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
        provider = before.get("providerID")
        if provider and spec.get("providerID") != provider:
            found.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
        return found


def _check_taints(taints: list[Object]) -> list[FieldError]:
    found = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here, key, effect = f"metadata.taints[{index}]", taint.get("key", ""), taint.get("effect", "")
        if wrong := qualified_name(key):
            found.append(invalid(f"{here}.key", key, wrong))
        if wrong := label_value(taint.get("value", "")):
            found.append(invalid(f"{here}.value", taint.get("value"), wrong))
        if not effect:
            found.append(required(f"{here}.effect"))
        elif effect not in EFFECTS:
            found.append(not_supported(f"{here}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": taint.get("value", ""), "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            detail = "taints must be unique by key and effect pair"
            found.append(FieldError("FieldValueDuplicate", here, detail, shown))
        seen.add((key, effect))
    return found


class Namespaces(Standard):
    counts_generation = False
    returns_deleted = True
    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {
        "status.phase": ("status", "phase"),
        "name": ("metadata", "name"),
    }

    def check_name(self, name: str) -> str:
        return dns_label(name)

    def begin(self, obj: Object) -> None:
        obj["status"] = {"phase": "Active"}
        finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
        if KUBERNETES not in finalizers:
            finalizers.append(KUBERNETES)

    def begin_deletion(self, obj: Object) -> None:
        obj.setdefault("status", {})["phase"] = "Terminating"

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        if not subresource:
            finalizers = (old.get("spec") or {}).get("finalizers")
            new["spec"] = {"finalizers": finalizers} if finalizers else {}

    def check_status(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        phase = status.get("phase")
        if new["metadata"].get("deletionTimestamp"):
            if phase != "Terminating":
                detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
                return [invalid("status.Phase", phase, detail)]
        elif phase not in (None, "Active"):
            return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
        return []
