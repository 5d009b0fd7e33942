"""Pods of higher priority may evict pods of lower priority."""

from collections.abc import Iterator, Mapping

from mooring.engine.plugin import PostFilter
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import KubeObject
from mooring.plugins.resource_scoring import Problem
from mooring.state.views import ClusterView, PodView


class DefaultPreemptionArgs(KubeObject, forbid_unknown_fields=True):
    """DefaultPreemptionArgs of KubeSchedulerConfiguration; read and checked, but every node is looked at."""

    api_version: str = ""
    kind: str = ""
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def validate(self) -> Iterator[Problem]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= percentage <= 100:
            yield "minCandidateNodesPercentage", "a whole number from 0 to 100", str(percentage)
        if absolute < 0:
            yield "minCandidateNodesAbsolute", "a whole number, 0 or more", str(absolute)
        if percentage == 0 and absolute == 0:
            yield "minCandidateNodesAbsolute", "more than 0 when minCandidateNodesPercentage is 0", "0"


class DefaultPreemption(PostFilter):
    """The switch: a profile that runs this plugin preempts. The workload is the action `mooring.actions.preempt`'s.

    An action can do what a plugin cannot: take pods away to see what would be, and return decisions about others.
    """

    args_type = DefaultPreemptionArgs

    def post_filter(self, pod: PodView, cluster: ClusterView, refusals: Mapping[str, Rejection]) -> str | None:
        return None
