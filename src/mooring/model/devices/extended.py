"""Extended resources that a DeviceClass serves: containers ask for them as ever, and get devices by a claim of the pod.

A class serves the resource of its `extendedResourceName`, and always `deviceclass.resource.kubernetes.io/<class>`.
Which requests the claim has, and what they are called, is as kube-scheduler makes it: containers that run one after the
other (init containers) use the devices of those that come later, as far as these have enough.
"""

from collections.abc import Iterable, Mapping, Sequence

from mooring.model.api.claims import EXACT_COUNT, DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaimSpec
from mooring.model.api.devices import DeviceClass
from mooring.model.api.pods import Container, Pod
from mooring.model.values.quantity import QuantityError, parse_quantity, to_units

PREFIX = "deviceclass.resource.kubernetes.io/"


def served_resources(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """By resource, the class that serves it; of several the newest, and of equally old ones the first by name."""
    served: dict[str, str] = {}
    in_order = sorted(classes, key=lambda found: found.metadata.name, reverse=True)
    for found in sorted(in_order, key=lambda found: found.metadata.creation_timestamp or ""):
        served[PREFIX + found.metadata.name] = found.metadata.name
        if found.spec.extended_resource_name:
            served[found.spec.extended_resource_name] = found.metadata.name
    return served


def asked_resources(pod: Pod, served: Mapping[str, str]) -> tuple[str, ...]:
    """Which of the served resources containers of a pod ask for."""
    containers = (*(pod.spec.init_containers or ()), *pod.spec.containers)
    return tuple(sorted({name for each in containers for name in _requests(each) if name in served}))


def extended_claim(pod: Pod, resources: Sequence[str], served: Mapping[str, str]) -> ResourceClaimSpec:
    """The claim of a pod to devices for these resources."""
    requests: list[DeviceRequest] = []
    for resource in resources:
        requests += _requests_for(pod, resource, served[resource])
    requests.sort(key=lambda request: request.name)
    return ResourceClaimSpec(devices=DeviceClaim(requests=requests))


def _requests_for(pod: Pod, resource: str, class_name: str) -> list[DeviceRequest]:
    first = pod.spec.init_containers or []
    containers = [*first, *pod.spec.containers]
    is_short = [index < len(first) and each.restart_policy != "Always" for index, each in enumerate(containers)]
    lasting: list[DeviceRequest | None] = [None] * len(containers)
    for index, each in enumerate(containers):
        if not is_short[index]:
            lasting[index] = _request(index, each, resource, class_name, 0)
    largest: DeviceRequest | None = None
    for index, each in enumerate(containers):
        if is_short[index]:
            reused = sum(_count(found) for found in lasting[index:] if found is not None)
            made = _request(index, each, resource, class_name, reused)
            if made is not None and (largest is None or _count(largest) < _count(made)):
                largest = made
    return [found for found in (largest, *lasting) if found is not None]


def request_mappings(pod: Pod, spec: ResourceClaimSpec, served: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Which request of the claim each container uses for which resource: its own, or those of containers behind it."""
    first = pod.spec.init_containers or []
    containers = [*first, *pod.spec.containers]
    by_name = {request.name: request for request in spec.devices.requests or ()}
    found = []
    for index, container in enumerate(containers):
        requests = _requests(container)
        for resource in sorted(requests.keys() & served.keys()):
            own = f"container-{index}-request-{sorted(requests).index(resource)}"
            of_class = [
                name
                for name, request in by_name.items()
                if request.exactly is not None and request.exactly.device_class_name == served[resource]
            ]
            used = [own] if own in by_name else of_class
            found += [(container.name, resource, name) for name in used]
    return tuple(found)


def _request(index: int, container: Container, resource: str, class_name: str, reused: int) -> DeviceRequest | None:
    requests = _requests(container)
    wanted = requests.get(resource, 0)
    if wanted <= reused:
        return None
    number = sorted(requests).index(resource)
    exactly = ExactDeviceRequest(device_class_name=class_name, allocation_mode=EXACT_COUNT, count=wanted - reused)
    return DeviceRequest(name=f"container-{index}-request-{number}", exactly=exactly)


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _requests(container: Container) -> dict[str, int]:
    resources = container.resources
    given = {**(resources.limits or {}), **(resources.requests or {})} if resources is not None else {}
    found = {}
    for name, amount in given.items():
        try:
            found[name] = to_units(parse_quantity(amount))
        except QuantityError:
            continue
    return found
