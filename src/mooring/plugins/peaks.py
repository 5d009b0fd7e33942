"""Place pods where they raise the power drawn least; a plugin of scheduler-plugins.

A node's power model is k0 + k1 * e^(k2 * percent of CPU).
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from mooring.config.trimaran import PeaksArgs, PowerModel
from mooring.engine.plugin import MAX_SCORE, Depends, Score, Scores
from mooring.model.api.pods import Pod
from mooring.model.load.reports import FIRST_LEVEL
from mooring.model.values.quantity import to_millis
from mooring.model.values.requests import CPU, pod_requests
from mooring.plugins.load_levels import amount_of, known_levels
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape

PRECISION = 10**15
"""Power is compared in whole numbers of this part of a unit."""
MOST = float(2**61)
"""What a rise counts at most: twice as much still fits a column."""


class Peaks(Score):
    depends_on = Depends.NODE | Depends.NODE_LOAD
    args_type = PeaksArgs
    args: PeaksArgs
    normalizes = True

    @cached_property
    def _models(self) -> Mapping[str, PowerModel]:
        return self.args.upstream_node_power_model | self.args.node_power_model

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        level, capacity = known_levels(nodes, self.args, CPU, FIRST_LEVEL), nodes.load(CPU, "capacity")
        is_known = ~np.isnan(level) & (capacity > 0)
        level, capacity = np.where(is_known, level, 0.0), np.where(is_known, capacity, 1.0)
        predicted = 100 * (level / 100 * capacity + _request(pod.sample)) / capacity
        is_known &= predicted <= 100
        level, predicted = np.where(is_known, level, 0.0), np.where(is_known, predicted, 0.0)
        unknown = PowerModel()
        models = [self._models.get(name, unknown) for name in nodes.names]
        k1, k2 = np.array([one.k1 for one in models]), np.array([one.k2 for one in models])
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.nan_to_num(k1 * (np.exp(k2 * predicted) - np.exp(k2 * level)) * PRECISION)
        scores: Scores = np.clip(rise, -MOST, MOST).astype(np.int64)
        return scores

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        if lowest == highest:
            return raw if highest == 0 else np.full_like(raw, MAX_SCORE)
        scaled: Scores = (MAX_SCORE * (raw - lowest).astype(np.float64) / (highest - lowest)).astype(np.int64)
        return MAX_SCORE - scaled


def _request(pod: Pod) -> int:
    """The CPU that a pod asks for; overhead counts only on top of something."""
    asked = to_millis(pod_requests(pod).get(CPU, 0))
    overhead = amount_of(pod.spec.overhead, CPU)
    return asked if asked > overhead else 0
