"""How much a pod asks for: containers, sidecars, init containers, overhead and pod-level resources, added exactly.

The same aggregation is asked three ways, as kube-scheduler asks it: what counts against a node (`pod_requests`), what
scoring pretends a pod uses that asks for nothing (`nonzero=True`), and without pod-level resources.
"""

from collections.abc import Iterable

from mooring.model.api.meta import Resources
from mooring.model.api.pods import Container, Pod, PodSpec
from mooring.model.values.quantity import NANO, parse_quantity, to_millis, to_units

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

DEFAULT_CPU_NANOS = NANO // 10
"""Scoring counts a container that asks for no CPU as 100m, so that idle pods do not pile up on one node."""
DEFAULT_MEMORY_NANOS = 200 * 1024 * 1024 * NANO
"""Likewise 200Mi of memory."""

MOST_OF_A_NODE = 1 << 50
"""In column units (a pebibyte, 10^12 CPUs): what a node has beyond that does not count. Columns are int64, so a sum of
thousands of such amounts does not wrap around, and neither does their product with a percentage."""
MOST_OF_A_POD = MOST_OF_A_NODE + 1
"""Whoever asks for more asks for this: more than any node has."""
MOST_OF_A_QUOTA = 1 << 57
"""Likewise for quotas, which may be of a whole cluster; sums of dozens do not wrap around."""

Amounts = dict[str, int]
"""Nano-units by resource name."""


def _amounts(resources: Resources | None) -> Amounts:
    return {name: parse_quantity(text) for name, text in resources.items()} if resources else {}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _take_max(total: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        if amount > total.get(name, 0) or name not in total:
            total[name] = amount


def _container_requests(container: Container, nonzero: bool) -> Amounts:
    requests = _amounts(container.resources.requests if container.resources else None)
    if nonzero:
        requests.setdefault(CPU, DEFAULT_CPU_NANOS)
        requests.setdefault(MEMORY, DEFAULT_MEMORY_NANOS)
    return requests


def _aggregate(spec: PodSpec, nonzero: bool) -> Amounts:
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _container_requests(container, nonzero))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers or ():
        requests = _container_requests(container, nonzero)
        if container.restart_policy == "Always":
            _add(total, requests)
            _add(sidecars, requests)
            _take_max(peak, sidecars)
        else:
            # A sidecar started earlier is still running while this init container runs.
            _add(requests, sidecars)
            _take_max(peak, requests)
    _take_max(total, peak)
    return total


def _pod_level(spec: PodSpec) -> Amounts:
    requests = _amounts(spec.resources.requests if spec.resources else None)
    return {name: amount for name, amount in requests.items() if name in (CPU, MEMORY) or name.startswith("hugepages-")}


def pod_requests(pod: Pod, *, nonzero: bool = False, pod_level: bool = True) -> Amounts:
    """Aggregate a pod's requests in nano-units.

    With pod-level requests set, the defaults of `nonzero` fill only what the aggregate lacks, container by container
    no more: that is how kube-scheduler counts pods that already run.
    """
    spec = pod.spec
    declared = _pod_level(spec) if pod_level else {}
    total = _aggregate(spec, nonzero and not declared)
    if declared:
        total.update(declared)
        if nonzero:
            total.setdefault(CPU, DEFAULT_CPU_NANOS)
            total.setdefault(MEMORY, DEFAULT_MEMORY_NANOS)
    _add(total, _amounts(spec.overhead))
    return total


def is_extended(name: str) -> bool:
    """Tell whether a resource is a device or another extended resource, not one of Kubernetes' own."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_scalar(name: str) -> bool:
    return is_extended(name) or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name


def in_columns(name: str) -> bool:
    """Tell whether a resource is accounted for at all; unknown names without a domain are not."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)


def to_column_units(name: str, nanos: int) -> int:
    """Round up to what the columns hold: millis for CPU, whole units for everything else; at most MOST_OF_A_QUOTA."""
    return min(to_millis(nanos) if name == CPU else to_units(nanos), MOST_OF_A_QUOTA)


def to_pod_units(name: str, nanos: int) -> int:
    """Round up what one pod asks for; if that is more than any node can have, it is just that."""
    return min(to_column_units(name, nanos), MOST_OF_A_POD)


def to_node_units(name: str, nanos: int) -> int:
    """Round up what one node has, as far as it counts."""
    return min(to_column_units(name, nanos), MOST_OF_A_NODE)


def whole_requests(amounts: Amounts, names: Iterable[str] | None = None) -> dict[str, int]:
    """Round the amounts of accounted resources to column units."""
    wanted = amounts if names is None else names
    return {name: to_pod_units(name, amounts[name]) for name in wanted if name in amounts and in_columns(name)}


def column_amounts(resources: Resources) -> dict[str, int]:
    """A list of quantities in the units of columns."""
    return whole_requests(_amounts(resources))
