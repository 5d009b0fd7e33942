"""What all nodes say to one shape, kept between pods and refreshed only where a change touched it.

Every plugin that has something to say about a shape is put into one of four kinds, by what its answers depend on:

- settled: the nodes' descriptions and related objects; asked once, until one of those changes.
- by usage: what runs on the row itself; asked again for the rows that a pod came to or went from.
- by domain: pods elsewhere, counted by domain in something Incremental; counts follow the changes.
- unforeseen: anything else; gathered and asked anew whenever any pod came or went.

The sum of the first two is kept as one key a row: the total score with the tie-breaker below it, or INFEASIBLE.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mooring.engine.answers.moving import DomainFilter, NormalizedScore, as_prepared
from mooring.engine.answers.settled import NOTHING_SETTLED, Settled, SettledCache, is_settled
from mooring.engine.answers.usage import UsageAnswers, UsageFilter, UsageScore
from mooring.engine.asking import ask_filter, ask_pre_filter, ask_pre_score, ask_score, normalized
from mooring.engine.binding import needs_steps
from mooring.engine.evaluate import NodeLimit
from mooring.engine.held_pods import HeldPods
from mooring.engine.plugin import SKIP, Change, Depends, Plugin, PreScore, Scores
from mooring.engine.profile import Profile
from mooring.engine.ranking.blocks import FEASIBLE_FROM, INFEASIBLE, Keys
from mooring.engine.ranking.groups import Groups
from mooring.engine.shortcuts import BesidesAmounts, Incremental
from mooring.engine.verdict import Rejection
from mooring.state.cluster import Cluster
from mooring.state.nodes import TIE_BITS
from mooring.state.rows import NodeRows, Rows
from mooring.state.shapes import Shape
from mooring.state.touched import SUPERSEDED


def to_keys(totals: Scores, ties: NDArray[np.int64]) -> Keys:
    """Totals and tie-breakers as one number each: the largest key is the node to choose."""
    return (totals << TIE_BITS) + ties


OBJECTS_BYTES = 8 * 1024
"""About what the objects take that hold the answers of one shape, besides columns."""

_TIE_BITS = np.array(TIE_BITS, np.int64)  # an array: a plain number is converted each time
_ROW = (Depends.NODE_USAGE | Depends.NODE_LOAD).value
_PODS = Depends.PODS.value


def is_by_usage(plugin: Plugin) -> bool:
    """Whether a plugin's answers change with what runs or is measured on the row itself, and with nothing else."""
    depends_on = plugin.depends_on._value_
    return bool(depends_on & _ROW) and not depends_on & _PODS


def is_by_amounts(plugin: Plugin) -> bool:
    """Whether a plugin's answers change with the amounts that pods take of the row itself, and with nothing else."""
    return is_by_usage(plugin) and not isinstance(plugin, BesidesAmounts)


@dataclass(eq=False)
class ShapeAnswers:
    """The kept answers of one profile for one shape."""

    profile: Profile
    cluster: Cluster
    shape: Shape
    settled_cache: SettledCache
    description: tuple[int, ...] = ()
    position: int = -1
    refused: bool = False
    """A plugin refuses the pod whatever the nodes say."""
    has_steps: bool = False
    """Some plugin has something to do once a node is chosen."""
    settled: Settled = NOTHING_SETTLED
    keys: Keys = field(default_factory=lambda: np.zeros(0, np.int64))
    """One a row of the table."""
    _slots: Keys = field(default_factory=lambda: np.zeros(1, np.int64))
    """The keys, and behind them one slot for what is of no use: the place of SUPERSEDED rows."""
    usage_filters: list[UsageFilter] = field(default_factory=list)
    usage_scores: list[UsageScore] = field(default_factory=list)
    _usage: UsageAnswers = field(init=False)
    domain_filters: list[DomainFilter] = field(default_factory=list)
    normalized_scores: list[NormalizedScore] = field(default_factory=list)
    _is_by_usage_alone: bool = False
    """Nothing moves but usage."""
    _skipped: set[str] = field(default_factory=set)
    _guards: int = -1
    """The version of the held pods that others could harm."""

    # Keeping up.

    def refresh(self) -> bool:
        """Bring everything up to date with the cluster; tell whether it had to be built anew."""
        try:
            return self._catch_up()
        except Exception:
            self.forget()
            raise

    def forget(self) -> None:
        """Something raised while answers were asked for or followed: they are half of this and half of that."""
        self.description = ()

    def _catch_up(self) -> bool:
        cluster = self.cluster
        since, self.position = self.position, cluster.pod_changes.position
        if self.description != cluster.description:
            self._build()
            return True
        if self._guards != cluster.guards_version:
            self._follow_guards()
        if since == self.position:
            return False
        if self._is_by_usage_alone:
            self._follow_usage(since)
            return False
        changes = cluster.pod_changes.since(since)
        if changes is None:
            self._build()
            return True
        self._follow_usage(since)
        self._follow(*changes)
        return False

    def _build(self) -> None:
        cluster = self.cluster
        self.description = cluster.description
        self._guards = cluster.guards_version
        self.has_steps = needs_steps(self.profile, self.shape)
        self.settled = self.settled_cache.of(self.profile, cluster, self.shape)
        self._slots = np.full(cluster.nodes.end + 1, INFEASIBLE, np.int64)
        self.keys = self._slots[:-1]
        self.refused = self.settled.refused or not self._prepare_filters()
        if self.refused:
            self.usage_filters, self.usage_scores, self.domain_filters, self.normalized_scores = [], [], [], []
            self.description = ()  # ask again next time: refusals are rare, and gathering is their whole cost
            return
        self._prepare_scores()
        self._usage = UsageAnswers(self.shape, self.usage_filters, self.usage_scores)
        moving = [score for score in self.normalized_scores if score.raw is None]
        self._is_by_usage_alone = not self.domain_filters and not moving
        if len(self.settled.rows):
            self._ask_usage(self.settled.rows)

    def _follow_guards(self) -> None:
        """Ask again about the rows that are to be left to held pods."""
        self._guards = self.cluster.guards_version
        self.domain_filters = [domain for domain in self.domain_filters if not isinstance(domain.plugin, HeldPods)]
        for plugin in self.profile.filters:
            if isinstance(plugin, HeldPods):
                prepared = ask_pre_filter(plugin, self.shape, self.cluster)
                if prepared is SKIP:
                    self._skipped.add(plugin.name)
                else:
                    self._skipped.discard(plugin.name)
                    self.domain_filters.append(DomainFilter(plugin, prepared))
        moving = any(score.raw is None for score in self.normalized_scores)
        self._is_by_usage_alone = not self.domain_filters and not moving

    def _prepare_filters(self) -> bool:
        """Gather for the filters that are not settled; False if one refuses the pod outright."""
        self.usage_filters, self.domain_filters = [], []
        self._skipped = set(self.settled.skipped)
        for plugin in self.profile.filters:
            if is_settled(plugin):
                continue
            prepared = ask_pre_filter(plugin, self.shape, self.cluster)
            if isinstance(prepared, Rejection):
                return False
            if prepared is SKIP and plugin.skip_is_settled:
                self._skipped.add(plugin.name)
            elif is_by_usage(plugin) and prepared is not SKIP:
                self.usage_filters.append((plugin, prepared))
            else:
                self.domain_filters.append(DomainFilter(as_prepared(plugin), prepared))
        return True

    def _prepare_scores(self) -> None:
        """Gather for the scores that are not settled."""
        nodes = self.cluster.rows(self.settled.rows)
        self.usage_scores = []
        self.normalized_scores = [NormalizedScore(*score) for score in self.settled.normalized]
        for plugin, weight in self.profile.scores:
            if is_settled(plugin):
                continue
            prepared = ask_pre_score(plugin, self.shape, self.cluster, nodes)
            if prepared is SKIP and plugin.skip_is_settled:
                continue
            if is_by_usage(plugin) and not plugin.normalizes and prepared is not SKIP:
                self.usage_scores.append((plugin, weight, prepared))
            else:
                self.normalized_scores.append(NormalizedScore(plugin, weight, None, prepared))

    def _follow_usage(self, position: int) -> None:
        """Ask again about the rows that changed since a position."""
        settled = self.settled
        changed = self.cluster.pod_changes.rows_since(position)
        is_few = changed is not None and 2 * len(changed) <= len(settled.rows)
        rows = changed if changed is not None and is_few else settled.rows
        if self._usage.set_keys(self.cluster.nodes, rows, settled, self.keys):
            return
        touched = self.cluster.touched.since(position)
        if touched is None or 2 * len(touched) > len(settled.rows):
            if len(settled.rows):
                self._ask_usage(settled.rows)
        elif settled.is_everywhere and 2 * touched.count_superseded() <= len(touched):
            self._slots[touched.targets] = self.usage_keys(touched)
        else:
            rows = touched.targets[touched.targets != SUPERSEDED]
            rows = rows if settled.is_everywhere else rows[settled.is_row[rows]]
            if len(rows):
                self._ask_usage(rows)

    def _follow(self, shapes: Rows, rows: Rows, signs: NDArray[np.int64]) -> None:
        for domain in self.domain_filters:
            if domain.counts is None:
                domain.prepared = ask_pre_filter(domain.plugin, self.shape, self.cluster)
            else:
                domain.counts.update(shapes, rows, signs)
        for score in self.normalized_scores:
            if score.raw is None:
                self._follow_score(score, shapes, rows, signs)

    def _follow_score(self, score: NormalizedScore, shapes: Rows, rows: Rows, signs: NDArray[np.int64]) -> None:
        if score.counts is not None:
            score.counts.update(shapes, rows, signs)
        elif isinstance(score.plugin, PreScore):
            score.prepared = ask_pre_score(score.plugin, self.shape, self.cluster, self.cluster.rows(self.settled.rows))

    def settle(self, rows: Sequence[int]) -> None:
        """A ranking of these answers was carried out, pods on these rows: its counts have followed it already."""
        if rows:
            self._ask_usage(np.array(sorted(set(rows)), np.intp))
        self.position = self.cluster.pod_changes.position

    @property
    def size_bytes(self) -> int:
        """About how much memory keeping this costs."""
        parts = [f.counts for f in self.domain_filters] + [s.counts for s in self.normalized_scores]
        return OBJECTS_BYTES + self.keys.nbytes + sum(counts.size_bytes for counts in parts if counts is not None)

    def helped_by(self) -> Change:
        """Which changes could help a pod that no row takes now."""
        changes = Change.NODE  # a new one may take what the others refuse, or there is none yet
        for plugin in self.profile.filters:
            if plugin.name not in self._skipped:
                changes |= plugin.helped_by
        return changes

    def is_moved_by(self, shape: Shape) -> bool:
        """Whether a pod of some shape, once bound, could open a row that is refused now."""
        if self.refused:
            return True  # before anything was gathered that could tell
        if any(plugin.helped_by & Change.POD_BOUND for plugin, _ in self.usage_filters):
            return True
        return any(domain.counts is None or domain.counts.is_moved_by(shape) for domain in self.domain_filters)

    def _ask_usage(self, rows: Rows) -> None:
        """Ask what depends on usage about some rows that no settled filter refuses, and set their keys."""
        if self._usage.set_keys(self.cluster.nodes, rows, self.settled, self.keys):
            return
        if rows is self.settled.rows:
            self.cluster.touched.catch_up()
        keys = self.usage_keys(self.cluster.rows(rows))
        if rows is self.settled.rows and self.settled.is_everywhere:
            self.keys[:] = keys
        else:
            self.keys[rows] = keys

    def usage_keys(self, nodes: NodeRows) -> Keys:
        """The keys of some rows, from what is settled and their usage, which may be a supposed one."""
        passed, totals = self._usage.ask(nodes)
        keys: Keys = self.settled.keys.take(nodes.index)
        if totals is not None:
            keys += totals << _TIE_BITS
        if passed is not None:
            keys[~passed] = INFEASIBLE
        return keys

    # Domains.

    def is_narrow(self, counts: Incremental) -> bool:
        """Whether rows fall into few groups by the domains that these counts speak of."""
        return self.is_narrow_by(counts.topology_keys)

    def is_narrow_by(self, keys: tuple[str, ...]) -> bool:
        return len(self.groups_by(keys).representatives) * 4 <= max(64, len(self.settled.rows))

    def has_row_domains(self, counts: Incremental) -> bool:
        """Whether each row is a domain of its own in all that these counts speak of."""
        return all(self.cluster.nodes.is_one_row_each(key) for key in counts.topology_keys)

    def groups(self, counts: Sequence[Incremental | None]) -> Groups:
        """The rows grouped by all the domains that some counts speak of."""
        keys = {key for count in counts if count is not None for key in count.topology_keys}
        return self.groups_by(tuple(keys))

    def groups_by(self, keys: tuple[str, ...]) -> Groups:
        """The rows grouped by their values of some labels."""
        return self.settled_cache.groups(self.cluster, keys)

    # Choosing.

    def feasible_rows(self) -> Rows:
        """The rows that every filter accepts now."""
        rows = np.flatnonzero(self.keys >= FEASIBLE_FROM)
        for domain in self.domain_filters:
            if isinstance(domain.prepared, Rejection):
                return rows[:0]
            if domain.prepared is not SKIP and len(rows):
                codes = ask_filter(domain.plugin, self.shape, self.cluster.rows(rows), domain.prepared)
                rows = rows[codes == 0]
        return rows

    def choose(self, limit: NodeLimit | None = None) -> int:
        """The best row for one pod now, or -1; after refresh."""
        if not self.domain_filters and not self.normalized_scores and limit is None:
            if not len(self.keys):
                return -1
            row = int(self.keys.argmax())
            return row if self.keys.item(row) >= FEASIBLE_FROM else -1
        rows = self.feasible_rows()
        if limit is not None:
            rows = limit.apply(rows, self.cluster)
        if not len(rows):
            return -1
        keys = self.keys[rows]
        for score in self.normalized_scores:
            keys = keys + (self.normalized(score, rows) << TIE_BITS)
        return int(rows[keys.argmax()])

    def normalized(self, score: NormalizedScore, rows: Rows) -> Scores:
        """A score's weighted part of the total, for feasible rows."""
        if score.raw is not None:
            return score.weight * normalized(score.plugin, score.raw[rows])
        nodes = self.cluster.rows(rows)
        if score.counts is not None:
            score.counts.refit(nodes)
        elif isinstance(score.plugin, PreScore) and score.plugin.reads_feasible:
            score.prepared = ask_pre_score(score.plugin, self.shape, self.cluster, nodes)
        if score.prepared is SKIP:
            return np.zeros(len(rows), np.int64)
        return score.weight * normalized(score.plugin, ask_score(score.plugin, self.shape, nodes, score.prepared))
