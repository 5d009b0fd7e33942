"""Objects in another version than the stored one, and events as both of their groups show them."""

from collections.abc import Callable

from mooring.kubeapi.kueue_versions import GROUP as KUEUE
from mooring.kubeapi.kueue_versions import from_v1beta1, to_v1beta1
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import Object, bad_request
from mooring.kubeapi.version_fields import ONLY_STORED, ONLY_THERE, hide, show

_EVENT_FIELDS = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
"""Fields of an Event of events.k8s.io, and what they are called in the core group, where events are stored."""
_CORE_EVENT_FIELDS = {core: other for other, core in _EVENT_FIELDS.items()}
_CPU = "cpu"


def is_stored_as(resource: Resource, version: str) -> bool:
    """Whether this version shows the stored bytes as they are."""
    return resource.storage == resource.key and version == resource.storage_version and resource.on_read is None


def from_storage(resource: Resource, version: str, obj: Object) -> Object:
    """A stored object as a version shows it. Parts that nothing checked may be of any form: an object that cannot be
    converted for that is shown as it is stored."""
    if is_stored_as(resource, version):
        return obj
    try:
        return _from_storage(resource, version, obj)
    except (AttributeError, KeyError, TypeError, ValueError):
        return {**obj, "apiVersion": resource.api_version(version)}


def _from_storage(resource: Resource, version: str, obj: Object) -> Object:
    if resource.on_read is not None:
        obj = resource.on_read(resource, version, obj)
    if resource.key == "events.events.k8s.io":
        obj = {_CORE_EVENT_FIELDS.get(key, key): value for key, value in obj.items()}
    obj = show(obj, ONLY_THERE.get((resource.key, version), ()))
    if resource.key == "horizontalpodautoscalers.autoscaling" and version == "v1":
        obj = _to_hpa_v1(obj)
    elif resource.group == KUEUE and version == "v1beta1":
        obj = to_v1beta1(obj)
    elif resource.group == "resource.k8s.io" and version == "v1beta1":
        obj = _map_requests(obj, _to_flat_request)
        obj = _map_devices(obj, wrap=True)
    obj = hide(obj, ONLY_STORED.get((resource.key, version), ()))
    return {**obj, "apiVersion": resource.api_version(version)}


def to_storage(resource: Resource, version: str, obj: Object) -> Object:
    """What a client sent in a version, as it is stored; 400 where a part of it is of another form than the version
    has."""
    if is_stored_as(resource, version):
        return obj
    try:
        return _to_storage(resource, version, obj)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise bad_request(f"the object cannot be converted from version {version}: {error}") from error


def _to_storage(resource: Resource, version: str, obj: Object) -> Object:
    if resource.key == "events.events.k8s.io":
        obj = {_EVENT_FIELDS.get(key, key): value for key, value in obj.items()}
        return {**obj, "apiVersion": "v1"}
    obj = show(obj, ONLY_STORED.get((resource.key, version), ()))
    if resource.key == "horizontalpodautoscalers.autoscaling" and version == "v1":
        obj = _from_hpa_v1(obj)
    elif resource.group == KUEUE and version == "v1beta1":
        obj = from_v1beta1(obj)
    elif resource.group == "resource.k8s.io" and version == "v1beta1":
        obj = _map_requests(obj, _from_flat_request)
        obj = _map_devices(obj, wrap=False)
    obj = hide(obj, ONLY_THERE.get((resource.key, version), ()))
    return {**obj, "apiVersion": resource.api_version()}


def _to_hpa_v1(obj: Object) -> Object:
    """Version 1 knows the CPU's utilisation only; all metrics are in an annotation."""
    spec = dict(obj.get("spec") or {})
    for metric in spec.get("metrics") or ():
        resource = metric.get("resource") or {}
        target = resource.get("target") or {}
        if resource.get("name") == _CPU and target.get("averageUtilization") is not None:
            spec["targetCPUUtilizationPercentage"] = target["averageUtilization"]
    status = dict(obj.get("status") or {})
    for metric in status.get("currentMetrics") or ():
        resource = metric.get("resource") or {}
        if resource.get("name") == _CPU and (used := (resource.get("current") or {}).get("averageUtilization")):
            status["currentCPUUtilizationPercentage"] = used
    return {**obj, "spec": spec, "status": status}


def _from_hpa_v1(obj: Object) -> Object:
    spec = dict(obj.get("spec") or {})
    others = [each for each in spec.get("metrics") or () if (each.get("resource") or {}).get("name") != _CPU]
    if (percentage := spec.pop("targetCPUUtilizationPercentage", None)) is not None:
        target = {"type": "Utilization", "averageUtilization": percentage}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": _CPU, "target": target}}, *others]
    elif "metrics" in spec:
        spec["metrics"] = others or spec["metrics"]
    status = dict(obj.get("status") or {})
    status.pop("currentCPUUtilizationPercentage", None)
    return {**obj, "spec": spec, "status": status} if status else {**obj, "spec": spec}


def _map_requests(obj: Object, change: Callable[[Object], Object]) -> Object:
    """Change each device request of a ResourceClaim or of a template of one."""
    if obj.get("kind") not in ("ResourceClaim", "ResourceClaimTemplate"):
        return obj
    spec = dict(obj.get("spec") or {})
    inner = dict(spec.get("spec") or {}) if obj["kind"] == "ResourceClaimTemplate" else spec
    devices = dict(inner.get("devices") or {})
    if devices.get("requests"):
        devices["requests"] = [change(request) for request in devices["requests"]]
        inner["devices"] = devices
    if obj["kind"] == "ResourceClaimTemplate":
        spec["spec"] = inner
    return {**obj, "spec": spec}


def _to_flat_request(request: Object) -> Object:
    """v1beta1 has what v1 puts under `exactly` beside the name."""
    exactly = request.get("exactly") or {}
    return {**{key: value for key, value in request.items() if key != "exactly"}, **exactly}


def _from_flat_request(request: Object) -> Object:
    if "firstAvailable" in request:
        return request
    name = request.get("name", "")
    return {"name": name, "exactly": {key: value for key, value in request.items() if key != "name"}}


def _map_devices(obj: Object, *, wrap: bool) -> Object:
    """v1beta1 has a device's attributes and capacity under `basic`."""
    if obj.get("kind") != "ResourceSlice":
        return obj
    spec = dict(obj.get("spec") or {})
    devices = []
    for device in spec.get("devices") or ():
        if wrap:
            basic = {key: value for key, value in device.items() if key != "name"}
            devices.append({"name": device.get("name", ""), "basic": basic})
        else:
            devices.append({"name": device.get("name", ""), **(device.get("basic") or {})})
    if devices:
        spec["devices"] = devices
    return {**obj, "spec": spec}
