"""What a pod is expected to use before anybody has measured it, as Koordinator's default estimator has it."""

from collections.abc import Mapping

import msgspec

from mooring.model.api.pods import Pod, PodSpec
from mooring.model.colocation.classes import BATCH, FREE, MID, PROD, priority_class
from mooring.model.values.quantity import parse_quantity, to_millis, to_units
from mooring.model.values.requests import CPU, MEMORY, pod_requests

FACTORS_ANNOTATION = "scheduling.koordinator.sh/load-estimated-scaling-factors"
ESTIMATED = (CPU, MEMORY)
NAMES = {
    PROD: {CPU: CPU, MEMORY: MEMORY},
    MID: {CPU: "kubernetes.io/mid-cpu", MEMORY: "kubernetes.io/mid-memory"},
    BATCH: {CPU: "kubernetes.io/batch-cpu", MEMORY: "kubernetes.io/batch-memory"},
    FREE: {},
}
"""What pods of each priority class call CPU and memory."""
DEFAULTS = {CPU: 250, MEMORY: 200 * 1024 * 1024}
"""In millicores and bytes, for pods that do not say."""


def estimate(pod: Pod, factors: Mapping[str, int], *, is_customizable: bool) -> tuple[int, ...]:
    """What a pod is expected to use of ESTIMATED, in millicores and bytes."""
    found = priority_class(pod)
    own = {**factors, **_factors_of(pod)} if is_customizable else factors
    requests, limits = pod_requests(pod), _limits(pod.spec)
    return tuple(_estimate(name, found, requests, limits, own) for name in ESTIMATED)


def _estimate(
    name: str, found: str, requests: Mapping[str, int], limits: Mapping[str, int], factors: Mapping[str, int]
) -> int:
    called = NAMES[found].get(name)
    if called is None:
        return 0
    units = to_millis if called == CPU else to_units
    request, limit = units(requests.get(called, 0)), units(limits.get(called, 0))
    asked = max(request, limit)
    if not asked:
        return DEFAULTS[name] if found in (PROD, BATCH) else 0
    expected = (2 * asked * factors[name] + 100) // 200  # halves go up
    return min(expected, limit) if limit else expected


def _limits(spec: PodSpec) -> dict[str, int]:
    """Nano-units by resource: containers together, or the largest init container, and overhead."""
    total: dict[str, int] = {}
    for container in spec.containers:
        for name, text in ((container.resources and container.resources.limits) or {}).items():
            total[name] = total.get(name, 0) + parse_quantity(text)
    for container in spec.init_containers or ():
        for name, text in ((container.resources and container.resources.limits) or {}).items():
            total[name] = max(total.get(name, 0), parse_quantity(text))
    for name, text in (spec.overhead or {}).items():
        if name in total:
            total[name] += parse_quantity(text)
    return total


def _factors_of(pod: Pod) -> dict[str, int]:
    """The factors that a pod asks for itself; what cannot be read says nothing."""
    text = (pod.metadata.annotations or {}).get(FACTORS_ANNOTATION)
    if text is None:
        return {}
    try:
        found = msgspec.json.decode(text.encode(), type=dict[str, int])
    except msgspec.DecodeError:
        return {}
    return {name: factor for name, factor in found.items() if factor > 0}
