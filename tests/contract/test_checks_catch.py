"""Each check fails for a plugin that breaks what it checks, and says so: a check nobody saw fail is worth little."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mooring.engine.plugin import (
    MAX_SCORE,
    SKIP,
    Change,
    Changed,
    Codes,
    Depends,
    Filter,
    Mask,
    Plugin,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Score,
    Scores,
    Skip,
)
from mooring.engine.shortcuts import Gone, Incremental, QuickMask
from mooring.engine.verdict import Rejection
from mooring.errors import PluginError
from mooring.model.api.pods import Pod
from mooring.model.events import Event, ObjectSeen
from mooring.plugins.node_resources_fit import NodeResourcesFit
from mooring.plugins.pod_topology_spread import PodTopologySpread
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView
from mooring.testing.builders import HOSTNAME, ZONE, make_namespace
from mooring.testing.plugin_checks import check_plugin, plugin_checks


class OneAnswerForAll(Filter):
    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return np.ones(1, np.bool_)


class Halves(Score):
    def score(self, pod: Shape, nodes: NodeRows) -> Any:
        return nodes.free("cpu") * 1000


class BestOfThoseAsked(Filter):
    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        free = nodes.free("cpu")
        return np.asarray(free == free.max(initial=0), np.bool_)


class Forgetful(Score):
    def __init__(self, args: Any = None) -> None:
        super().__init__(args)
        self.asked = 0

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        self.asked += 1
        return np.full(len(nodes), self.asked % 7, np.int64)


class Meddler(Filter):
    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        nodes._table.unschedulable.writable[0] ^= True
        return np.ones(len(nodes), np.bool_)


class AmongOthers(Score):
    normalizes = True

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        return nodes.free("cpu")

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return np.where(raw == raw.max(initial=0), MAX_SCORE, 0)


class Speechless(Filter):
    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return np.zeros(len(nodes), np.bool_)

    def rejection(self, pod: Shape, code: int) -> Rejection:
        return Rejection(())


class TwoMinds(Filter, QuickMask):
    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return nodes.free("cpu") > 1000

    def passes(self, pod: Shape, nodes: NodeRows, prepared: None) -> Mask:
        return nodes.free("cpu") >= 0


class TooNarrow(PreFilter):
    def narrow(self, pod: Shape) -> frozenset[str]:
        return frozenset(("node-0",))

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Skip:
        return SKIP


class Incomparable(QueueSort):
    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        return float("nan")


class SilentGate(PreEnqueue):
    def pre_enqueue(self, pod: Pod) -> Rejection:
        return Rejection(("",))


class NeedsPods(PreFilter):
    def pre_filter(self, pod: Shape, cluster: ClusterView) -> int:
        shapes, _ = cluster.bound_pods()
        return int(shapes.max())

    def filter(self, pod: Shape, nodes: NodeRows, prepared: int) -> Mask:
        return np.ones(len(nodes), np.bool_)


class ReadsLabelsUnsaid(Filter):
    depends_on = Depends.NODE_USAGE

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return nodes.has_label("disk")


class ReadsUsageUnsaid(Filter):
    depends_on = Depends.NODE

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return nodes.pod_count < 2


class ReadsNamespacesUnsaid(PreFilter):
    depends_on = Depends.NODE

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> bool:
        return "team-a" in cluster.related.namespaces

    def filter(self, pod: Shape, nodes: NodeRows, prepared: bool) -> Mask:
        return np.full(len(nodes), prepared, np.bool_)


class ReadsOtherNodesUsage(PreFilter):
    depends_on = Depends.NODE | Depends.NODE_USAGE

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> int:
        return int(cluster.rows().pod_count.sum())

    def filter(self, pod: Shape, nodes: NodeRows, prepared: int) -> Mask:
        return np.full(len(nodes), prepared % 2 == 0, np.bool_)


class CannotSuppose(Filter):
    depends_on = Depends.NODE | Depends.NODE_USAGE

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        few: Mask = nodes._table.pod_count.values[nodes.index] < 2
        return few


class SkipsForNow(PreFilter):
    depends_on = Depends.PODS
    skip_is_settled = True

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Skip | None:
        return SKIP if len(cluster.bound_pods()[0]) % 2 else None

    def filter(self, pod: Shape, nodes: NodeRows, prepared: None) -> Mask:
        return np.ones(len(nodes), np.bool_)


class RemembersTheFirst(PreFilter):
    """Counts the shapes once and for all."""

    def __init__(self, args: Any = None) -> None:
        super().__init__(args)
        self._known: dict[int, int] = {}

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> int:
        return self._known.setdefault(id(cluster), len(cluster.bound_pods()[0]))

    def filter(self, pod: Shape, nodes: NodeRows, prepared: int) -> Mask:
        return np.full(len(nodes), prepared % 2 == 0, np.bool_)


class Lazy(Incremental):
    """Counts pods by domain, and does not follow."""

    topology_keys = (ZONE,)

    def __init__(self, cluster: ClusterView, key: str = ZONE) -> None:
        self.codes = cluster.label_codes(key)
        self.counts = np.zeros(len(cluster.label_values(key)) + 1, np.int64)
        np.add.at(self.counts, self.codes[cluster.bound_pods()[1]], 1)

    def update(self, shapes: NDArray[np.intp], rows: NDArray[np.intp], signs: NDArray[np.int64]) -> bool:
        return True


class DoesNotFollow(PreFilter):
    depends_on = Depends.PODS | Depends.NODE

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Lazy:
        return Lazy(cluster)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Lazy) -> Mask:
        return prepared.counts[nodes.label_codes(ZONE)] < 3


class Following(Lazy):
    def update(self, shapes: NDArray[np.intp], rows: NDArray[np.intp], signs: NDArray[np.int64]) -> bool:
        np.add.at(self.counts, self.codes[rows], signs)
        return False


class SaysNothingChanged(DoesNotFollow):
    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Lazy:
        return Following(cluster)


class SaysZone(PreFilter):
    """Counts by node, and says by zone."""

    depends_on = Depends.PODS | Depends.NODE

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Lazy:
        return Lazy(cluster, HOSTNAME)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Lazy) -> Mask:
        return prepared.counts[nodes.label_codes(HOSTNAME)] < 2


class SaysLocal(Lazy):
    is_local = True

    def update(self, shapes: NDArray[np.intp], rows: NDArray[np.intp], signs: NDArray[np.int64]) -> bool:
        np.add.at(self.counts, self.codes[rows], signs)
        return True


class FewestOnly(PreFilter):
    """Only the emptiest zone will do: one more pod there opens the others."""

    depends_on = Depends.PODS | Depends.NODE

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> SaysLocal:
        return SaysLocal(cluster)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: SaysLocal) -> Mask:
        emptiest = prepared.counts[:-1].min(initial=1000)
        return np.asarray(prepared.counts[nodes.label_codes(ZONE)] == emptiest, np.bool_)


class TellsNothing(SaysLocal):
    topology_keys = (HOSTNAME,)

    def __init__(self, cluster: ClusterView) -> None:
        super().__init__(cluster, HOSTNAME)

    def own_counts(self, nodes: NodeRows) -> NDArray[np.int64]:
        return np.zeros((1, len(nodes)), np.int64)


class HidesItsCounts(PreScore):
    depends_on = Depends.PODS | Depends.NODE

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> TellsNothing:
        return TellsNothing(cluster)

    def score(self, pod: Shape, nodes: NodeRows, prepared: TellsNothing) -> Scores:
        return np.minimum(prepared.counts[nodes.label_codes(HOSTNAME)], MAX_SCORE)


class ReadsFeasibleUnsaid(PreScore):
    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> int:
        return len(feasible)

    def score(self, pod: Shape, nodes: NodeRows, prepared: int) -> Scores:
        return np.full(len(nodes), prepared, np.int64)


class CountsRows(Lazy):
    counts_rows = False
    size = 0

    def refit(self, feasible: NodeRows) -> None:
        self.size = len(feasible)


class CountsRowsUnsaid(PreScore):
    reads_feasible = True

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> CountsRows:
        counts = CountsRows(cluster)
        counts.refit(feasible)
        return counts

    def score(self, pod: Shape, nodes: NodeRows, prepared: CountsRows) -> Scores:
        return np.full(len(nodes), prepared.size, np.int64)


class ReadsMoreThanSaid(Filter):
    depends_on = Depends.NODE
    reads = frozenset(("tolerations",))

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return np.full(len(nodes), pod.request("cpu") < 500, np.bool_)


class ReadsPodLabelsUnsaid(Filter):
    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return np.full(len(nodes), len(pod.pod.metadata.labels or {}) % 2 == 0, np.bool_)


class Keeps(Reserve):
    def reserve(self, pod: PodView, cluster: ClusterView, row: int) -> list[Event]:
        return [ObjectSeen(make_namespace(f"taken-by-{pod.pod.metadata.name}"))]


class ForgetsItsDomain(PodTopologySpread):
    def filter_without(self, pod: Shape, nodes: NodeRows, prepared: Any, gone: Gone) -> Codes:
        return self.filter(pod, nodes, prepared)


class AsksForLess(NodeResourcesFit):
    def asks_for(self, pod: Shape, prepared: Any) -> dict[str, int]:
        return {}


class WaitsForNothing(Filter):
    """Refuses full nodes, and does not say that a pod that goes makes room."""

    depends_on = Depends.NODE | Depends.NODE_USAGE
    helped_by = Change.NODE

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return nodes.pod_count < 2


class LooksAway(Filter):
    """Waits for nodes of a zone, and says that none helps."""

    depends_on = Depends.NODE
    helped_by = Change.NODE

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return nodes.has_label(ZONE)

    def is_helped_by(self, pod: Shape, changed: Changed) -> bool:
        return changed.old is None


BROKEN: list[tuple[type[Plugin], str]] = [
    (Halves, "scores_are_in_range"),
    (BestOfThoseAsked, "each_row_is_answered_by_itself"),
    (Forgetful, "the_same_question_gets_the_same_answer"),
    (Meddler, "asking_changes_nothing"),
    (AmongOthers, "normalize_takes_each_score_by_itself"),
    (Speechless, "refusals_have_words"),
    (TwoMinds, "passes_agrees_with_filter"),
    (TooNarrow, "narrow_leaves_out_only_what_filter_refuses"),
    (SilentGate, "queueing_is_answered"),
    (Incomparable, "queueing_is_answered"),
    (ReadsLabelsUnsaid, "answers_change_only_with_what_it_depends_on"),
    (ReadsUsageUnsaid, "answers_change_only_with_what_it_depends_on"),
    (ReadsNamespacesUnsaid, "answers_change_only_with_what_it_depends_on"),
    (ReadsOtherNodesUsage, "usage_elsewhere_does_not_matter"),
    (CannotSuppose, "usage_can_be_supposed"),
    (SkipsForNow, "a_settled_skip_stands"),
    (RemembersTheFirst, "it_does_not_matter_when_pods_were_seen"),
    (DoesNotFollow, "counts_follow_pods"),
    (SaysNothingChanged, "counts_follow_pods"),
    (SaysZone, "topology_keys_tell_rows_apart"),
    (HidesItsCounts, "own_counts_tell_rows_apart"),
    (FewestOnly, "local_counts_are_local"),
    (ReadsFeasibleUnsaid, "refit_equals_gathering_anew"),
    (CountsRowsUnsaid, "one_row_a_domain_is_enough_to_refit"),
    (ReadsMoreThanSaid, "only_declared_parts_are_read"),
    (ReadsPodLabelsUnsaid, "undeclared_labels_and_annotations_are_not_read"),
    (Keeps, "what_is_reserved_is_given_back"),
    (ForgetsItsDomain, "a_filter_knows_what_it_would_say_without_some_pods"),
    (AsksForLess, "what_a_filter_asks_for_is_all_that_it_checks"),
    (WaitsForNothing, "a_refusal_ends_only_by_what_it_waits_for"),
    (LooksAway, "a_refusal_ends_only_by_what_it_waits_for"),
]


@pytest.mark.parametrize(("plugin", "check"), [pytest.param(*pair, id=pair[0].__name__) for pair in BROKEN])
def test_a_broken_promise_is_found_by_its_check(plugin: type[Plugin], check: str) -> None:
    found = {each.name: each for each in plugin_checks()}[check]

    with pytest.raises(AssertionError, match=plugin.__name__):
        found(plugin())


def test_a_wrong_number_of_answers_is_refused_by_the_engine_itself() -> None:
    with pytest.raises(PluginError, match=r"OneAnswerForAll: filter: expected one answer for each .* \(1,\)"):
        check_plugin(OneAnswerForAll())


def test_relying_on_pods_is_found_where_there_are_none() -> None:
    found = {each.name: each for each in plugin_checks()}["a_cluster_without_pods_is_answered"]

    with pytest.raises(PluginError, match=r"NeedsPods: .*ValueError: zero-size array"):
        found(NeedsPods())


def test_every_check_has_been_seen_to_fail() -> None:
    elsewhere = {"one_answer_a_row", "a_cluster_without_pods_is_answered"}

    assert {check for _, check in BROKEN} | elsewhere == {check.name for check in plugin_checks()}
