"""What objects other than pods take of a quota: claims their storage, services their ports, every object a count."""

from typing import Any

from mooring.model.api.policies import Service
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.quotas.amounts import ONE, ZERO, Amount, Amounts, count, read_amount
from mooring.model.quotas.resource_names import COUNT, COUNTED, STORAGE, STORAGE_CLASS, resource_of
from mooring.model.values.quantity import NANO

CLAIMS = "persistentvolumeclaims"
REQUESTS_STORAGE = "requests.storage"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def object_usage(found: Any) -> Amounts:
    """Say what an object takes that is not a pod."""
    if isinstance(found, PersistentVolumeClaim):
        return _claim_usage(found)
    if isinstance(found, Service):
        return _service_usage(found)
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
