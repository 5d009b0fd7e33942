"""What a claim asks for, compiled: selectors of the class and of the request together, amounts as numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mooring.model.api.claims import ALL_DEVICES, DeviceToleration, ExactDeviceRequest, ResourceClaimSpec
from mooring.model.api.devices import DeviceClass, DeviceTaint
from mooring.model.devices.device import Device
from mooring.model.devices.selecting import Costs, Selector, selector
from mooring.model.values.quantity import Nanos, parse_quantity

_PREVENTING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, eq=False, slots=True)
class Alternative:
    """One way of meeting a request: so many devices of a class, or all of them."""

    name: str
    """As results call it: the request's, or request/subrequest."""
    class_name: str
    selectors: tuple[tuple[str, Selector], ...]
    """Each with whose it is, as errors call it."""
    count: int
    wants_all: bool
    admin_access: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Nanos]
    costs: Costs
    """Of the claim."""

    def selects(self, device: Device) -> bool | str:
        """Whether a device is of the class and matches all selectors; a text if one of them has no answer."""
        for whose, each in self.selectors:
            found = each.matches(device, self.costs)
            if found is not True:
                return found if found is False else f"{whose} on device {device.driver}/{device.name}: {found}"
        return True

    def is_kept_off(self, device: Device) -> bool:
        """Whether a taint of a device keeps it from being taken."""
        return any(taint.effect in _PREVENTING and not self.tolerates(taint) for taint in device.taints)

    def tolerates(self, taint: DeviceTaint) -> bool:
        return any(tolerates(toleration, taint) for toleration in self.tolerations)


@dataclass(frozen=True, eq=False, slots=True)
class Request:
    name: str
    alternatives: tuple[Alternative, ...]
    is_list: bool
    """firstAvailable: the first alternative that can be met counts, and is worth the most."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """An attribute that must be equal, or different, over all devices of some requests."""

    requests: frozenset[str]
    """Requests, or request/subrequest; all of them if empty."""
    attribute: str
    is_distinct: bool

    def concerns(self, request: str, alternative: str) -> bool:
        return not self.requests or request in self.requests or alternative in self.requests


@dataclass(frozen=True, eq=False, slots=True)
class ClaimRequests:
    """All that a claim asks for."""

    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]


def compile_claim(spec: ResourceClaimSpec, classes: Mapping[str, DeviceClass]) -> ClaimRequests | str:
    """What a claim asks for; a text, in kube-scheduler's words, if a class is missing."""
    requests = []
    costs = Costs()
    for request in spec.devices.requests or ():
        found: list[Alternative] = []
        if request.exactly is not None:
            asked: Sequence[tuple[str, ExactDeviceRequest]] = [(request.name, request.exactly)]
        else:
            asked = [(f"{request.name}/{each.name}", each) for each in request.first_available or ()]
        for name, each in asked:
            device_class = classes.get(each.device_class_name)
            if device_class is None:
                return f"request {name}: device class {each.device_class_name} does not exist"
            found.append(_alternative(name, each, device_class, costs))
        requests.append(Request(request.name, tuple(found), bool(request.first_available)))
    constraints = tuple(
        Constraint(
            frozenset(each.requests or ()),
            each.match_attribute or each.distinct_attribute or "",
            is_distinct=each.match_attribute is None,
        )
        for each in spec.devices.constraints or ()
    )
    return ClaimRequests(tuple(requests), constraints)


def _alternative(name: str, asked: ExactDeviceRequest, device_class: DeviceClass, costs: Costs) -> Alternative:
    capacity = (asked.capacity.requests or {}) if asked.capacity else {}
    return Alternative(
        name,
        asked.device_class_name,
        tuple(_selectors(name, asked, device_class)),
        asked.count,
        asked.allocation_mode == ALL_DEVICES,
        bool(asked.admin_access),
        tuple(asked.tolerations or ()),
        {each: parse_quantity(amount) for each, amount in capacity.items()},
        costs,
    )


def _selectors(name: str, asked: ExactDeviceRequest, device_class: DeviceClass) -> Iterator[tuple[str, Selector]]:
    for index, each in enumerate(device_class.spec.selectors or ()):
        if each.cel is not None:
            yield f"class {device_class.metadata.name}: selector #{index}", selector(each.cel.expression)
    for index, each in enumerate(asked.selectors or ()):
        if each.cel is not None:
            yield f"request {name}: selector #{index}", selector(each.cel.expression)


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """As tolerations of node taints work."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
