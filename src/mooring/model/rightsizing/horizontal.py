"""Where a HorizontalPodAutoscaler scales by a resource, its requests stay: the two would fight over it.

More replicas each use less, so that less is recommended; smaller requests make the same usage a higher utilization, so
that there are more replicas, and so on.
"""

from collections.abc import Iterable

from mooring.model.api.autoscaling import HorizontalPodAutoscaler, TargetReference
from mooring.model.rightsizing.amounts import CONTROLLED, CPU
from mooring.model.rightsizing.recommendations import Recommendation


def contested_resources(
    horizontal: Iterable[HorizontalPodAutoscaler], namespace: str, target: TargetReference
) -> dict[str, str]:
    """The resources by which some autoscaler changes the number of a target's pods, with the name of that one."""
    found: dict[str, str] = {}
    for one in sorted(horizontal, key=lambda one: one.metadata.name):
        scaled = one.spec.scale_target_ref
        if one.metadata.namespace != namespace or scaled is None or (scaled.kind, scaled.name) != _named(target):
            continue
        for resource in _resources(one):
            found.setdefault(resource, one.metadata.name)
    return found


def without_contested(recommendations: Iterable[Recommendation], contested: Iterable[str]) -> list[Recommendation]:
    """What is left of recommendations once nothing is said of some resources."""
    names = set(contested)
    if not names:
        return list(recommendations)
    left = []
    for one in recommendations:
        copy = one.copy()
        for amounts in copy.capped:
            for name in names:
                amounts.pop(name, None)
        if copy.target:
            left.append(copy)
    return left


def contest_note(contested: dict[str, str]) -> str:
    """In words, what is not changed and why; empty if nothing is contested."""
    words = [f"{name}, by which HorizontalPodAutoscaler {contested[name]} scales" for name in sorted(contested)]
    return f"requests are left as they are of {' and of '.join(words)}" if words else ""


def _named(target: TargetReference) -> tuple[str, str]:
    return target.kind, target.name


def _resources(one: HorizontalPodAutoscaler) -> list[str]:
    if one.spec.target_cpu_utilization_percentage is not None:
        return [CPU]
    metrics = [each.resource or each.container_resource for each in one.spec.metrics or ()]
    # An autoscaler without metrics scales by CPU.
    names = [metric.name for metric in metrics if metric is not None] if one.spec.metrics else [CPU]
    return [name for name in names if name in CONTROLLED]
