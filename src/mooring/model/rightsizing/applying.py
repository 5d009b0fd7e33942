"""What the containers of a new pod get from a recommendation: requests, and the limits that follow them."""

from dataclasses import dataclass

from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.pods import Container, Pod
from mooring.model.rightsizing.amounts import (
    CONTROLLED,
    Amounts,
    current_resources,
    proportional_limit,
    read_amounts,
)
from mooring.model.rightsizing.limit_ranges import Bounds
from mooring.model.rightsizing.recommendations import OFF, Recommendation, controls_limits


@dataclass(frozen=True, slots=True)
class ContainerResources:
    """The CPU and memory of one container."""

    container: str
    requests: Amounts
    limits: Amounts


def resources_for_pod(
    pod: Pod, vpa: VerticalPodAutoscaler, capped: list[Recommendation], container_bounds: Bounds | None
) -> list[ContainerResources]:
    """What each container of a pod has once the recommendation, capped for this pod, is applied to it."""
    by_container = {recommendation.container: recommendation for recommendation in capped}
    return [_resources(pod, vpa, one, by_container.get(one.name), container_bounds) for one in pod.spec.containers]


def _resources(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    container: Container,
    recommendation: Recommendation | None,
    bounds: Bounds | None,
) -> ContainerResources:
    spec = container.resources
    requests = read_amounts(spec.requests) if spec is not None else {}
    limits = read_amounts(spec.limits) if spec is not None else {}
    if recommendation is None:
        return ContainerResources(container.name, requests, limits)
    mode = vpa.spec.update_policy.update_mode if vpa.spec.update_policy is not None else None
    policy = None if mode == OFF else vpa.spec.resource_policy
    if controls_limits(policy, container.name):
        current_requests, current_limits = current_resources(pod, container)
        default = bounds.default if bounds is not None else {}
        for name in CONTROLLED:
            limit = proportional_limit(
                name,
                current_limits.get(name, 0),
                current_requests.get(name, 0),
                recommendation.target.get(name, 0),
                default.get(name, 0),
            )
            if limit is not None:
                limits[name] = limit
    return ContainerResources(container.name, requests | recommendation.target, limits)
