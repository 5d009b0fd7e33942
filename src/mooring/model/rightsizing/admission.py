"""What a new pod gets from the autoscaler of its controller before it is created, as the admission controller of the
Vertical Pod Autoscaler gives it."""

from collections.abc import Iterable

from mooring.model.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from mooring.model.api.pods import Pod
from mooring.model.pod_patch import PodPatch
from mooring.model.quotas.objects import LimitRange
from mooring.model.rightsizing.horizontal import contested_resources, without_contested
from mooring.model.rightsizing.limit_ranges import bounds_of
from mooring.model.rightsizing.modes import OFF, update_mode
from mooring.model.rightsizing.recommendations import cap_for_pod, read_recommendations
from mooring.model.rightsizing.resizing import resize_patch

Controller = tuple[str, str]
"""Kind and name."""


def autoscaler_for(
    autoscalers: Iterable[VerticalPodAutoscaler], namespace: str, controllers: Iterable[Controller]
) -> VerticalPodAutoscaler | None:
    """The autoscaler that gives new pods of these controllers their amounts: of several, the oldest."""
    named = set(controllers)
    found = [
        one
        for one in autoscalers
        if one.metadata.namespace == namespace
        and one.spec.target_ref is not None
        and (one.spec.target_ref.kind, one.spec.target_ref.name) in named
        and one.status.recommendation is not None
        and update_mode(one) != OFF
    ]
    return min(found, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name), default=None)


def patch_for_new_pod(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    limit_ranges: Iterable[LimitRange],
    horizontal: Iterable[HorizontalPodAutoscaler] = (),
) -> PodPatch:
    """The change that gives a new pod what is recommended for it, within the bounds of its namespace.

    Resources by which another autoscaler scales stay as they are.
    """
    target = vpa.spec.target_ref
    contested = contested_resources(horizontal, pod.metadata.namespace, target) if target is not None else {}
    ranges = [one for one in limit_ranges if one.metadata.namespace == pod.metadata.namespace]
    containers = bounds_of(ranges, "Container")
    recommended = without_contested(read_recommendations(vpa.status.recommendation) or [], contested)
    capped = cap_for_pod(recommended, vpa.spec.resource_policy, pod, containers, bounds_of(ranges, "Pod"))
    return resize_patch(pod, vpa, capped, containers)
