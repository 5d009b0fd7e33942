"""What the containers of a simulated pod use, as its annotations say, and what a simulated node uses besides."""

from collections.abc import Mapping
from typing import Any

from mooring.model.values.quantity import QuantityError, parse_quantity, to_millis, to_units
from mooring.model.values.requests import CPU, MEMORY

PREFIXES = ("mooring.dev/usage-", "kwok.x-k8s.io/usage-")
"""Of annotations, the first of which goes before the other; the name of the resource follows."""
MEASURED = (CPU, MEMORY)
EXPECTED_USAGE = "an amount such as 250m or 1Gi, or a share of what is requested such as 40%"
Document = Mapping[str, Any]


def container_usage(annotations: Mapping[str, str], container: Document) -> dict[str, int]:
    """What one running container uses: millicores of CPU, and bytes of memory.

    Without an annotation, or with one that cannot be read, it uses what it requests.
    """
    requests = (container.get("resources") or {}).get("requests") or {}
    found = {}
    for resource in MEASURED:
        requested = _amount(resource, requests.get(resource, 0)) or 0
        texts = (
            annotations[key]
            for key in _keys(resource, str(container.get("name") or ""))
            if key in annotations and _read(resource, annotations[key], requested) is not None
        )
        text = next(texts, None)
        found[resource] = requested if text is None else _read(resource, text, requested) or 0
    return found


def node_usage(annotations: Mapping[str, str]) -> dict[str, int]:
    """What a node uses outside of pods; shares are of nothing here, and say nothing."""
    found = {}
    for resource in MEASURED:
        given = (annotations.get(f"{prefix}{resource}") for prefix in PREFIXES)
        amounts = (_amount(resource, text) for text in given if text is not None)
        found[resource] = next((amount for amount in amounts if amount is not None), 0)
    return found


def unreadable_usage(pod: Document) -> list[str]:
    """What of a pod's annotations was meant as usage and cannot be read, in one line each."""
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    return [
        f"annotation {key}: expected {EXPECTED_USAGE}, found {text!r}"
        for key, text in annotations.items()
        for resource in MEASURED
        if _is_about(key, resource) and _read(resource, text, 0) is None
    ]


def _keys(resource: str, container: str) -> list[str]:
    """The annotations about a container, the more special ones first."""
    special = [f"{prefix}{resource}.{container}" for prefix in PREFIXES]
    return [*special, *(f"{prefix}{resource}" for prefix in PREFIXES)]


def _is_about(key: str, resource: str) -> bool:
    return any(key == f"{prefix}{resource}" or key.startswith(f"{prefix}{resource}.") for prefix in PREFIXES)


def _read(resource: str, text: str, requested: int) -> int | None:
    """An amount, or a share of the request; None for anything else."""
    if not text.endswith("%"):
        return _amount(resource, text)
    share = text[:-1].strip()
    if not share.replace(".", "", 1).isdecimal() or not share.isascii():
        return None
    return round(requested * float(share) / 100)


def _amount(resource: str, text: str | int | float) -> int | None:
    try:
        nanos = parse_quantity(text)
    except (QuantityError, TypeError):
        return None
    if nanos < 0:
        return None
    return to_millis(nanos) if resource == CPU else to_units(nanos)
