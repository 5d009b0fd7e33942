"""The quality-of-service class of a pod."""

from collections.abc import Mapping
from typing import Any

from mooring.model.values.quantity import parse_quantity

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Mapping[str, Any], *, is_defaulted: bool = False) -> str:
    """Guaranteed, Burstable or BestEffort, by requests and limits of CPU and memory, pod-level ones before all.

    Where there is a limit and no request the request will be the limit, unless the spec has its defaults already.
    """
    level = spec.get("resources") or {}
    if level.get("requests") or level.get("limits"):
        asked = [level]
    else:
        containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        asked = [container.get("resources") or {} for container in containers]
    requests = [_amounts(one.get("requests")) for one in asked]
    limits = [_amounts(one.get("limits")) for one in asked]
    if not any(requests) and not any(limits):
        return "BestEffort"
    for request, limit in zip(requests, limits, strict=True):
        asked_for = request if is_defaulted else {**limit, **request}
        if set(limit) != set(_COMPUTE) or asked_for != limit:
            return "Burstable"
    return "Guaranteed"


def _amounts(resources: Mapping[str, Any] | None) -> dict[str, int]:
    found = {name: parse_quantity(text) for name, text in (resources or {}).items() if name in _COMPUTE}
    return {name: amount for name, amount in found.items() if amount > 0}
