"""What nodes say to a pod whatever runs on them: asked once, until a node or a related object changes.

Plugins say which parts of a pod they read, so that a thousand shapes that differ only in what they request share these
answers, in time and in memory.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from mooring.engine.asking import ask_filter, ask_narrow, ask_pre_filter, ask_pre_score, ask_score, normalized
from mooring.engine.evaluate import Evaluation, rows_named
from mooring.engine.plugin import SKIP, Depends, Mask, Plugin, PreFilter, ScoreAnswers, Scores
from mooring.engine.profile import Profile
from mooring.engine.ranking.blocks import Keys
from mooring.engine.ranking.groups import Groups, group_rows
from mooring.engine.verdict import Rejection
from mooring.state.cluster import Cluster
from mooring.state.nodes import TIE_BITS
from mooring.state.rows import Rows
from mooring.state.shapes import Shape

_MOVING = (
    Depends.NODE_USAGE | Depends.NODE_LOAD | Depends.PODS
).value  # plain integers: this is asked for every plugin and shape


def is_settled(plugin: Plugin) -> bool:
    """Whether a plugin's answers depend on descriptions only."""
    return not plugin.depends_on._value_ & _MOVING


@dataclass(frozen=True)
class Settled:
    """The settled answers of one profile for some shapes."""

    rows: Rows
    """The rows that no settled filter refuses."""
    is_row: Mask
    """The same as a mask over the table."""
    is_everywhere: bool
    """Whether that is every row of the table, so that nobody needs the mask."""
    keys: Keys
    """What settled scores add up to, and the tie-breaker below it, one a row of the table."""
    normalized: tuple[tuple[ScoreAnswers, int, Scores], ...]
    """Plugin, weight and raw scores of those that depend on which other rows are feasible."""
    skipped: frozenset[str]
    """The filters that have nothing to say."""
    refused: bool = False


NOTHING_SETTLED = Settled(
    np.zeros(0, np.intp), np.zeros(0, np.bool_), False, np.zeros(0, np.int64), (), frozenset(), refused=True
)


class SettledCache:
    """Settled answers, shared by all shapes that are alike in what settled plugins read."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._description: tuple[int, ...] = ()
        self._known: dict[Hashable, Settled] = {}
        self._groups: dict[tuple[str, ...], Groups] = {}

    def _look_at(self, cluster: Cluster) -> None:
        """Forget what is no longer settled."""
        if self._cluster is not cluster or self._description != cluster.description:
            self._cluster, self._description = cluster, cluster.description
            self._known.clear()
            self._groups.clear()

    def groups(self, cluster: Cluster, keys: tuple[str, ...]) -> Groups:
        """The rows grouped by their values of some labels."""
        self._look_at(cluster)
        keys = tuple(sorted(keys))
        known = self._groups.get(keys)
        if known is None:
            known = self._groups[keys] = group_rows(cluster.nodes, keys)
        return known

    def of(self, profile: Profile, cluster: Cluster, shape: Shape) -> Settled:
        self._look_at(cluster)
        key = (profile.name, *(shape.part(name) for name in profile.settled_parts))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = settle(profile, cluster, shape)
        return known


def settle(profile: Profile, cluster: Cluster, shape: Shape) -> Settled:
    """Ask everything that is settled."""
    answer = Evaluation(shape, cluster, profile, cluster.nodes.live_rows())
    rows = answer.rows
    skipped = set[str]()
    for plugin in profile.filters:
        if isinstance(plugin, PreFilter):
            narrowed = ask_narrow(plugin, shape)
            if isinstance(narrowed, Rejection):
                return NOTHING_SETTLED
            if narrowed is not None:
                rows = rows[rows_named(cluster, rows, narrowed)]
        if not is_settled(plugin):
            continue
        prepared = ask_pre_filter(plugin, shape, cluster)
        if isinstance(prepared, Rejection):
            return NOTHING_SETTLED
        if prepared is SKIP:
            skipped.add(plugin.name)
        elif len(rows):
            rows = rows[ask_filter(plugin, shape, cluster.rows(rows), prepared) == 0]
    is_row = np.zeros(cluster.nodes.end, np.bool_)
    is_row[rows] = True
    is_everywhere = bool(is_row.all())
    if is_everywhere:
        rows = cluster.nodes.live_rows()  # the same rows, in the form that needs no gathering
    score, moving = _settle_scores(profile, cluster, shape, rows)
    keys = (np.full(cluster.nodes.end, score, np.int64) << TIE_BITS) + cluster.nodes.tie.values[: cluster.nodes.end]
    return Settled(rows, is_row, is_everywhere, keys, moving, frozenset(skipped))


def _settle_scores(
    profile: Profile, cluster: Cluster, shape: Shape, rows: Rows
) -> tuple[Scores | int, tuple[tuple[ScoreAnswers, int, Scores], ...]]:
    nodes = cluster.rows(rows)
    total: Scores | int = 0
    moving: list[tuple[ScoreAnswers, int, Scores]] = []
    for plugin, weight in profile.scores:
        if not is_settled(plugin) or not len(rows):
            continue
        prepared = ask_pre_score(plugin, shape, cluster, nodes)
        if prepared is SKIP:
            continue
        asked = ask_score(plugin, shape, nodes, prepared)
        if (asked == asked[0]).all():
            # The same everywhere: what it comes to does not depend on which rows are feasible.
            total = total + weight * int(normalized(plugin, asked[:1])[0])
            continue
        by_row = np.zeros(cluster.nodes.end, np.int64)
        if plugin.normalizes:
            by_row[rows] = asked
            moving.append((plugin, weight, by_row))
        else:
            by_row[rows] = weight * normalized(plugin, asked)
            total = total + by_row
    return total, tuple(moving)
