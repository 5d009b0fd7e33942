"""What the load-aware plugins of scheduler-plugins (Trimaran) share: their arguments, figures, and how pods count."""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.config.trimaran import TrimaranArgs
from mooring.model.api.meta import Resources
from mooring.model.api.pods import Container, PodSpec
from mooring.model.load.reports import AVERAGE, DEVIATION, LATEST
from mooring.model.values.quantity import parse_quantity, to_millis, to_units
from mooring.model.values.requests import CPU, MEMORY
from mooring.state.load import NODE
from mooring.state.rows import NodeRows

Floats = NDArray[np.float64]
Measured = tuple[Floats, Floats, NDArray[np.bool_]]
"""(mean, deviation, whether anything is known) of each row"""


def known_levels(nodes: NodeRows, args: TrimaranArgs, resource: str, statistic: str) -> Floats:
    """A statistic of each row in percent, NaN where there is none, or none that is good any more."""
    level = nodes.load(resource, statistic)
    if args.metrics_expiration_seconds:
        level = np.where(nodes.is_load_stale(NODE, args.metrics_expiration_seconds), np.nan, level)
    return level


def mean_and_deviation(nodes: NodeRows, args: TrimaranArgs, resource: str) -> Measured:
    """(mean, deviation, whether anything is known), as parts of a whole from 0 to 1.

    The mean is the average, else the latest level, else nothing.
    """
    average, latest, deviation = (
        known_levels(nodes, args, resource, statistic) for statistic in (AVERAGE, LATEST, DEVIATION)
    )
    mean = np.where(np.isnan(average), latest, average)
    is_known = ~(np.isnan(mean) & np.isnan(deviation))
    return clamp(np.nan_to_num(mean) / 100), clamp(np.nan_to_num(deviation) / 100), is_known


def clamp(values: Floats) -> Floats:
    return np.clip(values, 0.0, 1.0)


def rounded(values: Floats) -> NDArray[np.int64]:
    """Halves go up; there is nothing below 0 here."""
    return np.floor(values + 0.5).astype(np.int64)


def pod_amounts(spec: PodSpec, kind: str) -> dict[str, int]:
    """`requests` or `limits` of a pod as Trimaran counts them: no sidecars, the largest init container, overhead."""
    return {name: _of_pod(spec, kind, name) for name in (CPU, MEMORY)}


def _of_pod(spec: PodSpec, kind: str, name: str) -> int:
    total = sum(_of_container(one, kind, name) for one in spec.containers)
    peak = max((_of_container(one, kind, name) for one in spec.init_containers or ()), default=0)
    return max(total, peak) + amount_of(spec.overhead, name)


def _of_container(container: Container, kind: str, name: str) -> int:
    return amount_of(getattr(container.resources, kind) if container.resources else None, name)


def amount_of(resources: Resources | None, name: str) -> int:
    """How much a list of quantities has of a resource, in millicores or whole units."""
    if not resources or name not in resources:
        return 0
    nanos = parse_quantity(resources[name])
    return to_millis(nanos) if name == CPU else to_units(nanos)


def facts_key(name: str, args: Any) -> tuple[str, bytes]:
    """What stands for numbers that depend on a plugin's arguments."""
    return name, msgspec.msgpack.encode(args)
