"""Checks of VerticalPodAutoscaler, like those of its admission controller."""

from mooring.model.api.autoscaling import ContainerPolicy, UpdatePolicy, VerticalPodAutoscaler
from mooring.model.api.meta import QuantityText, Resources
from mooring.model.places import show
from mooring.model.rightsizing.amounts import CONTROLLED, CPU
from mooring.model.rightsizing.modes import UPDATE_MODES
from mooring.model.validation.terms import Subject, check_choice, check_quantity
from mooring.model.values.quantity import NANO

CONTAINER_MODES = ("Auto", "Off")
CONTROLLED_VALUES = ("RequestsAndLimits", "RequestsOnly")
CHANGES = ("TargetHigherThanRequests", "TargetLowerThanRequests")


def check_vertical_pod_autoscaler(subject: Subject, found: VerticalPodAutoscaler) -> None:
    """Refuse policies that contradict themselves, and objects that name no target."""
    target = found.spec.target_ref
    if target is None or not target.kind or not target.name:
        subject.refuse("spec.targetRef", expected="the kind and the name of a controller", found="none")
    if found.spec.update_policy is not None:
        _check_update_policy(subject, found.spec.update_policy)
    policies = found.spec.resource_policy.container_policies if found.spec.resource_policy is not None else None
    seen: set[str] = set()
    for index, policy in enumerate(policies or ()):
        path = f"spec.resourcePolicy.containerPolicies[{index}]"
        if policy.container_name in seen:
            expected = "a container without another policy"
            subject.refuse(f"{path}.containerName", expected=expected, found=show(policy.container_name))
        seen.add(policy.container_name)
        _check_container_policy(subject, path, policy)
    recommended = found.status.recommendation.container_recommendations if found.status.recommendation else None
    for index, one in enumerate(recommended or ()):
        path = f"status.recommendation.containerRecommendations[{index}]"
        for field in ("target", "lowerBound", "upperBound", "uncappedTarget"):
            amounts = {"target": one.target, "lowerBound": one.lower_bound, "upperBound": one.upper_bound}
            for name, text in (amounts.get(field, one.uncapped_target) or {}).items():
                check_quantity(subject, f"{path}.{field}.{name}", text)


def _check_update_policy(subject: Subject, policy: UpdatePolicy) -> None:
    if policy.update_mode is not None:
        check_choice(subject, "spec.updatePolicy.updateMode", policy.update_mode, UPDATE_MODES)
    if policy.min_replicas is not None and policy.min_replicas < 1:
        subject.refuse("spec.updatePolicy.minReplicas", expected="at least 1", found=show(policy.min_replicas))
    for index, requirement in enumerate(policy.eviction_requirements or ()):
        path = f"spec.updatePolicy.evictionRequirements[{index}]"
        check_choice(subject, f"{path}.changeRequirement", requirement.change_requirement, CHANGES)
        for position, name in enumerate(requirement.resources):
            check_choice(subject, f"{path}.resources[{position}]", name, CONTROLLED)


def _check_container_policy(subject: Subject, path: str, policy: ContainerPolicy) -> None:
    if not policy.container_name:
        subject.refuse(f"{path}.containerName", expected="the name of a container, or *", found="none")
    if policy.mode is not None:
        check_choice(subject, f"{path}.mode", policy.mode, CONTAINER_MODES)
    if policy.controlled_values is not None:
        check_choice(subject, f"{path}.controlledValues", policy.controlled_values, CONTROLLED_VALUES)
    for index, name in enumerate(policy.controlled_resources or ()):
        check_choice(subject, f"{path}.controlledResources[{index}]", name, CONTROLLED)
    smallest = _check_allowed(subject, f"{path}.minAllowed", policy.min_allowed)
    largest = _check_allowed(subject, f"{path}.maxAllowed", policy.max_allowed)
    for name in sorted(smallest.keys() & largest.keys()):
        if smallest[name] > largest[name]:
            most = show((policy.max_allowed or {})[name])
            found = show((policy.min_allowed or {})[name])
            subject.refuse(f"{path}.minAllowed.{name}", expected=f"at most maxAllowed, which is {most}", found=found)


def _check_allowed(subject: Subject, path: str, resources: Resources | None) -> dict[str, int]:
    return {name: _check_amount(subject, f"{path}.{name}", name, text) for name, text in (resources or {}).items()}


def _check_amount(subject: Subject, path: str, name: str, text: QuantityText) -> int:
    nanos = check_quantity(subject, path, text)
    unit, words = (10**6, "whole millicores") if name == CPU else (NANO, "a whole number")
    if nanos % unit:
        subject.refuse(path, expected=words, found=show(text))
    return nanos
