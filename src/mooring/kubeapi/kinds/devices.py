"""resource.k8s.io and scheduling.k8s.io: claims of devices, what nodes offer, and pods that start together."""

from typing import ClassVar

from mooring.kubeapi.kinds.field_errors import IMMUTABLE, forbidden, immutable, invalid, required
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.status import FieldError, Object


class _Devices(Standard):
    counts_generation = False
    returns_deleted = True
    is_checked_by_model = True


class ResourceClaims(_Devices):
    immutable_fields: ClassVar[tuple[str, ...]] = ("spec",)

    def check_status(self, new: Object, old: Object) -> list[FieldError]:
        allocation, before = (each.get("status", {}).get("allocation") for each in (new, old))
        found = []
        if allocation and before and allocation != before:
            found.append(invalid("status.allocation", allocation, IMMUTABLE))
        holders = new.get("status", {}).get("reservedFor") or []
        if holders and not allocation:
            found.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
        if old["metadata"].get("deletionTimestamp") and len(holders) > len(
            old.get("status", {}).get("reservedFor") or []
        ):
            found.append(
                forbidden("status.reservedFor", "new entries may not be added while `deletionTimestamp` is set")
            )
        return found


class ResourceClaimTemplates(_Devices):
    immutable_fields: ClassVar[tuple[str, ...]] = ("spec",)


class DeviceClasses(_Devices):
    counts_generation = True


class ResourceSlices(_Devices):
    counts_generation = True
    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {
        "spec.nodeName": ("spec", "nodeName"),
        "spec.driver": ("spec", "driver"),
    }

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        found = []
        for path in ("driver", "nodeName", "nodeSelector", "allNodes"):
            found += immutable(f"spec.{path}", new["spec"].get(path), old["spec"].get(path))
        if new["spec"].get("pool", {}).get("name") != old["spec"].get("pool", {}).get("name"):
            found.append(invalid("spec.pool.name", new["spec"].get("pool", {}).get("name"), IMMUTABLE))
        return found


class DeviceTaintRules(_Devices):
    counts_generation = True


class ResourcePoolStatusRequests(Standard):
    counts_generation = False
    immutable_fields: ClassVar[tuple[str, ...]] = ("spec",)

    def check(self, obj: Object) -> list[FieldError]:
        return [] if (obj.get("spec") or {}).get("driver") else [required("spec.driver")]


class PodGroups(Standard):
    counts_generation = False
    allows_unconditional_update = False
    is_checked_by_model = True

    def check(self, obj: Object) -> list[FieldError]:
        policy = (obj.get("spec") or {}).get("schedulingPolicy")
        return [] if policy else [required("spec.schedulingPolicy")]


class Workloads(Standard):
    allows_unconditional_update = False
    is_checked_by_model = True
    counts_generation = False
