"""Nodes whose resources are used in equal measure: a node out of CPU with memory to spare helps nobody."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE, SKIP, Depends, PreScore, Scores, Skip
from mooring.model.meta import KubeObject
from mooring.model.requests import CPU, MEMORY, is_scalar
from mooring.plugins.resource_scoring import Numbers, Problem, ResourceSpec, validate_weights
from mooring.state.cluster import Cluster
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape

HALF = MAX_SCORE // 2


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
    reads_pod_labels = False
    reads_pod_annotations = False

    def pre_score(self, pod: Shape, cluster: Cluster, feasible: NodeRows) -> "Balanced | Skip":
        """The resources that count for this pod; best-effort pods are not balanced."""
        asked = [(resource.name, pod.request(resource.name)) for resource in self.args.resources]
        if not any(amount for _, amount in asked):
            return SKIP
        counted = [(name, amount) for name, amount in asked if amount or not is_scalar(name)]
        added = np.zeros((2, len(counted), 1))
        added[1, :, 0] = [amount for _, amount in counted]
        return Balanced(tuple(name for name, _ in counted), added)

    def score(self, pod: Shape, nodes: NodeRows, prepared: "Balanced") -> Scores:
        capacity = nodes.stacked("allocatable", prepared.names)
        requested = nodes.stacked("requested", prepared.names) + prepared.added
        if all(nodes.table.has_everywhere(name) for name in prepared.names):
            requested /= capacity
            before, after = evenness(np.minimum(requested, 1.0, out=requested))
        else:
            before, after = _evenness_where_present(requested, capacity)
        # 50 + (50 + change) // 2; the sum is never negative, so truncating is rounding down.
        after -= before
        after += 2 * HALF + HALF
        after *= 0.5
        scores: Scores = after.astype(np.int64)
        return scores


@dataclass(frozen=True, slots=True)
class Balanced:
    """The resources to balance, and what the pod adds to each: nothing, then its request, as (2, resources, 1)."""

    names: tuple[str, ...]
    added: NDArray[np.float64]


def evenness(fractions: NDArray[np.float64]) -> NDArray[np.float64]:
    """100 where all fractions are equal, less by their standard deviation; (2, resources, rows) -> (2, rows).

    The operations and their order are kube-scheduler's: these are floats, and one rounding more would show.
    """
    # In place, operation by operation: this is asked for every pod, and new arrays would cost as much as the numbers.
    even = _deviation(fractions)
    np.subtract(1, even, out=even)
    even *= MAX_SCORE
    return np.trunc(even, out=even)


def _evenness_where_present(requested: NDArray[np.float64], capacity: Numbers) -> NDArray[np.float64]:
    """The same where nodes differ in which resources they have at all: one answer for each such combination."""
    result = np.full((2, capacity.shape[1]), float(MAX_SCORE))
    has = capacity > 0
    for combination in np.unique(has, axis=1).T:
        at = np.flatnonzero((has == combination[:, np.newaxis]).all(axis=0))
        if combination.any():
            fractions = requested[:, combination][:, :, at] / capacity[combination][:, at]
            result[:, at] = evenness(np.minimum(fractions, 1.0))
    return result


def _deviation(fractions: NDArray[np.float64]) -> NDArray[np.float64]:
    count = fractions.shape[1]
    if count < 2:
        return np.zeros_like(fractions[:, 0])
    if count == 2:
        apart = fractions[:, 0] - fractions[:, 1]
        apart /= 2
        return np.abs(apart, out=apart)
    mean = _sum(fractions) / count
    difference = fractions - mean[:, np.newaxis]
    deviation: NDArray[np.float64] = np.sqrt(_sum(difference * difference) / count)
    return deviation


def _sum(fractions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up the resources one after the other: NumPy's own sum may add in another order."""
    total = fractions[:, 0]
    for index in range(1, fractions.shape[1]):
        total = total + fractions[:, index]
    return total
