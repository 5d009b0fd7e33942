"""Fill nodes up to a target of CPU utilisation as measured, and spread beyond it; a plugin of scheduler-plugins."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from mooring.config.trimaran import TargetLoadPackingArgs
from mooring.engine.plugin import Depends, PreScore, Scores
from mooring.model.api.pods import PodSpec
from mooring.model.load.reports import LAST_LEVEL, REPORT_INTERVAL
from mooring.model.values.requests import CPU
from mooring.plugins.load_levels import amount_of, facts_key, known_levels, rounded
from mooring.state.load import RowLoad
from mooring.state.row_facts import RowFacts
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView


class TargetLoadPacking(PreScore):
    depends_on = Depends.NODE | Depends.NODE_USAGE | Depends.NODE_LOAD
    args_type = TargetLoadPackingArgs
    args: TargetLoadPackingArgs

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> tuple[int, RowFacts]:
        """(what the pod is expected to use, what pods are expected to use that no report has)"""
        return self._expected(pod.spec), cluster.row_facts(facts_key(self.name, self.args), 1, self._unreported)

    def score(self, pod: Shape, nodes: NodeRows, prepared: tuple[int, RowFacts]) -> Scores:
        expected, unreported = prepared
        level, capacity = known_levels(nodes, self.args, CPU, LAST_LEVEL), nodes.load(CPU, "capacity")
        missing = unreported.at(nodes.index)[0]
        if nodes.further_pods is not None:
            missing = missing + nodes.further_pods * expected
        is_known = ~np.isnan(level) & (capacity > 0)
        capacity = np.where(is_known, capacity, 1.0)
        used = 100 * (np.nan_to_num(level) / 100 * capacity + expected + missing) / capacity
        target = float(self.args.target_utilization)
        with np.errstate(divide="ignore", invalid="ignore"):
            above = rounded(np.where(used > target, np.maximum(target * (100 - used) / (100 - target), 0), 0))
        below = rounded(np.where(used <= target, (100 - target) * used / target + target, 0))
        scores: Scores = np.where(used > 100, 0, np.where(used > target, above, below))
        return np.where(is_known, scores, 0)

    def _unreported(self, pods: Iterable[PodView], load: RowLoad) -> Sequence[int]:
        """What pods use that came too late to be in a report."""
        report = load.node
        if report is None or report.at is None:
            return (0,)
        since = report.at - REPORT_INTERVAL
        recent = (pod for pod in pods if (at := pod.assigned_at) is not None and at > since)
        return (sum(self._expected(pod.pod.spec) for pod in recent),)

    def _expected(self, spec: PodSpec) -> int:
        """The CPU that a pod is expected to use, in millicores."""
        total = amount_of(spec.overhead, CPU)
        for container in spec.containers:
            resources = container.resources
            if resources is not None and CPU in (resources.limits or {}):
                total += amount_of(resources.limits, CPU)
            elif resources is not None and CPU in (resources.requests or {}):
                multiplier = float(self.args.default_requests_multiplier)
                total += math.floor(amount_of(resources.requests, CPU) * multiplier + 0.5)
            else:
                total += amount_of(self.args.default_requests, CPU)
        return total
