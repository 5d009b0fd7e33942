"""Prefer nodes on which pods are least likely to want more than there is; a plugin of scheduler-plugins.

Two risks count: that limits promise more than a node has, and that the load measured goes beyond what was requested.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mooring.config.trimaran import LowRiskOverCommitmentArgs
from mooring.engine.plugin import SKIP, Depends, PreScore, Scores, Skip
from mooring.model.api.pods import PodSpec
from mooring.model.values.requests import CPU, MEMORY
from mooring.plugins.beta_distribution import beta_parameters, beta_probability
from mooring.plugins.load_levels import Floats, Measured, clamp, mean_and_deviation, pod_amounts, rounded
from mooring.state.load import RowLoad
from mooring.state.row_facts import RowFacts
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView

MOST_VARIANCE = 0.99
"""Of what a beta distribution of that mean can have."""
DEFAULT_WEIGHT = 0.5
RESOURCES = (CPU, MEMORY)


class LowRiskOverCommitment(PreScore):
    depends_on = Depends.NODE | Depends.NODE_USAGE | Depends.NODE_LOAD
    args_type = LowRiskOverCommitmentArgs
    args: LowRiskOverCommitmentArgs
    skip_is_settled = True

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> RowFacts | Skip:
        """What the pods of each row request and are limited to, by resource; a pod that says nothing scores 0."""
        if not any(_asked(pod.spec)):
            return SKIP
        return cluster.row_facts(self.name, 2 * len(RESOURCES), _sums)

    def score(self, pod: Shape, nodes: NodeRows, prepared: RowFacts) -> Scores:
        sums, asked = prepared.at(nodes.index), _asked(pod.spec)
        if nodes.further_pods is not None:
            sums = sums + nodes.further_pods * np.array(asked, np.int64)[:, np.newaxis]
        risks, is_known = [], np.zeros(len(nodes), np.bool_)
        for index, name in enumerate(RESOURCES):
            request, limit = (2 * index, 2 * index + 1)
            total = nodes.allocatable(name).astype(np.float64)
            before = sums[request].astype(np.float64), sums[limit].astype(np.float64)
            weight = self.args.risk_limit_weights.get(name, DEFAULT_WEIGHT)
            by_limits = _risk_by_limits(before[0] + asked[request], before[1] + asked[limit], total)
            measured = mean_and_deviation(nodes, self.args, name)
            by_load = self._risk_by_load(measured, *before, total)
            risks.append(clamp(weight * by_limits + (1 - weight) * by_load))
            is_known |= measured[-1]
        return np.where(is_known, rounded((1 - np.maximum(*risks)) * 100), 0)

    def _risk_by_load(self, measured: Measured, request: Floats, limit: Floats, total: Floats) -> Floats:
        """How likely it is that the load is above what is requested, given that it is not above what is allowed."""
        mean, deviation, is_known = measured
        deviation = np.minimum(
            deviation * math.sqrt(self.args.smoothing_window_size), np.sqrt(MOST_VARIANCE * mean * (1 - mean))
        )
        request = np.minimum(request, total)
        rows = zip(
            mean.tolist(), deviation.tolist(), request.tolist(), limit.tolist(), total.tolist(), is_known, strict=True
        )
        return np.array([1 - _within(*row) if known and row[-1] > 0 else 0.0 for *row, known in rows])


def _risk_by_limits(request: Floats, limit: Floats, total: Floats) -> Floats:
    """How much of what is promised beyond requests a node does not have."""
    request = np.minimum(request, total)
    is_over = limit > total
    return np.where(is_over, (limit - total) / np.where(is_over, limit - request, 1.0), 0.0)


def _within(mean: float, deviation: float, request: float, limit: float, total: float) -> float:
    """How likely the load is within what is requested."""
    parameters = beta_parameters(mean, deviation)
    likely = _probability(mean, deviation, parameters, request / total)
    if limit < total and request <= limit:
        if limit == 0:
            return 1.0
        if parameters is not None:
            allowed = beta_probability(*parameters, limit / total)
            if allowed > 0:
                likely = min(max(likely / allowed, 0.0), 1.0)
    return likely


def _probability(mean: float, deviation: float, parameters: tuple[float, float] | None, most: float) -> float:
    if mean == 0 or (deviation == 0 and mean <= most):
        return 1.0
    return 0.0 if deviation == 0 or parameters is None else beta_probability(*parameters, most)


def _asked(spec: PodSpec) -> tuple[int, ...]:
    """Request and limit of each resource; a limit is at least the request."""
    requests: Mapping[str, int] = pod_amounts(spec, "requests")
    limits: Mapping[str, int] = pod_amounts(spec, "limits")
    return tuple(amount for name in RESOURCES for amount in (requests[name], max(limits[name], requests[name])))


def _sums(pods: Iterable[PodView], _load: RowLoad) -> Sequence[int]:
    asked = [_asked(pod.pod.spec) for pod in pods]
    return [sum(amounts) for amounts in zip(*asked, strict=True)] or [0] * 2 * len(RESOURCES)
