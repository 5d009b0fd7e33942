"""Which running pods are to be updated to their recommendation, and in which order."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mooring.model.api.autoscaling import EvictionRequirement, VerticalPodAutoscaler
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.rightsizing.amounts import CONTROLLED, CPU, Amounts, current_resources
from mooring.model.rightsizing.recommendations import Recommendation, is_off

OBSERVED_CONTAINERS = "vpaObservedContainers"
"""The annotation with the containers that right-sizing knew when the pod was created."""
OOM_KILLED = "OOMKilled"


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """When a pod is far enough from its recommendation; defaults are those of the Vertical Pod Autoscaler's updater."""

    min_change: float = 0.1
    """The relative change from which a pod that has run for long is updated."""
    lifetime_seconds: float = 12 * 3600
    """How long a pod within its recommended range runs before it is updated at all."""
    oom_seconds: float = 600
    """A container that is killed for want of memory within this time of its start makes its pod due at once."""


@dataclass(frozen=True, slots=True)
class UpdatePriority:
    """How far a pod is from its recommendation."""

    is_outside: bool
    """Whether a request is outside of its recommended range."""
    grows: bool
    change: float
    """The sum over resources of the relative difference between all requests and all targets of the pod."""


def pods_to_update(
    vpa: VerticalPodAutoscaler,
    pods: Iterable[Pod],
    cap: Callable[[Pod], list[Recommendation]],
    now: float,
    settings: UpdateSettings = UpdateSettings(),
) -> list[Pod]:
    """The pods to update, the most urgent first, before disruption budgets and replica counts are looked at."""
    due: list[tuple[UpdatePriority, Pod, list[Recommendation]]] = []
    for pod in pods:
        capped = cap(pod)
        priority = update_priority(pod, capped)
        if _is_due(vpa, pod, priority, now, settings):
            due.append((priority, pod, capped))
    due.sort(key=lambda one: (one[0].grows, one[0].change), reverse=True)
    return [pod for _, pod, capped in due if _is_allowed(vpa, pod, capped)]


def update_priority(pod: Pod, capped: Iterable[Recommendation]) -> UpdatePriority:
    """Compare what a pod requests with what is recommended for it."""
    by_container = {recommendation.container: recommendation for recommendation in capped}
    observed = _observed_containers(pod)
    is_outside = grows = False
    requested: Amounts = {}
    recommended: Amounts = {}
    for container in pod.spec.containers:
        recommendation = by_container.get(container.name)
        if recommendation is None or (observed is not None and container.name not in observed):
            continue
        requests, _ = current_resources(pod, container)
        for name, target in recommendation.target.items():
            recommended[name] = recommended.get(name, 0) + target
            request = requests.get(name)
            if request is None:
                is_outside = grows = True
                continue
            requested[name] = requested.get(name, 0) + request
            grows = grows or target > request
            lower, upper = recommendation.lower_bound.get(name), recommendation.upper_bound.get(name)
            is_outside = is_outside or (lower is not None and request < lower)
            is_outside = is_outside or (upper is not None and request > upper)
    change = 0.0
    for name in CONTROLLED:
        if name in recommended:
            # In thousandths of a unit, of which a request has at least one.
            factor = 1 if name == CPU else 1000
            total = max(float(requested.get(name, 0) * factor), 1.0)
            change += abs(total - float(recommended[name] * factor)) / total
    return UpdatePriority(is_outside, grows, change)


def why_not_due(
    vpa: VerticalPodAutoscaler,
    pod: Pod,
    capped: Sequence[Recommendation],
    now: float,
    settings: UpdateSettings = UpdateSettings(),
) -> str:
    """Why a pod is not to be updated now."""
    priority = update_priority(pod, capped)
    if not capped:
        return "nothing is recommended for it"
    if not priority.change:
        return "it has what is recommended"
    if _is_due(vpa, pod, priority, now, settings):
        return "the change is not one that evictionRequirements ask for"
    if priority.change < settings.min_change:
        return f"its requests are within the bounds, and {priority.change:.0%} from the target"
    hours = settings.lifetime_seconds / 3600
    return f"its requests are within the bounds, and it has run for less than {hours:g}h"


def _is_due(
    vpa: VerticalPodAutoscaler, pod: Pod, priority: UpdatePriority, now: float, settings: UpdateSettings
) -> bool:
    was_killed = _was_killed_early(vpa, pod, now, settings)
    if was_killed and not priority.change:
        return False
    if priority.is_outside or was_killed:
        return True
    started = timestamp_seconds(pod.status.start_time)
    if started is None or now < started + settings.lifetime_seconds:
        return False
    return priority.change >= settings.min_change


def _was_killed_early(vpa: VerticalPodAutoscaler, pod: Pod, now: float, settings: UpdateSettings) -> bool:
    """Whether a container was killed for want of memory soon after its start, and just now."""
    observed = _observed_containers(pod)
    for status in pod.status.container_statuses or ():
        if (observed is not None and status.name not in observed) or is_off(vpa.spec.resource_policy, status.name):
            continue
        terminated = status.last_state.terminated if status.last_state is not None else None
        if terminated is None or terminated.reason != OOM_KILLED:
            continue
        started, finished = timestamp_seconds(terminated.started_at), timestamp_seconds(terminated.finished_at)
        if started is None or finished is None:
            continue
        if finished - started < settings.oom_seconds and now - finished < settings.oom_seconds:
            return True
    return False


def _observed_containers(pod: Pod) -> set[str] | None:
    text = (pod.metadata.annotations or {}).get(OBSERVED_CONTAINERS)
    return None if text is None else {name.strip() for name in text.split(",")}


def _is_allowed(vpa: VerticalPodAutoscaler, pod: Pod, capped: Iterable[Recommendation]) -> bool:
    """Whether some container changes in the direction that the policy asks for."""
    policy = vpa.spec.update_policy
    if policy is None:
        return True
    by_container = {recommendation.container: recommendation for recommendation in capped}
    for container in pod.spec.containers:
        recommendation = by_container.get(container.name)
        if recommendation is None:
            continue
        requests, _ = current_resources(pod, container)
        if any(name not in requests for name in CONTROLLED):
            return True
        if all(_holds(one, requests, recommendation.target) for one in policy.eviction_requirements or ()):
            return True
    return False


def _holds(requirement: EvictionRequirement, requests: Amounts, target: Amounts) -> bool:
    for name in requirement.resources:
        change = target.get(name, 0) - requests.get(name, 0)
        if change > 0 and requirement.change_requirement == "TargetHigherThanRequests":
            return True
        if change < 0 and requirement.change_requirement == "TargetLowerThanRequests":
            return True
    return False
