"""What plugins may offer besides, so that the engine asks less: the same answers, only sooner.

None of this is needed by a plugin that is right, and it may change with the engine; `mooring.plugin` has what stays.
`OffersInOneGo` (`engine/answers/usage.py`) is one more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import Codes, FilterAnswers, Mask, Plugin, PreFilter
from mooring.model.devices.card_dialects import CARD_ANNOTATIONS
from mooring.state.devices.card_policies import CardPolicy
from mooring.state.effects import ShapeEffects
from mooring.state.pods import PodRows
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, GuardedPod


class QuickMask(FilterAnswers):
    """A filter that is cheaper to ask when nobody wants its reasons."""

    def passes(self, pod: Shape, nodes: NodeRows, prepared: Any) -> Mask:
        """`filter` as a mask."""
        raise NotImplementedError


class ForeseenRoom(FilterAnswers):
    """A filter that can tell how many pods a row takes."""

    def room(self, pod: Shape, nodes: NodeRows, prepared: Any) -> NDArray[np.int64]:
        """How many such pods each row takes, one after the other."""
        raise NotImplementedError


class CountedRoom(ForeseenRoom):
    """A filter that checks nothing but free amounts, and so can tell how many pods a row takes."""

    def asks_for(self, pod: Shape, prepared: Any) -> Mapping[str, int]:
        """How much of each resource a row must have free, in column units."""
        raise NotImplementedError


class BesidesAmounts(FilterAnswers):
    """A filter by usage that reads more of a row than amounts, such as which cards its pods are on.

    To suppose that pods are gone and their amounts given back tells it nothing: it is asked once they are.
    """

    foresees: ClassVar[bool] = False
    """Whether it is quick to tell what it would say after some more pods of a shape (`NodeRows.further_pods`)."""

    def is_concerned_by(self, other: Shape) -> bool:
        """Whether such a pod's coming or going can change an answer."""
        return True


class ChoosesCards(Plugin):
    """A plugin that says which cards of a node the pods of its profile get, where neither they nor the node do."""

    cards: ClassVar[CardPolicy]
    reads_pod_annotations = CARD_ANNOTATIONS

    def card_policy(self) -> CardPolicy:
        return self.cards


def room_by(plugin: FilterAnswers, pod: Shape, nodes: NodeRows, prepared: Any) -> NDArray[np.int64] | None:
    """How many such pods each row takes; None from filters that only see the next one."""
    return plugin.room(pod, nodes, prepared) if isinstance(plugin, ForeseenRoom) else None


Gone = Callable[[ShapeEffects], NDArray[np.int64]]
"""What the pods that are supposed to be gone from each row add up to, by what each shape counts for."""


class SupposingFilter(PreFilter):
    """A filter by counts of pods that can tell, for many nodes at once, what it would say if some of a node's own pods
    were gone. Preemption asks others about one node after the other."""

    def filter_without(self, pod: Shape, nodes: NodeRows, prepared: Any, gone: Gone) -> Mask | Codes:
        """As `filter`, each row being asked about by itself: without some pods of its own, all others as they are."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class Reliance:
    """How many pods of some shapes have to stay in each domain for a filter to accept a held pod on its row."""

    effects: ShapeEffects
    """Pods of shapes with an effect count."""
    domains: NDArray[np.int32]
    """By row: the code of the domain in which its pods count, negative for none."""
    least: NDArray[np.int64]
    """By code: the number of pods that have to stay."""


class SpoiledByOthers(PreFilter):
    """A filter that accepts a row for a pod, and might refuse it once another pod has come to a row or is gone."""

    @property
    def is_strict_by_default(self) -> bool:
        """Whether that may happen to pods that ask for nothing of the kind themselves."""
        return False

    def spoiled_rows(self, held: GuardedPod, pod: Shape, cluster: ClusterView) -> Mask | None:
        """The rows of the table on which such a pod would make this filter refuse a held pod its row; None for none."""
        return None

    def relies_on(self, held: GuardedPod, cluster: ClusterView) -> Sequence[Reliance] | None:
        """The pods without which this filter would refuse a held pod its row; None if no pod of its shape needs any."""
        return None

    def rows_in_doubt(self, pod: Shape, tentative: Mapping[Shape, PodRows], cluster: ClusterView) -> Mask | None:
        """The rows of the table that this filter refuses without some other pods, by shape and row; None for none."""
        prepared = self.pre_filter(pod, cluster)
        if not isinstance(prepared, Incremental):
            return None
        is_moved = False
        for shape, row_of in tentative.items():
            if prepared.is_moved_by(shape):
                rows = np.fromiter(row_of.values(), np.intp)
                is_moved |= prepared.update(np.full_like(rows, shape.id), rows, np.full(len(rows), -1, np.int64))
        if not is_moved:
            return None
        live = cluster.rows()
        refused = np.zeros(cluster.end, np.bool_)
        refused[live.index] = self.filter(pod, live, prepared) != 0
        return refused


class Incremental:
    """Something prepared that can follow changes of pods instead of being gathered anew."""

    topology_keys: tuple[str, ...] = ()
    """Rows with equal values of these labels get equal answers."""

    @property
    def is_local(self) -> bool:
        """Whether a pod that comes to a row changes the answers of rows in its own domains only."""
        return False

    def update(self, shapes: NDArray[np.intp], rows: NDArray[np.intp], signs: NDArray[np.int64]) -> bool:
        """Take in pods that came (sign 1) to or went (sign -1) from rows; tell whether anything changed."""
        raise NotImplementedError

    def update_one(self, shape_id: int, row: int, sign: int) -> bool:
        """The same for one pod; override it where that is cheaper, because most changes come one at a time."""
        return self.update(np.array([shape_id], np.intp), np.array([row], np.intp), np.array([sign], np.int64))

    def is_moved_by(self, shape: Shape) -> bool:
        """Whether a pod of this shape changes anything by coming or going."""
        return True

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        return 0

    def own_counts(self, nodes: NodeRows) -> NDArray[np.int64] | None:
        """(counts, rows): what is counted where each node is a domain of its own; None if it does not tell.

        Rows that are alike in these and in their other domains get equal answers.
        """
        return None

    @property
    def counts_rows(self) -> bool:
        """Whether `refit` needs all feasible rows; otherwise one row a domain tells it as much."""
        return True

    def refit(self, feasible: NodeRows) -> None:
        """Take in that other nodes are feasible now; for what pre_score gathers with `reads_feasible`."""
