"""Recommendations for the containers of a pod, and how policies, limits and LimitRanges cap them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mooring.model.api.autoscaling import ContainerPolicy, PodRecommendation, ResourcePolicy
from mooring.model.api.pods import Pod
from mooring.model.rightsizing.amounts import (
    CONTROLLED,
    MEMORY,
    Amounts,
    current_resources,
    proportional_limit,
    read_amounts,
    scale,
)
from mooring.model.rightsizing.limit_ranges import Bounds

ALL_CONTAINERS = "*"
REQUESTS_ONLY = "RequestsOnly"
OFF = "Off"


@dataclass(slots=True)
class Recommendation:
    """What is recommended for one container."""

    container: str
    target: Amounts = field(default_factory=dict)
    lower_bound: Amounts = field(default_factory=dict)
    upper_bound: Amounts = field(default_factory=dict)
    uncapped_target: Amounts = field(default_factory=dict)

    @property
    def capped(self) -> tuple[Amounts, Amounts, Amounts]:
        """The amounts to which caps apply."""
        return self.target, self.lower_bound, self.upper_bound

    def copy(self) -> "Recommendation":
        amounts = (self.target, self.lower_bound, self.upper_bound, self.uncapped_target)
        return Recommendation(self.container, *map(dict, amounts))


def read_recommendations(recommendation: PodRecommendation | None) -> list[Recommendation] | None:
    """The recommendation in an object's status; None where there is none."""
    if recommendation is None:
        return None
    return [
        Recommendation(
            one.container_name,
            read_amounts(one.target),
            read_amounts(one.lower_bound),
            read_amounts(one.upper_bound),
            read_amounts(one.uncapped_target),
        )
        for one in recommendation.container_recommendations or ()
    ]


def container_policy(policy: ResourcePolicy | None, container: str) -> ContainerPolicy | None:
    """The policy of a container: its own, else the one for all containers."""
    for_all = None
    for one in (policy.container_policies if policy is not None else None) or ():
        if one.container_name == container:
            return one
        if one.container_name == ALL_CONTAINERS:
            for_all = one
    return for_all


def is_off(policy: ResourcePolicy | None, container: str) -> bool:
    """Whether a container is not right-sized at all."""
    own = container_policy(policy, container)
    return own is not None and own.mode == OFF


def controls_limits(policy: ResourcePolicy | None, container: str) -> bool:
    """Whether limits follow the requests of a container."""
    own = container_policy(policy, container)
    return own is None or own.controlled_values != REQUESTS_ONLY


def cap_by_policy(
    recommendations: Iterable[Recommendation], policy: ResourcePolicy | None, max_allowed: Mapping[str, int]
) -> list[Recommendation]:
    """Keep recommendations within what their policies allow; `max_allowed` holds where a policy names no maximum."""
    capped = []
    for recommendation in recommendations:
        one = recommendation.copy()
        own = container_policy(policy, one.container)
        smallest = read_amounts(own.min_allowed) if own is not None else {}
        largest = {**max_allowed, **(read_amounts(own.max_allowed) if own is not None else {})}
        for amounts in one.capped:
            _keep_between(amounts, smallest, largest)
        capped.append(one)
    return capped


def cap_for_pod(
    recommendations: list[Recommendation],
    policy: ResourcePolicy | None,
    pod: Pod,
    container_bounds: Bounds | None,
    pod_bounds: Bounds | None,
) -> list[Recommendation]:
    """What is recommended for the containers of this pod: within LimitRanges, then policies, then limits.

    Limits hold recommendations down only where right-sizing does not change them.
    """
    if pod_bounds is not None:
        recommendations = _cap_by_pod_bounds(recommendations, pod, pod_bounds)
    containers = {container.name: container for container in pod.spec.containers}
    capped = []
    for recommendation in recommendations:
        container = containers.get(recommendation.container)
        if container is None:
            continue
        one = recommendation.copy()
        requests, limits = current_resources(pod, container)
        own = container_policy(policy, container.name)
        for amounts in one.capped:
            if container_bounds is not None:
                _cap_by_container_bounds(amounts, requests, limits, container_bounds)
            if own is not None:
                _keep_between(amounts, read_amounts(own.min_allowed), read_amounts(own.max_allowed))
            if not controls_limits(policy, container.name):
                _keep_between(amounts, {}, limits, zero_is_unset=False)
        capped.append(one)
    return capped


def _keep_between(
    amounts: Amounts, smallest: Mapping[str, int], largest: Mapping[str, int], *, zero_is_unset: bool = True
) -> None:
    for name in amounts:
        if smallest.get(name):
            amounts[name] = max(amounts[name], smallest[name])
        if name in largest and (largest[name] or not zero_is_unset):
            amounts[name] = min(amounts[name], largest[name])


def _cap_by_container_bounds(amounts: Amounts, requests: Amounts, limits: Amounts, bounds: Bounds) -> None:
    """Keep requests, and the limits that follow from them, within the LimitRange for containers."""
    largest = _boundary_requests(requests, limits, bounds.max, bounds.default)
    smallest = _boundary_requests(requests, limits, bounds.min, bounds.default)
    for name, amount in (bounds.min or {}).items():
        smallest[name] = max(smallest.get(name, 0), amount)
    _keep_between(amounts, smallest, largest)


def _boundary_requests(requests: Amounts, limits: Amounts, boundary: Amounts | None, default: Amounts) -> Amounts:
    """The requests at which limits, which keep their ratio to requests, are at a boundary; 0 where there is none."""
    if boundary is None:
        return {}
    found: Amounts = {}
    for name in CONTROLLED:
        limit = limits.get(name, 0) or default.get(name, 0)
        request = requests.get(name, 0)
        if not limit:
            found[name] = 0
        elif not request:
            found[name] = boundary.get(name, 0)
        else:
            found[name] = scale(name, request, limit, boundary.get(name, 0))
    return found


def _cap_by_pod_bounds(recommendations: list[Recommendation], pod: Pod, bounds: Bounds) -> list[Recommendation]:
    """Scale what all containers get together into the LimitRange for pods."""
    capped = [recommendation.copy() for recommendation in recommendations]
    known = {recommendation.container for recommendation in capped}
    for container in pod.spec.containers:
        requests, _ = current_resources(pod, container)
        if container.name not in known and requests:
            capped.append(Recommendation(container.name, target=requests))
    by_container = {recommendation.container: recommendation for recommendation in capped}
    for which in ("upper_bound", "target", "lower_bound"):
        for name in CONTROLLED:
            _scale_together(by_container, pod, bounds, name, which)
    return capped


def _scale_together(
    recommendations: Mapping[str, Recommendation], pod: Pod, bounds: Bounds, name: str, which: str
) -> None:
    smallest, largest = (bounds.min or {}).get(name, 0), (bounds.max or {}).get(name, 0)
    total_limit = total = 0
    current = {container.name: current_resources(pod, container) for container in pod.spec.containers}
    for container, (requests, limits) in current.items():
        recommendation = recommendations.get(container)
        request = requests.get(name, 0)
        wanted = request if recommendation is None else getattr(recommendation, which).get(name, 0)
        limit = proportional_limit(name, limits.get(name, 0), request, wanted, bounds.default.get(name, 0))
        total_limit += limit or 0
        total += wanted
    if smallest <= total_limit and smallest <= total and (not largest or largest >= total_limit):
        return
    if not total_limit:
        return
    if smallest > total:
        base, result, round_up = total, smallest, True
    else:
        base, round_up = total_limit, False
        result = largest if largest and largest < total_limit else smallest
    for container in current:
        recommendation = recommendations.get(container)
        if recommendation is not None:
            amounts = getattr(recommendation, which)
            scaled = scale(name, amounts.get(name, 0), base, result, round_up=round_up)
            # The original rounds nothing down to minus one byte; its answers are kept.
            amounts[name] = -1 if name == MEMORY and not scaled and not round_up else scaled
