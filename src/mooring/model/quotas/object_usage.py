"""What objects other than pods take of a quota: claims their storage, services their ports, every object a count."""

from collections.abc import Sequence
from typing import Any

from mooring.model.api.claims import ExactDeviceRequest, ResourceClaim
from mooring.model.api.policies import Service
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.quotas.amounts import ONE, ZERO, Amount, Amounts, count, read_amount
from mooring.model.quotas.resource_names import COUNT, COUNTED, STORAGE, STORAGE_CLASS, resource_of
from mooring.model.values.quantity import NANO

DEVICES_OF_CLASS = ".deviceclass.resource.k8s.io/devices"
MOST_DEVICES = 32
"""What a request for all devices may get at most."""
CLAIMS = "persistentvolumeclaims"
REQUESTS_STORAGE = "requests.storage"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def object_usage(found: Any) -> Amounts:
    """Say what an object takes that is not a pod."""
    if isinstance(found, PersistentVolumeClaim):
        return _claim_usage(found)
    if isinstance(found, Service):
        return _service_usage(found)
    if isinstance(found, ResourceClaim):
        return _resource_claim_usage(found)
    return count_usage(found)


def count_usage(found: Any) -> Amounts:
    """One of its kind: `count/jobs.batch`, and for a few old kinds the bare name as well."""
    resource = resource_of(found)
    usage = {f"{COUNT}{resource}": ONE}
    if resource in COUNTED:
        usage[resource] = ONE
    return usage


def storage_class_of(claim: PersistentVolumeClaim) -> str:
    annotated = (claim.metadata.annotations or {}).get(CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def _claim_usage(claim: PersistentVolumeClaim) -> Amounts:
    usage = count_usage(claim)
    storage = _storage_of(claim)
    if storage is not None:
        usage[REQUESTS_STORAGE] = storage
    prefix = storage_class_of(claim)
    if prefix:
        usage |= {f"{prefix}{STORAGE_CLASS}{name}": usage[name] for name in (CLAIMS, REQUESTS_STORAGE) if name in usage}
    return usage


def _storage_of(claim: PersistentVolumeClaim) -> Amount | None:
    """What a claim asks for, or has been given already if that is more; in whole bytes."""
    requests = (claim.spec.resources.requests if claim.spec.resources else None) or {}
    if STORAGE not in requests:
        return None
    found = read_amount(requests[STORAGE])
    allocated = (claim.status.allocated_resources or {}).get(STORAGE)
    if allocated is not None and read_amount(allocated).nanos > found.nanos:
        found = read_amount(allocated)
    return Amount(-(-found.nanos // NANO) * NANO, found.notation)


def _service_usage(service: Service) -> Amounts:
    """Node ports are counted by what is asked for: when a service is created, none is allocated yet."""
    spec = service.spec
    ports = spec.ports or []
    node_ports, balancers = 0, ZERO
    if spec.type in ("NodePort", "LoadBalancer"):
        node_ports = len(ports)
    if spec.type == "LoadBalancer":
        balancers = ONE
        if spec.allocate_load_balancer_node_ports is False:
            node_ports = sum(1 for port in ports if port.node_port)
    return {
        **count_usage(service),
        "services.loadbalancers": balancers,
        "services.nodeports": count(node_ports),
    }


def _resource_claim_usage(claim: ResourceClaim) -> Amounts:
    """Devices by class; of alternatives the most that may be allocated of each class."""
    usage = count_usage(claim)
    for request in claim.spec.devices.requests or ():
        most: dict[str, int] = {}
        options: Sequence[ExactDeviceRequest] = request.first_available or (
            [request.exactly] if request.exactly else ()
        )
        for option in options:
            most[option.device_class_name] = max(_devices_of(option), most.get(option.device_class_name, 0))
        for name, devices in most.items():
            key = f"{name}{DEVICES_OF_CLASS}"
            usage[key] = usage.get(key, ZERO) + count(devices)
    return usage


def _devices_of(option: ExactDeviceRequest) -> int:
    if option.allocation_mode == "All":
        return MOST_DEVICES
    return (option.count or 1) if option.allocation_mode in ("", "ExactCount") else 0
