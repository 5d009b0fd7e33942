"""Nodes whose resources are used in equal measure: a node out of CPU with memory to spare helps nobody."""

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import MAX_SCORE, SKIP, Depends, PreScore, Scores, Skip
from mooring.model.meta import KubeObject
from mooring.model.requests import CPU, MEMORY, is_scalar
from mooring.plugins.resource_scoring import Numbers, Problem, ResourceSpec, validate_weights
from mooring.state.cluster import Cluster
from mooring.state.rows import NodeRows, whole_quotient
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

    def pre_score(self, pod: Shape, cluster: Cluster, feasible: NodeRows) -> tuple[tuple[str, int], ...] | Skip:
        """The resources that count for this pod; best-effort pods are not balanced."""
        asked = tuple((resource.name, pod.request(resource.name)) for resource in self.args.resources)
        if not any(amount for _, amount in asked):
            return SKIP
        return tuple((name, amount) for name, amount in asked if amount or not is_scalar(name))

    def score(self, pod: Shape, nodes: NodeRows, prepared: tuple[tuple[str, int], ...]) -> Scores:
        # Two lines a resource, without the pod and with it: both are worked out in one go.
        requested = [nodes.numbers("requested", name) + np.array([[0], [amount]]) for name, amount in prepared]
        capacities = [nodes.numbers("allocatable", name) for name, _ in prepared]
        if all(nodes.table.has_everywhere(name) for name, _ in prepared):
            before, after = evenness(requested, capacities)
        else:
            before, after = _evenness_of_uneven(requested, capacities)
        return whole_quotient(after - before + (2 * HALF + HALF), 2).astype(np.int64)


def evenness(requested: list[Numbers], capacities: list[Numbers]) -> Numbers:
    """100 where all fractions are equal, less by their standard deviation.

    The operations and their order are kube-scheduler's: these are floats, and one rounding more would show.
    """
    fractions = [np.minimum(r / c, 1.0) for r, c in zip(requested, capacities, strict=True)]
    return np.trunc((1 - _deviation(fractions)) * MAX_SCORE)


def _evenness_of_uneven(requested: list[Numbers], capacities: list[Numbers]) -> Numbers:
    """The same where nodes differ in which resources they have at all: one answer for each such combination."""
    result = np.full(requested[0].shape, float(MAX_SCORE))
    combinations = np.zeros(len(capacities[0]), np.int64)
    for bit, capacity in enumerate(capacities):
        combinations |= (capacity > 0).astype(np.int64) << bit
    for combination in np.unique(combinations).tolist():
        at = np.flatnonzero(combinations == combination)
        present = [bit for bit in range(len(capacities)) if combination >> bit & 1]
        if present:
            result[:, at] = evenness(
                [requested[bit][:, at] for bit in present], [capacities[bit][at] for bit in present]
            )
    return result


def _deviation(fractions: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    if len(fractions) < 2:
        return np.zeros_like(fractions[0])
    if len(fractions) == 2:
        return np.abs((fractions[0] - fractions[1]) / 2)
    mean = _sum(fractions) / len(fractions)
    return np.sqrt(_sum([(fraction - mean) * (fraction - mean) for fraction in fractions]) / len(fractions))


def _sum(terms: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
