"""Prefer nodes whose load is low and steady, so that peaks seldom meet; a plugin of scheduler-plugins."""

import numpy as np

from mooring.config.trimaran import LoadVariationRiskBalancingArgs
from mooring.engine.plugin import Depends, Mask, Score, Scores
from mooring.model.values.requests import CPU, MEMORY
from mooring.plugins.load_levels import Floats, clamp, mean_and_deviation, pod_amounts, rounded
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape


class LoadVariationRiskBalancing(Score):
    depends_on = Depends.NODE | Depends.NODE_LOAD
    args_type = LoadVariationRiskBalancingArgs
    args: LoadVariationRiskBalancingArgs

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        requests = pod_amounts(pod.spec, "requests")
        cpu, has_cpu = self._score(nodes, CPU, requests[CPU])
        memory, has_memory = self._score(nodes, MEMORY, requests[MEMORY])
        scores: Scores = rounded(np.where(has_cpu & has_memory, np.minimum(cpu, memory), np.maximum(cpu, memory)))
        return scores

    def _score(self, nodes: NodeRows, resource: str, request: int) -> tuple[Floats, Mask]:
        """(100 where nothing is at risk, 0 where nothing is known; whether anything is known)"""
        mean, deviation, is_known = mean_and_deviation(nodes, self.args, resource)
        allocatable = nodes.allocatable(resource).astype(np.float64)
        has_some = allocatable > 0
        mean = clamp(mean + request / np.where(has_some, allocatable, 1.0))
        sensitivity = self.args.safe_variance_sensitivity
        deviation = deviation ** (np.inf if sensitivity == 0 else 1 / sensitivity)
        risk = (mean + clamp(self.args.safe_variance_margin * deviation)) / 2
        return np.where(is_known & has_some, (1 - risk) * 100, 0.0), is_known
