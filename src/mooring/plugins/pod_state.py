"""Prefer nodes that pods are leaving, and avoid those that pods are nominated to; a plugin of scheduler-plugins."""

from collections.abc import Iterable

from mooring.engine.plugin import Depends, PreScore, Scores
from mooring.plugins.node_resources_allocatable import spread
from mooring.state.load import RowLoad
from mooring.state.row_facts import RowFacts
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView


class PodState(PreScore):
    depends_on = Depends.NODE_USAGE
    normalizes = True

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> RowFacts:
        return cluster.row_facts(self.name, 1, _leaving_but_coming)

    def score(self, pod: Shape, nodes: NodeRows, prepared: RowFacts) -> Scores:
        scores: Scores = prepared.at(nodes.index)[0]
        return scores

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return spread(raw, lowest, highest)


def _leaving_but_coming(pods: Iterable[PodView], _load: RowLoad) -> tuple[int]:
    """How many more pods are terminating than nominated."""
    return (sum(pod.shape.terminating - pod.nominated for pod in pods),)
