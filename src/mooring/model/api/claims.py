"""Claims to devices, and templates that claims are made from (resource.k8s.io).

Version v1beta1 has what a request asks for in the request itself; `unify_requests` brings it under `exactly`.
"""

import msgspec

from mooring.model.api.devices import RESOURCE_GROUP, DeviceClassConfiguration, DeviceSelector
from mooring.model.api.meta import Condition, KubeObject, NodeSelector, ObjectMeta, QuantityText

EXACT_COUNT, ALL_DEVICES = "ExactCount", "All"
RESULTS_MAX_SIZE = 32
"""The API allows a claim so many devices."""
FIRST_AVAILABLE_MAX_SIZE = 8


class DeviceToleration(KubeObject):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(KubeObject):
    requests: dict[str, QuantityText] | None = None


class ExactDeviceRequest(KubeObject):
    """So many devices of a class that all selectors match."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ExactDeviceRequest):
    """One of several alternatives."""

    name: str = ""


class DeviceRequest(ExactDeviceRequest):
    """What is asked under one name; the fields of ExactDeviceRequest are v1beta1's, and empty after unifying."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None


class DeviceConstraint(KubeObject):
    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(DeviceClassConfiguration):
    requests: list[str] | None = None


class DeviceClaim(KubeObject):
    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[DeviceClaimConfiguration] | None = None


class ResourceClaimSpec(KubeObject):
    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class DeviceRequestAllocationResult(KubeObject):
    """One device that a claim has."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, QuantityText] | None = None


class DeviceAllocationConfiguration(DeviceClassConfiguration):
    source: str = ""
    requests: list[str] | None = None


class DeviceAllocationResult(KubeObject):
    results: list[DeviceRequestAllocationResult] | None = None
    config: list[DeviceAllocationConfiguration] | None = None


class AllocationResult(KubeObject):
    devices: DeviceAllocationResult = msgspec.field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(KubeObject):
    api_group: str = msgspec.field(default="", name="apiGroup")
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(KubeObject):
    driver: str
    pool: str
    device: str
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[Condition] | None = None


class ResourceClaimStatus(KubeObject):
    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] | None = None
    devices: list[AllocatedDeviceStatus] | None = None


class ResourceClaim(KubeObject):
    api_version: str = f"{RESOURCE_GROUP}/v1"
    kind: str = "ResourceClaim"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ResourceClaimTemplateSpec(KubeObject):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(KubeObject):
    api_version: str = f"{RESOURCE_GROUP}/v1"
    kind: str = "ResourceClaimTemplate"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceClaimTemplateSpec = msgspec.field(default_factory=ResourceClaimTemplateSpec)


def unify_requests(spec: ResourceClaimSpec) -> None:
    """Bring requests as v1beta1 writes them into the form of v1, and fill in the API server's defaults; in place."""
    for request in spec.devices.requests or ():
        if request.exactly is None and not request.first_available and request.device_class_name:
            fields = {name: getattr(request, name) for name in ExactDeviceRequest.__struct_fields__}
            request.exactly = ExactDeviceRequest(**fields)
            blank = ExactDeviceRequest()
            for name in ExactDeviceRequest.__struct_fields__:
                setattr(request, name, getattr(blank, name))
        for asked in (*([request.exactly] if request.exactly else ()), *(request.first_available or ())):
            if not asked.allocation_mode:
                asked.allocation_mode = EXACT_COUNT
            if asked.allocation_mode == EXACT_COUNT and not asked.count:
                asked.count = 1
            for toleration in asked.tolerations or ():
                toleration.operator = toleration.operator or "Equal"
