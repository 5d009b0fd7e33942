"""What may be wrong with a pod after a LimitRange has filled in what it left out, in the API server's words.

A pod that requests 2 CPUs and names no limit is fine until its namespace has a default limit of 1.
"""

from collections.abc import Iterator

from mooring.model.api.pods import Container, PodSpec
from mooring.model.quotas.amounts import read_amounts
from mooring.model.quotas.pod_usage import total_of_containers
from mooring.model.quotas.resource_names import HUGE_PAGES, is_overcommitted
from mooring.model.quotas.scopes import is_pod_level


def pod_faults(spec: PodSpec) -> list[str]:
    """Say where requests exceed limits, or containers the pod as a whole."""
    faults: list[str] = []
    for index, container in enumerate(spec.containers):
        faults += _container_faults(f"spec.containers[{index}].resources.requests", container)
    for index, container in enumerate(spec.init_containers or ()):
        faults += _container_faults(f"spec.initContainers[{index}].resources.requests", container)
    return [*faults, *_whole_faults(spec)]


def _container_faults(path: str, container: Container) -> Iterator[str]:
    if container.resources is None:
        return
    limits = read_amounts(container.resources.limits)
    for name, request in sorted(read_amounts(container.resources.requests).items()):
        limit = limits.get(name)
        if limit is None or request.nanos == limit.nanos:
            continue
        if not is_overcommitted(name):
            yield f'{path}: Invalid value: "{request}": must be equal to {name} limit of {limit}'
        elif request.nanos > limit.nanos:
            yield f'{path}: Invalid value: "{request}": must be less than or equal to {name} limit of {limit}'


def _whole_faults(spec: PodSpec) -> Iterator[str]:
    if spec.resources is None:
        return
    requests, limits = read_amounts(spec.resources.requests), read_amounts(spec.resources.limits)
    for name, total in sorted(total_of_containers(spec, limits=False).items()):
        request = requests.get(name)
        if is_pod_level(name) and request is not None and total.nanos > request.nanos:
            expected = f"must be greater than or equal to aggregate container requests of {total}"
            yield f'spec.resources.requests[{name}]: Invalid value: "{request}": {expected}'
    for name, total in sorted(total_of_containers(spec, limits=True).items()):
        limit = limits.get(name)
        if name.startswith(HUGE_PAGES) and limit is not None and total.nanos > limit.nanos:
            expected = f"must be greater than or equal to aggregate container limits of {total}"
            yield f'spec.resources.limits[{name}]: Invalid value: "{limit}": {expected}'
    for index, container in enumerate(spec.containers):
        own = read_amounts(container.resources.limits if container.resources else None)
        for name, amount in sorted(own.items()):
            limit = limits.get(name)
            if limit is not None and amount.nanos > limit.nanos:
                expected = f"must be less than or equal to pod limits of {limit}"
                yield f'spec.resources.containers[{index}][{name}].limits: Invalid value: "{amount}": {expected}'
