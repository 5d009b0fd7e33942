"""Plugins as other people write them: every mix of ability and declaration that ours do not happen to have."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import (
    MAX_SCORE,
    SKIP,
    Depends,
    Filter,
    Mask,
    Permit,
    PreFilter,
    PreScore,
    Reserve,
    Score,
    Scores,
    Skip,
    normalize_by_highest,
)
from mooring.engine.shortcuts import Incremental
from mooring.engine.verdict import Rejection
from mooring.model.events import Event
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView
from mooring.testing.builders import GPU, HOSTNAME, RACK


class FewPods(Filter):
    """Declares nothing, so that its answers are never kept."""

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return nodes.pod_count < 3


class FewGpus(Filter, Score):
    """Usage alone, in a filter and a score."""

    depends_on = Depends.NODE_USAGE | Depends.NODE

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return nodes.free(GPU) - pod.request(GPU) >= (1 if pod.request(GPU) else 0)

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        return MAX_SCORE - np.minimum(nodes.free(GPU), MAX_SCORE)


class RoomForWeb(PreFilter):
    """Usage, gathered for, and often nothing to say; it does not promise that this is settled."""

    reads_pod_labels = ("app",)
    depends_on = Depends.NODE_USAGE | Depends.NODE

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> int | Skip:
        return SKIP if pod.labels.get("app") == "web" else 500

    def filter(self, pod: Shape, nodes: NodeRows, prepared: int) -> Mask:
        return nodes.free("cpu") >= prepared


class EmptierIsBetter(PreScore):
    """Usage, normalised over the feasible nodes, with nothing to say to some pods."""

    reads_pod_labels = ("app",)
    depends_on = Depends.NODE_USAGE | Depends.NODE
    normalizes = True

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> Skip | None:
        return SKIP if pod.labels.get("app") == "db" else None

    def score(self, pod: Shape, nodes: NodeRows, prepared: None) -> Scores:
        return nodes.pod_count

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return normalize_by_highest(raw, highest, reverse=True)


class FullerIsBetter(Score):
    """Declares nothing, and is normalised."""

    normalizes = True

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        return nodes.nonzero_requested("cpu")

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return normalize_by_highest(raw, highest)


class AboveAverage(PreScore):
    """Gathers from the feasible nodes, anew each time."""

    reads_feasible = True

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> float | Skip:
        return float(feasible.free("memory").mean()) if len(feasible) > 1 else SKIP

    def score(self, pod: Shape, nodes: NodeRows, prepared: float) -> Scores:
        return np.where(nodes.free("memory") > prepared, MAX_SCORE, 0)


class SoManyOfAKind(PreFilter):
    """Refuses the pod outright, or skips, by how many of its kind run anywhere."""

    reads_pod_labels = ("app",)
    depends_on = Depends.PODS

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Skip | Rejection | None:
        shapes, _ = cluster.bound_pods()
        count = sum(cluster.shape(shape).labels.get("app") == pod.labels.get("app") for shape in shapes.tolist())
        if count >= 6:
            return Rejection(("six of a kind run already",))
        return SKIP if count < 3 else None

    def filter(self, pod: Shape, nodes: NodeRows, prepared: None) -> Mask:
        is_even: Mask = nodes.index % 2 == 0
        return is_even


class OnlyTwoNodes(PreFilter):
    """Names the only nodes worth looking at."""

    reads_pod_labels = ("app",)
    depends_on = Depends.NODE
    NAMES = frozenset(("node-0", "node-2"))

    def narrow(self, pod: Shape) -> frozenset[str] | None:
        return self.NAMES if pod.labels.get("app") == "train" else None

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Skip | None:
        return SKIP if self.narrow(pod) is None else None

    def filter(self, pod: Shape, nodes: NodeRows, prepared: None) -> Mask:
        return np.array([name in self.NAMES for name in nodes.names], np.bool_)


class Racks(Incremental):
    """How many pods of one app each rack has."""

    topology_keys = (RACK,)

    def __init__(self, cluster: ClusterView, app: str) -> None:
        self._cluster, self._app = cluster, app
        self._codes = cluster.label_codes(RACK)
        self.counts = np.zeros(len(cluster.label_values(RACK)) + 1, np.int64)  # the last: nodes without a rack
        shapes, rows = cluster.bound_pods()
        self.update(shapes.astype(np.intp), rows.astype(np.intp), np.ones(len(rows), np.int64))

    @property
    def is_local(self) -> bool:
        return True

    def update(self, shapes: NDArray[np.intp], rows: NDArray[np.intp], signs: NDArray[np.int64]) -> bool:
        counts_for = [self._cluster.shape(shape).labels.get("app") == self._app for shape in shapes.tolist()]
        mine = np.array(counts_for, np.bool_)
        np.add.at(self.counts, self._codes[rows[mine]], signs[mine])
        return bool(mine.any())


class ThreeARack(PreFilter, PreScore):
    """Counts that follow pods, in a filter and in a score that is not normalised."""

    reads_pod_labels = ("app",)
    depends_on = Depends.PODS | Depends.NODE

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Racks:
        return Racks(cluster, pod.labels.get("app", ""))

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Racks) -> Mask:
        return prepared.counts[nodes.label_codes(RACK)] < 3

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> Racks:
        return Racks(cluster, pod.labels.get("app", ""))

    def score(self, pod: Shape, nodes: NodeRows, prepared: Racks) -> Scores:
        return MAX_SCORE - 10 * np.minimum(prepared.counts[nodes.label_codes(RACK)], 10)


class Hosts(Incremental):
    """How many pods each node has, whatever they are: what one pod changes is not local to its node."""

    topology_keys = (HOSTNAME,)

    def __init__(self, cluster: ClusterView) -> None:
        self._codes = cluster.label_codes(HOSTNAME)
        self.counts = np.zeros(len(cluster.label_values(HOSTNAME)), np.int64)
        shapes, rows = cluster.bound_pods()
        self.update(shapes.astype(np.intp), rows.astype(np.intp), np.ones(len(rows), np.int64))

    def update(self, shapes: NDArray[np.intp], rows: NDArray[np.intp], signs: NDArray[np.int64]) -> bool:
        np.add.at(self.counts, self._codes[rows], signs)
        return len(rows) > 0


class BehindTheFullest(PreFilter, PreScore):
    """The fullest node of all takes no more; the further behind it, the better."""

    depends_on = Depends.PODS | Depends.NODE

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Hosts:
        return Hosts(cluster)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Hosts) -> Mask:
        counts = prepared.counts[nodes.label_codes(HOSTNAME)]
        fits: Mask = (counts == 0) | (counts < prepared.counts.max(initial=0))
        return fits

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> Hosts:
        return Hosts(cluster)

    def score(self, pod: Shape, nodes: NodeRows, prepared: Hosts) -> Scores:
        behind = prepared.counts.max(initial=0) - prepared.counts[nodes.label_codes(HOSTNAME)]
        scores: Scores = np.minimum(20 * behind, MAX_SCORE)
        return scores


class FurtherBehindIsBetter(PreScore):
    """The same as a score alone, normalised."""

    depends_on = Depends.PODS | Depends.NODE
    normalizes = True

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> Hosts:
        return Hosts(cluster)

    def score(self, pod: Shape, nodes: NodeRows, prepared: Hosts) -> Scores:
        fullest = prepared.counts.max(initial=0)
        return np.asarray((fullest - prepared.counts[nodes.label_codes(HOSTNAME)]) ** 2 + fullest % 3)

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return normalize_by_highest(raw, highest)


class RacksAndHosts(Incremental):
    """How many pods each rack and each node has: local, over few domains and over nodes at once."""

    topology_keys = (RACK, HOSTNAME)
    is_local = True

    def __init__(self, cluster: ClusterView) -> None:
        self._codes = [cluster.label_codes(key) for key in self.topology_keys]
        self.counts = [np.zeros(len(cluster.label_values(key)) + 1, np.int64) for key in self.topology_keys]
        shapes, rows = cluster.bound_pods()
        self.update(shapes.astype(np.intp), rows.astype(np.intp), np.ones(len(rows), np.int64))

    def update(self, shapes: NDArray[np.intp], rows: NDArray[np.intp], signs: NDArray[np.int64]) -> bool:
        for counts, codes in zip(self.counts, self._codes, strict=True):
            np.add.at(counts, codes[rows], signs)
        return len(rows) > 0


class EmptyRacksAndHosts(PreScore):
    """The emptier the rack and the node, the better."""

    depends_on = Depends.PODS | Depends.NODE
    normalizes = True

    def pre_score(self, pod: Shape, cluster: ClusterView, feasible: NodeRows) -> RacksAndHosts:
        return RacksAndHosts(cluster)

    def score(self, pod: Shape, nodes: NodeRows, prepared: RacksAndHosts) -> Scores:
        by_rack, by_host = (
            counts[nodes.label_codes(key)] for counts, key in zip(prepared.counts, (RACK, HOSTNAME), strict=True)
        )
        return np.asarray(3 * by_host + by_rack, np.int64)

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return normalize_by_highest(raw, highest, reverse=True)


class NotOnOddNodes(Permit):
    """Refuses after the choice, so that pods go one by one and some choices are taken back."""

    def permit(self, pod: PodView, cluster: ClusterView, row: int) -> Rejection | None:
        odd = int(cluster.node_name(row).rpartition("-")[2]) % 3 == 1
        return Rejection(("the node's number is odd",)) if odd else None


class NothingToTake(Reserve):
    """Applies to some pods only: others may still be placed together."""

    reads_pod_labels = ("app",)

    def applies_to(self, pod: Shape) -> bool:
        return pod.labels.get("app") == "web"

    def reserve(self, pod: PodView, cluster: ClusterView, row: int) -> Sequence[Event]:
        return ()


ALL: tuple[type[Any], ...] = (
    FewPods,
    FewGpus,
    RoomForWeb,
    EmptierIsBetter,
    FullerIsBetter,
    AboveAverage,
    SoManyOfAKind,
    OnlyTwoNodes,
    ThreeARack,
    BehindTheFullest,
    FurtherBehindIsBetter,
    EmptyRacksAndHosts,
    NotOnOddNodes,
    NothingToTake,
)
