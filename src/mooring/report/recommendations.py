"""What `mooring recommend` shows, as typed data: amounts are cores and bytes."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from mooring.actions.resize.changes import PodChange
from mooring.model.api.pods import ResourceRequirements
from mooring.model.rightsizing.amounts import Amounts, current_resources, read_amounts
from mooring.model.rightsizing.gpus import GpuSample, needed_of
from mooring.model.rightsizing.recommendations import Recommendation
from mooring.report.amounts import in_units


class ContainerAdvice(Struct, rename="camel", omit_defaults=True):
    """What is recommended for the containers of one name."""

    container: str
    why: str
    samples: int = 0
    requests: dict[str, float] = {}
    """What the first pod has now."""
    lower_bound: dict[str, float] = {}
    target: dict[str, float] = {}
    upper_bound: dict[str, float] = {}
    uncapped_target: dict[str, float] = {}


class ContainerChange(Struct, rename="camel", omit_defaults=True):
    """What one container of one pod has, and would have."""

    container: str
    requests: dict[str, float]
    new_requests: dict[str, float]
    limits: dict[str, float] = {}
    new_limits: dict[str, float] = {}


class PodAdvice(Struct, rename="camel", omit_defaults=True):
    """What becomes of one pod: it is resized in place, evicted, or stays as it is (nothing)."""

    pod: str
    change: str
    reason: str
    node: str = ""
    containers: list[ContainerChange] = []


class AutoscalerAdvice(Struct, rename="camel", omit_defaults=True):
    """One VerticalPodAutoscaler, the containers that it recommends for, and what becomes of the pods."""

    namespace: str
    name: str
    target: str
    update_mode: str
    containers: list[ContainerAdvice]
    pods: list[PodAdvice]
    samples: int = 0
    measured_from: str = ""
    measured_to: str = ""
    problem: str = ""
    """Why nothing is recommended, or can be applied; empty where something can."""


class GpuAdvice(Struct, rename="camel"):
    """What is recommended instead of a whole GPU that a pod has."""

    pod: str
    gpu: str
    model: str
    change: str
    """keep, idle, MIG or MPS"""
    resource: str
    saving: float
    """The part of a GPU that is left to others."""
    why: str


class Recommendations(Struct, rename="camel", omit_defaults=True):
    """All autoscalers, in the order of their names, and all GPUs that were measured, in that of their pods."""

    autoscalers: list[AutoscalerAdvice]
    gpus: list[GpuAdvice] = []


def gpu_advice(samples: Iterable[GpuSample]) -> list[GpuAdvice]:
    """What each pod needs of each GPU that it has."""
    by_card: dict[tuple[str, str], list[GpuSample]] = {}
    for one in samples:
        by_card.setdefault((f"{one.namespace}/{one.pod}", one.card), []).append(one)
    advice = []
    for (pod, card), own in sorted(by_card.items()):
        need = needed_of(own)
        why = f"{need.why}; {len(own)} sample{'s' if len(own) > 1 else ''}"
        advice.append(GpuAdvice(pod, card, own[0].model, need.change, need.resource, round(need.saving, 3), why))
    return advice


def shown_amounts(amounts: Mapping[str, int]) -> dict[str, float]:
    """Amounts as cores and bytes."""
    return {name: in_units(name, amount) for name, amount in amounts.items()}


def container_advice(
    shown: Recommendation, raw: Recommendation, requests: Amounts, samples: int, why: str
) -> ContainerAdvice:
    """A container's row; `shown` is what holds after all caps, `raw` what the recommender says."""
    return ContainerAdvice(
        shown.container,
        why,
        samples,
        shown_amounts(requests),
        shown_amounts(shown.lower_bound),
        shown_amounts(shown.target),
        shown_amounts(shown.upper_bound),
        shown_amounts(raw.uncapped_target),
    )


def pod_advice(change: PodChange, node: str) -> PodAdvice:
    """A pod's row, with the containers that would change."""
    pod = change.pod
    after = {container.name: container for container in change.patch.apply_to_spec(pod.spec).containers}
    names = {changed.container for changed in change.patch.resources}
    changed = []
    for container in pod.spec.containers:
        if container.name in names:
            requests, limits = current_resources(pod, container)
            new = after[container.name].resources or ResourceRequirements()
            amounts = (requests, read_amounts(new.requests), limits, read_amounts(new.limits))
            changed.append(ContainerChange(container.name, *map(shown_amounts, amounts)))
    return PodAdvice(pod.metadata.name, change.outcome.value, change.reason, node, changed)
