"""What the API server does to objects on creation, as far as scheduling reads it.

Everything here changes the object in place and may be done twice without harm, because objects dumped from a cluster
have their defaults already. The tolerations that the DefaultTolerationSeconds admission adds are left out: they are
about eviction, not about where a pod may go.
"""

from collections.abc import Iterable

from mooring.model.api.meta import Namespace, Resources
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Container, Pod, PodSpec, ResourceRequirements
from mooring.model.api.volumes import ObjectReference, PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.model.api.workloads import Job, JobTemplateSpec
from mooring.model.values.durations import JOB_DEADLINE
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import CPU, MEMORY, pod_requests

DEFAULT_NAMESPACE = "default"
DEFAULT_SCHEDULER = "default-scheduler"
DEFAULT_GRACE_SECONDS = 30
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
HOSTNAME_LABEL = "kubernetes.io/hostname"
DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"

_MILLI = 10**6


def default_pod_spec(spec: PodSpec) -> None:
    """Fill in a pod's spec, apart from its priority, which needs the priority classes."""
    spec.restart_policy = spec.restart_policy or "Always"
    spec.scheduler_name = spec.scheduler_name or DEFAULT_SCHEDULER
    if spec.termination_grace_period_seconds is None:
        spec.termination_grace_period_seconds = DEFAULT_GRACE_SECONDS
    for container in spec.containers:
        _default_container(container, spec.host_network)
    for container in spec.init_containers or ():
        _default_container(container, spec.host_network)
    if spec.overhead:
        _round_up(spec.overhead)
    if spec.resources is not None:
        _default_pod_level(spec, spec.resources)


def _default_container(container: Container, host_network: bool) -> None:
    if container.resources is not None:
        _requests_from_limits(container.resources)
    for port in container.ports or ():
        port.protocol = port.protocol or "TCP"
        if host_network and port.host_port == 0:
            port.host_port = port.container_port


def _requests_from_limits(resources: ResourceRequirements) -> None:
    if resources.requests:
        _round_up(resources.requests)
    if resources.limits:
        _round_up(resources.limits)
        resources.requests = {**resources.limits, **(resources.requests or {})}


def _round_up(resources: Resources) -> None:
    """The API keeps thousandths and rounds anything finer up, value by value, before anyone adds them."""
    for name, text in resources.items():
        nanos = parse_quantity(text)
        if nanos % _MILLI:
            resources[name] = f"{-(-nanos // _MILLI)}m"


def _default_pod_level(spec: PodSpec, resources: ResourceRequirements) -> None:
    """Default pod-level resources as the API server does (KEP-2837), in its order.

    Huge page limits come from the containers' limits where the pod names neither limit nor request for the size. Then,
    only if there are pod-level limits: requests for CPU and memory come from what the containers request together, and
    whatever is still missing comes from the pod-level limits.
    """
    if not resources.limits and not resources.requests:
        return
    for amounts in (resources.limits, resources.requests):
        if amounts:
            _round_up(amounts)
    limits, requests = dict(resources.limits or {}), dict(resources.requests or {})
    for name, nanos in _container_limits(spec).items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, _to_text(nanos))
    if limits:
        resources.limits = limits
        containers = PodSpec(containers=spec.containers, init_containers=spec.init_containers)
        for name, nanos in pod_requests(Pod(spec=containers), pod_level=False).items():
            if name in (CPU, MEMORY):
                requests.setdefault(name, _to_text(nanos))
        for name, text in limits.items():
            if name in (CPU, MEMORY) or name.startswith("hugepages-"):
                requests.setdefault(name, text)
    resources.requests = requests or None


def _container_limits(spec: PodSpec) -> dict[str, int]:
    """Add up limits by the rule that adds up requests."""

    def with_limits_as_requests(container: Container) -> Container:
        limits = container.resources.limits if container.resources else None
        return Container(restart_policy=container.restart_policy, resources=ResourceRequirements(requests=limits))

    swapped = PodSpec(
        containers=[with_limits_as_requests(container) for container in spec.containers],
        init_containers=[with_limits_as_requests(container) for container in spec.init_containers or ()],
    )
    return pod_requests(Pod(spec=swapped), pod_level=False)


def _to_text(nanos: int) -> str:
    """Print an exact quantity: whole units where it is whole, thousandths otherwise (the API keeps no finer ones)."""
    millis = -(-nanos // _MILLI)
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"


def default_node(node: Node) -> None:
    if node.status.allocatable is None and node.status.capacity is not None:
        node.status.allocatable = dict(node.status.capacity)
    if node.status.allocatable:
        _round_up(node.status.allocatable)
    labels = node.metadata.labels
    if labels is None:
        node.metadata.labels = {HOSTNAME_LABEL: node.metadata.name}
    elif HOSTNAME_LABEL not in labels:  # the kubelet sets it
        labels[HOSTNAME_LABEL] = node.metadata.name


def default_namespace(namespace: Namespace) -> None:
    labels = namespace.metadata.labels or {}
    labels[NAMESPACE_NAME_LABEL] = namespace.metadata.name
    namespace.metadata.labels = labels


def default_storage_class(storage_class: StorageClass) -> None:
    storage_class.volume_binding_mode = storage_class.volume_binding_mode or "Immediate"


def default_storage(
    default_class: str | None, claims: Iterable[PersistentVolumeClaim], volumes: Iterable[PersistentVolume]
) -> None:
    """Fill in storage, and let claims that name their volume be bound to it.

    In a cluster the volume controller binds such a claim and records it on both sides. Offline nobody does, and whoever
    writes `volumeName` means the volume to be used: so a claim with a volume name and no phase counts as bound, and its
    volume as taken. A phase that is given is believed. `default_class` names the class of claims that name none.
    """
    by_name = {volume.metadata.name: volume for volume in volumes}
    for volume in by_name.values():
        volume.spec.volume_mode = volume.spec.volume_mode or "Filesystem"
    for claim in claims:
        spec = claim.spec
        spec.volume_mode = spec.volume_mode or "Filesystem"
        if spec.storage_class_name is None:
            spec.storage_class_name = default_class
        if not claim.status.phase:
            claim.status.phase = "Bound" if spec.volume_name else "Pending"
            if spec.volume_name:
                _bind(claim, by_name.get(spec.volume_name))
    for volume in by_name.values():
        if not volume.status.phase:
            volume.status.phase = "Bound" if volume.spec.claim_ref is not None else "Available"


def _bind(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> None:
    claim.metadata.annotations = {**(claim.metadata.annotations or {}), BIND_COMPLETED: "yes"}
    if volume is not None and volume.spec.claim_ref is None:
        volume.spec.claim_ref = ObjectReference(
            kind="PersistentVolumeClaim",
            namespace=claim.metadata.namespace,
            name=claim.metadata.name,
            uid=claim.metadata.uid,
        )


def default_class(classes: Iterable[StorageClass]) -> str | None:
    """Name the default class; of several the newest, then the first by name, as the admission plugin picks."""
    found = [storage_class for storage_class in classes if _is_default(storage_class)]
    found.sort(key=lambda storage_class: storage_class.metadata.name)
    found.sort(key=lambda storage_class: storage_class.metadata.creation_timestamp or "", reverse=True)
    return found[0].metadata.name if found else None


def _is_default(storage_class: StorageClass) -> bool:
    annotations = storage_class.metadata.annotations or {}
    return any(annotations.get(name) == "true" for name in DEFAULT_CLASS_ANNOTATIONS)


def default_job(job: Job | JobTemplateSpec) -> None:
    """Let a Job and its pods say how long all of it may run at most."""
    seconds = job.spec.active_deadline_seconds
    if seconds is not None:
        for metadata in (job.metadata, job.spec.template.metadata):
            metadata.annotations = {**(metadata.annotations or {}), JOB_DEADLINE: f"{seconds}s"}
