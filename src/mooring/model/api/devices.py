"""Devices as drivers publish them: slices of pools, classes, and rules that taint (resource.k8s.io).

Versions v1beta1 and v1beta2 are read into the same types: `unify_slice` brings the older form of a device into the
newer one.
"""

from typing import Any

import msgspec

from mooring.model.api.meta import KubeObject, NodeSelector, ObjectMeta, QuantityText

RESOURCE_GROUP = "resource.k8s.io"


class DeviceAttribute(KubeObject):
    """One value of one type."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")


class CapacityRequestPolicyRange(KubeObject):
    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(KubeObject):
    default: QuantityText | None = None
    valid_values: list[QuantityText] | None = None
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(KubeObject):
    value: QuantityText = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(KubeObject):
    value: QuantityText = 0


class CounterSet(KubeObject):
    name: str
    counters: dict[str, Counter] | None = None


class DeviceCounterConsumption(KubeObject):
    counter_set: str
    counters: dict[str, Counter] | None = None
    compatibility_groups: list[str] | None = None


class DeviceTaint(KubeObject):
    key: str
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class BasicDevice(KubeObject):
    """What a device is described by."""

    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: list[DeviceCounterConsumption] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class PublishedDevice(BasicDevice):
    """A device of a slice."""

    name: str = ""
    basic: BasicDevice | None = None
    """Where v1beta1 has all but the name."""


class ResourcePool(KubeObject):
    name: str
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(KubeObject):
    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[PublishedDevice] | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(KubeObject):
    spec: ResourceSliceSpec
    api_version: str = f"{RESOURCE_GROUP}/v1"
    kind: str = "ResourceSlice"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class CelDeviceSelector(KubeObject):
    expression: str


class DeviceSelector(KubeObject):
    cel: CelDeviceSelector | None = None


class OpaqueDeviceConfiguration(KubeObject):
    driver: str = ""
    parameters: Any = None


class DeviceClassConfiguration(KubeObject):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(KubeObject):
    selectors: list[DeviceSelector] | None = None
    config: list[DeviceClassConfiguration] | None = None
    extended_resource_name: str | None = None


class DeviceClass(KubeObject):
    api_version: str = f"{RESOURCE_GROUP}/v1"
    kind: str = "DeviceClass"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)


class DeviceTaintSelector(KubeObject):
    """Which devices: all that are named are needed; nothing named selects all devices."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(KubeObject):
    taint: DeviceTaint
    device_selector: DeviceTaintSelector | None = None


class DeviceTaintRule(KubeObject):
    spec: DeviceTaintRuleSpec
    api_version: str = f"{RESOURCE_GROUP}/v1"
    kind: str = "DeviceTaintRule"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


def unify_slice(found: ResourceSlice) -> None:
    """Bring devices as v1beta1 writes them into the form of v1; in place."""
    for device in found.spec.devices or ():
        if device.basic is not None:
            for name in BasicDevice.__struct_fields__:
                setattr(device, name, getattr(device.basic, name))
            device.basic = None
