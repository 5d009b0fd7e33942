"""Keep pods off nodes whose GPUs are busy, full or hot, and prefer those whose GPUs are not, as measured.

Only pods that ask for GPUs are concerned. Pods that came since the last report count by estimate.
"""

from collections.abc import Iterable

import numpy as np

from mooring.config.gpu_load import KEEP, REFUSE, GpuLoadArgs
from mooring.engine.plugin import MAX_SCORE, SKIP, Change, Codes, Depends, Mask, PreFilter, PreScore, Scores, Skip
from mooring.engine.shortcuts import BesidesAmounts
from mooring.engine.verdict import Rejection
from mooring.model.devices.cards import GPU, WHOLE
from mooring.plugins.gpu_policies import asked_of_cards
from mooring.plugins.load_levels import Floats, rounded
from mooring.state.load import GPUS, RowLoad
from mooring.state.row_facts import RowFacts
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView

REASONS = (
    "",
    "node(s) had GPU metrics that expired",
    "node(s) had GPUs above the threshold of utilization",
    "node(s) had GPUs above the threshold of memory",
    "node(s) had GPUs above the threshold of temperature",
)
"""By code."""
EXPIRED, FIRST_FACT = 1, 2
FACTS = ("utilization", "memory", "temperature")


class GpuLoad(PreFilter, PreScore, BesidesAmounts):
    depends_on = Depends.NODE | Depends.NODE_USAGE | Depends.NODE_LOAD
    helped_by = Change.NODE | Change.NODE_LOAD | Change.POD_GONE
    args_type = GpuLoadArgs
    args: GpuLoadArgs
    foresees = True
    skip_is_settled = True

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> RowFacts | Skip:
        """How many thousandths of a GPU pods ask for that no report has."""
        if not milli_asked(pod):
            return SKIP
        return cluster.row_facts(self.name, 1, _milli_unreported)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: RowFacts) -> Codes:
        codes = np.zeros(len(nodes), np.int64)
        for index in reversed(range(len(FACTS))):  # the first has the last word
            threshold = getattr(self.args.thresholds, FACTS[index])
            if threshold:
                codes[self._fact(FACTS[index], pod, nodes, prepared) > threshold] = FIRST_FACT + index
        is_expired = self._is_expired(nodes)
        codes[is_expired] = EXPIRED if self.args.when_expired == REFUSE else 0
        return codes

    def rejection(self, pod: Shape, code: int) -> Rejection:
        return Rejection((REASONS[code],))

    def score(self, pod: Shape, nodes: NodeRows, prepared: RowFacts) -> Scores:
        load, weights = np.zeros(len(nodes)), np.zeros(len(nodes))
        for name in FACTS:
            value = self._fact(name, pod, nodes, prepared)
            if name == "temperature":
                span = self.args.hot_celsius - self.args.cool_celsius
                value = 100 * (value - self.args.cool_celsius) / span
            weight = np.where(np.isnan(value), 0, getattr(self.args.weights, name))
            load += weight * np.clip(np.nan_to_num(value), 0, 100)
            weights += weight
        scores = rounded(MAX_SCORE - load / np.maximum(weights, 1))
        return np.where((weights > 0) & ~self._is_expired(nodes), scores, 0)

    def _fact(self, name: str, pod: Shape, nodes: NodeRows, unreported: RowFacts) -> Floats:
        """What a fact would be with the pod; NaN where it is not measured."""
        value = nodes.load(GPUS, name)
        if name != "utilization":
            return value
        asked = milli_asked(pod)
        milli = unreported.at(nodes.index)[0] + asked
        if nodes.further_pods is not None:
            milli = milli + nodes.further_pods * asked
        count = nodes.load(GPUS, "count")
        expected: Floats = value + milli / WHOLE * self.args.estimated_utilization / np.maximum(count, 1)
        return expected

    def _is_expired(self, nodes: NodeRows) -> Mask:
        """Whether there is a report, and it is too old to count."""
        if self.args.when_expired == KEEP:
            return np.zeros(len(nodes), np.bool_)
        is_known = ~np.isnan(nodes.load(GPUS, "count"))
        return nodes.is_load_stale(GPUS, self.args.expiration_seconds) & is_known


def milli_asked(pod: Shape) -> int:
    """How many thousandths of GPUs a pod asks for."""
    milli, count = asked_of_cards(pod)
    return milli * count or pod.request(GPU) * WHOLE


def _milli_unreported(pods: Iterable[PodView], load: RowLoad) -> tuple[int]:
    if load.gpus is None or load.gpus.at is None:
        return (0,)
    since = load.gpus.at
    return (sum(milli_asked(pod.shape) for pod in pods if (at := pod.assigned_at) is not None and at > since),)
