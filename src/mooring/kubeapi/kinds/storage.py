"""PersistentVolumes, PersistentVolumeClaims and what storage drivers say of themselves."""

from collections.abc import Callable
from typing import ClassVar

from mooring.kubeapi.kinds.field_errors import (
    IMMUTABLE,
    at_least,
    differences,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import FieldError, Object
from mooring.model.values.quantity import parse_quantity

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_OPTIONS = (
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
)


def _check_modes(spec: Object) -> list[FieldError]:
    modes = spec.get("accessModes")
    if not modes:
        return [required("spec.accessModes", "at least 1 access mode is required")]
    return [not_supported("spec.accessModes", mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]


class PersistentVolumes(Standard):
    counts_generation = False
    returns_deleted = True

    def __init__(self, resource: Resource, now: Callable[[], str]) -> None:
        super().__init__(resource)
        self._now = now

    def begin(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": self._now()}

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        status, before = new.setdefault("status", {}), old.get("status") or {}
        moment = "lastPhaseTransitionTime"
        if subresource != "status":
            return
        if status.get("phase") != before.get("phase") and status.get(moment) in (None, before.get(moment)):
            status[moment] = self._now()
        elif moment not in status and moment in before:
            status[moment] = before[moment]

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = _check_modes(spec)
        capacity = spec.get("capacity") or {}
        if not capacity:
            found.append(required("spec.capacity"))
        elif "storage" not in capacity or len(capacity) > 1:
            found.append(not_supported("spec.capacity", list(capacity), ("storage",)))
        elif parse_quantity(capacity["storage"]) <= 0:
            found.append(invalid("spec.capacity[storage]", capacity["storage"], "must be greater than zero"))
        sources = [name for name in spec if name not in _VOLUME_OPTIONS]
        if not sources:
            found.append(required("spec", "must specify a volume type"))
        for name in sources[1:]:
            found.append(forbidden(f"spec.{name}", "may not specify more than 1 volume type"))
        policies = ("Delete", "Recycle", "Retain")
        if (policy := spec.get("persistentVolumeReclaimPolicy")) not in policies:
            found.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, policies))
        return found

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new["spec"], old["spec"]
        changed = [name for name in before if name not in _VOLUME_OPTIONS and spec.get(name) != before[name]]
        found = [forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")]
        found = found if changed else []
        found += immutable("spec.volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
        if before.get("nodeAffinity"):
            found += immutable("spec.nodeAffinity", spec.get("nodeAffinity"), before.get("nodeAffinity"))
        return found


class PersistentVolumeClaims(Standard):
    counts_generation = False
    returns_deleted = True

    def begin(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        _mirror_source(obj["spec"])

    def change(self, new: Object, old: Object, subresource: str) -> None:
        _mirror_source(new["spec"])

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        found = _check_modes(spec)
        storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
        if storage is None:
            found.append(required("spec.resources[storage]"))
        elif parse_quantity(storage) <= 0:
            found.append(invalid("spec.resources[storage]", storage, "must be greater than zero"))
        return found

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = dict(new["spec"]), dict(old["spec"])
        found = []
        if not before.get("volumeName"):
            before["volumeName"] = spec.get("volumeName")
        if before.get("storageClassName") is None:
            before["storageClassName"] = spec.get("storageClassName")
        sizes = [((each.pop("resources", None) or {}).get("requests") or {}).get("storage") for each in (spec, before)]
        for name in ("volumeAttributesClassName", "dataSource", "dataSourceRef"):
            if name not in before or name == "volumeAttributesClassName":
                spec.pop(name, None)
                before.pop(name, None)
        if {name: value for name, value in spec.items() if value} != {n: v for n, v in before.items() if v}:
            detail = (
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
                "claims"
            )
            found.append(forbidden("spec", f"{detail}\n{differences(before, spec)}"))
        status = (old.get("status") or {}).get("capacity") or {}
        if sizes[0] and sizes[1] and parse_quantity(sizes[0]) < parse_quantity(sizes[1]):
            lowest = status.get("storage")
            if lowest is None or parse_quantity(sizes[0]) < parse_quantity(lowest):
                detail = "field can not be less than status.capacity"
                found.append(forbidden("spec.resources.requests.storage", detail))
        return found


def _mirror_source(spec: Object) -> None:
    """dataSource and dataSourceRef say the same, if only one of them was given."""
    if spec.get("dataSource") and not spec.get("dataSourceRef"):
        spec["dataSourceRef"] = dict(spec["dataSource"])
    elif spec.get("dataSourceRef") and not spec.get("dataSource") and not spec["dataSourceRef"].get("namespace"):
        spec["dataSource"] = {name: value for name, value in spec["dataSourceRef"].items() if name != "namespace"}


class StorageClasses(Standard):
    counts_generation = False
    returns_deleted = True
    immutable_fields: ClassVar[tuple[str, ...]] = ("provisioner", "reclaimPolicy", "volumeBindingMode")

    def check(self, obj: Object) -> list[FieldError]:
        found = [] if obj.get("provisioner") else [required("provisioner")]
        for name, allowed in (("reclaimPolicy", ("Delete", "Retain")), ("volumeBindingMode", _BINDING_MODES)):
            if obj.get(name) not in allowed:
                found.append(not_supported(name, obj.get(name), allowed))
        return found

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        if (new.get("parameters") or {}) != (old.get("parameters") or {}):
            return [forbidden("parameters", "updates to parameters are forbidden.")]
        return []


_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")


class StorageDrivers(Standard):
    """CSIDrivers and CSINodes."""

    counts_generation = False
    returns_deleted = True
    allows_unconditional_update = False

    def check(self, obj: Object) -> list[FieldError]:
        found = []
        for index, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
            count = (driver.get("allocatable") or {}).get("count")
            found += at_least(f"spec.drivers[{index}].allocatable.count", count)
        return found


class VolumeAttachments(Standard):
    counts_generation = False
    returns_deleted = True
    allows_unconditional_update = False

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        return [] if new.get("spec") == old.get("spec") else [invalid("spec", new.get("spec"), IMMUTABLE)]
