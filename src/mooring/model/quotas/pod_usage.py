"""What a pod takes of a quota: its requests and limits added up, under the names that quotas have for them."""

from collections.abc import Iterable

from mooring.model.api.meta import Resources
from mooring.model.api.pods import Container, PodSpec
from mooring.model.quotas.amounts import ONE, Amounts, read_amounts
from mooring.model.quotas.resource_names import COMPUTE, COUNT, HUGE_PAGES, REQUESTS, is_device
from mooring.model.quotas.scopes import has_pod_level_resources, is_pod_level
from mooring.model.values.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

COUNT_PODS = f"{COUNT}{PODS}"
_POD_RESOURCES = frozenset(
    (*COMPUTE, PODS, COUNT_PODS, *(f"{prefix}{EPHEMERAL_STORAGE}" for prefix in ("", REQUESTS, "limits.")))
)


def is_pod_resource(name: str) -> bool:
    """Tell whether pods are all that a quota's resource is about."""
    if name in _POD_RESOURCES or name.startswith((HUGE_PAGES, REQUESTS + HUGE_PAGES)):
        return True
    return name.startswith(REQUESTS) and is_device(name.removeprefix(REQUESTS))


def pod_usage(spec: PodSpec, *, is_terminal: bool = False) -> Amounts:
    """Say what a pod takes. One that is over still exists, and takes nothing else."""
    usage = {COUNT_PODS: ONE}
    if not is_terminal:
        usage |= _named_for_quota(pod_requests(spec), pod_limits(spec))
    return usage


def missing_compute(spec: PodSpec, hard: Iterable[str]) -> str:
    """Say which container leaves out CPU or memory that a quota limits; nothing where none does.

    A pod that states its resources as a whole need not state them for its containers.
    """
    required = [name for name in COMPUTE if name in set(hard)]
    if not required or has_pod_level_resources(spec):
        return ""
    missing: dict[str, set[str]] = {}
    for container in (*spec.containers, *(spec.init_containers or ())):
        stated = _named_for_quota(_requests(container), _limits(container))
        for name in required:
            if name not in stated:
                missing.setdefault(name, set()).add(container.name)
    if not missing:
        return ""
    found = "; ".join(f"{name} for: {','.join(sorted(names))}" for name, names in sorted(missing.items()))
    return f"must specify {found}"


def pod_requests(spec: PodSpec) -> Amounts:
    """Add up what a pod requests; its own word, if it has one, goes before its containers'."""
    total = total_of_containers(spec, limits=False)
    _take_pod_level(total, spec.resources.requests if spec.resources else None)
    _add(total, read_amounts(spec.overhead))
    return total


def pod_limits(spec: PodSpec) -> Amounts:
    """Add up a pod's limits. Overhead counts only where there is a limit to which it could be added."""
    total = total_of_containers(spec, limits=True)
    _take_pod_level(total, spec.resources.limits if spec.resources else None)
    _add(total, {name: more for name, more in read_amounts(spec.overhead).items() if _is_set(total, name)})
    return total


def total_of_containers(spec: PodSpec, *, limits: bool) -> Amounts:
    """Add up containers and sidecars, or take the largest step of initialising, whichever is more."""
    of = _limits if limits else _requests
    total: Amounts = {}
    for container in spec.containers:
        _add(total, of(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers or ():
        needed = of(container)
        if container.restart_policy == "Always":
            _add(total, needed)
            _add(sidecars, needed)
            needed = sidecars
        else:
            _add(needed, sidecars)
        _take_max(peak, needed)
    _take_max(total, peak)
    return total


def _requests(container: Container) -> Amounts:
    return read_amounts(container.resources.requests if container.resources else None)


def _limits(container: Container) -> Amounts:
    return read_amounts(container.resources.limits if container.resources else None)


def _take_pod_level(total: Amounts, stated: Resources | None) -> None:
    for name, amount in read_amounts(stated).items():
        if is_pod_level(name):
            total[name] = amount


def _is_set(amounts: Amounts, name: str) -> bool:
    return name in amounts and amounts[name].nanos != 0


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        known = total.get(name)
        total[name] = amount if known is None else known + amount


def _take_max(total: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        known = total.get(name)
        if known is None or amount.nanos > known.nanos:
            total[name] = amount


def _named_for_quota(requests: Amounts, limits: Amounts) -> Amounts:
    usage = {PODS: ONE}
    for name in (CPU, MEMORY, EPHEMERAL_STORAGE):
        if name in requests:
            usage[name] = usage[f"{REQUESTS}{name}"] = requests[name]
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith(HUGE_PAGES):
            usage[name] = usage[f"{REQUESTS}{name}"] = amount
        elif is_device(name):
            usage[f"{REQUESTS}{name}"] = amount
    return usage
