"""A recommendation as a change of a pod in place: the patch, and whether the API server would take it."""

from collections.abc import Iterable, Mapping

from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.meta import Resources
from mooring.model.api.pods import Pod, ResourceRequirements
from mooring.model.pod_patch import PodPatch
from mooring.model.rightsizing.amounts import CPU, Amounts, read_amounts
from mooring.model.rightsizing.applying import resources_for_pod
from mooring.model.rightsizing.limit_ranges import Bounds
from mooring.model.rightsizing.recommendations import Recommendation
from mooring.model.validation.pod_updates import forbidden_change


def amount_quantity(name: str, amount: int) -> str:
    """An amount as manifests have it: `250m` of CPU, bytes of memory."""
    return f"{amount}m" if name == CPU else str(amount)


def quantities(amounts: Mapping[str, int]) -> Resources:
    """Amounts by resource as manifests have them."""
    return {name: amount_quantity(name, amount) for name, amount in amounts.items()}


def resize_patch(
    pod: Pod, vpa: VerticalPodAutoscaler, capped: list[Recommendation], container_bounds: Bounds | None
) -> PodPatch:
    """The change that gives a pod what is recommended for it; without resources where it has that already."""
    changed: dict[str, ResourceRequirements] = {}
    specs = {container.name: container.resources or ResourceRequirements() for container in pod.spec.containers}
    for one in resources_for_pod(pod, vpa, capped, container_bounds):
        had = specs[one.container]
        requests, limits = _changed(had.requests, one.requests), _changed(had.limits, one.limits)
        if requests or limits:
            changed[one.container] = ResourceRequirements(requests=quantities(requests), limits=quantities(limits))
    return PodPatch.of(resources=changed)


def targets_patch(recommendations: Iterable[Recommendation]) -> PodPatch:
    """The change that gives containers their targets as requests, whatever becomes of their limits."""
    return PodPatch.of(
        resources={one.container: ResourceRequirements(requests=quantities(one.target)) for one in recommendations}
    )


def why_not_in_place(pod: Pod, patch: PodPatch) -> str:
    """Why the API server would refuse a change of a running pod; empty if it would not."""
    problem = forbidden_change(pod.spec, patch.apply_to_spec(pod.spec))
    if problem is None:
        return ""
    if "quality-of-service" in problem:
        return "it would have another quality-of-service class, which a running pod cannot change"
    return problem


def _changed(had: Resources | None, wanted: Amounts) -> Amounts:
    before = read_amounts(had)
    return {name: amount for name, amount in wanted.items() if before.get(name) != amount}
