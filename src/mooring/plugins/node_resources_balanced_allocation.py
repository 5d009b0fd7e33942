"""Nodes whose resources are used in equal measure: a node out of CPU with memory to spare helps nobody."""

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE, SKIP, Depends, PreScore, Scores, Skip
from mooring.model.api.meta import KubeObject
from mooring.model.values.requests import CPU, MEMORY, is_scalar
from mooring.plugins.resource_scoring import Asked, Numbers, Problem, ResourceSpec, validate_weights
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

HALF = MAX_SCORE // 2

_ONE, _TWO, _HALVED = np.array(1.0), np.array(2.0), np.array(0.5)  # arrays: plain numbers are converted each time
_MAX, _HALF, _THREE_HALVES = np.array(float(MAX_SCORE)), np.array(float(HALF)), np.array(3.0 * HALF)


class NodeResourcesBalancedAllocationArgs(KubeObject, forbid_unknown_fields=True):
    """NodeResourcesBalancedAllocationArgs of KubeSchedulerConfiguration."""

    api_version: str = ""
    kind: str = ""
    resources: list[ResourceSpec] = msgspec.field(
        default_factory=lambda: [ResourceSpec(name=CPU), ResourceSpec(name=MEMORY)]
    )

    def validate(self) -> Iterator[Problem]:
        yield from validate_weights(self.resources, "resources", highest=1)


class NodeResourcesBalancedAllocation(PreScore):
    depends_on = Depends.NODE_USAGE | Depends.NODE
    args_type = NodeResourcesBalancedAllocationArgs
    skip_is_settled = True

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> Asked | Skip:
        """The resources that count for this pod; best-effort pods are not balanced."""
        asked = [(resource.name, pod.request(resource.name)) for resource in self.args.resources]
        if not any(amount for _, amount in asked):
            return SKIP
        return Asked({name: amount for name, amount in asked if amount or not is_scalar(name)})

    def score(self, pod: Shape, nodes: NodeRows, prepared: Asked) -> Scores:
        capacity = nodes.stacked("allocatable", prepared.names)
        requested = nodes.stacked("requested", prepared.names)
        evenness = even_where_all if nodes.has_all_everywhere(prepared.names) else even_where_present
        before = evenness(requested, capacity)
        after = evenness(requested + prepared.floats, capacity)
        # 50 + (50 + change) // 2; the sum is never negative, so truncating is rounding down.
        after -= before
        after += _THREE_HALVES
        after *= _HALVED
        scores: Scores = after.astype(np.int64)
        return scores


def even_where_all(requested: Numbers, capacity: Numbers) -> NDArray[np.float64]:
    """100 where all resources are used by the same fraction, less by the fractions' standard deviation.

    (resources, rows) -> (rows). The operations and their order are kube-scheduler's: these are floats, and one rounding
    more would show.
    """
    # In place, operation by operation: this is asked for every pod, and new arrays would cost as much as the numbers.
    fractions: NDArray[np.float64] = requested / capacity
    np.minimum(fractions, _ONE, out=fractions)
    if len(fractions) == 2:
        # (1 - |a - b| / 2) * 100 as (2 - |a - b|) * 50: to double or halve a float is exact.
        even: NDArray[np.float64] = fractions[0]
        even -= fractions[1]
        np.abs(even, out=even)
        np.subtract(_TWO, even, out=even)
        even *= _HALF
    else:
        even = _deviation(fractions)
        np.subtract(_ONE, even, out=even)
        even *= _MAX
    return np.trunc(even, out=even)


def even_where_present(requested: Numbers, capacity: Numbers) -> NDArray[np.float64]:
    """The same where nodes differ in which resources they have at all: one answer for each such combination."""
    result = np.full(capacity.shape[1], float(MAX_SCORE))
    has = capacity > 0
    for combination in np.unique(has, axis=1).T:
        at = np.flatnonzero((has == combination[:, np.newaxis]).all(axis=0))
        if combination.any():
            result[at] = even_where_all(requested[combination][:, at], capacity[combination][:, at])
    return result


def _deviation(fractions: NDArray[np.float64]) -> NDArray[np.float64]:
    count = len(fractions)
    if count < 2:
        return np.zeros_like(fractions[0])
    mean = _sum(fractions) / count
    difference = fractions - mean
    deviation: NDArray[np.float64] = np.sqrt(_sum(difference * difference) / count)
    return deviation


def _sum(fractions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up the resources one after the other: NumPy's own sum may add in another order."""
    total: NDArray[np.float64] = fractions[0]
    for fraction in fractions[1:]:
        total = total + fraction
    return total
