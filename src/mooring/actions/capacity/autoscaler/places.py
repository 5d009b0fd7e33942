"""Where pods find a place: the first node that takes a pod, after the one that was found last, by the real filters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mooring.engine.answers.kept import KeptAnswers
from mooring.engine.answers.settled import SettledCache, is_settled
from mooring.engine.asking import ask_passes, ask_pre_filter
from mooring.engine.evaluate import Evaluation, prepare_filters, run_filters
from mooring.engine.plugin import SKIP, Mask
from mooring.engine.profile import Profile
from mooring.engine.shortcuts import CountedRoom
from mooring.engine.verdict import Rejection, Verdict
from mooring.state.cluster import Cluster
from mooring.state.rows import Rows
from mooring.state.shapes import Shape

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Plain:
    """What stands between a pod and nodes of one kind, where that is nothing but amounts."""

    filters: tuple[tuple[CountedRoom, Any], ...]
    """With what each has gathered."""
    asks: Mapping[str, int]
    """How much of each resource a node must have free."""


class Places:
    """Looks for places in one cluster, for the time of one decision."""

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self.cluster = cluster
        self.profile = replace(profile, scores=())  # the first node will do: none is better than another
        self._answers = KeptAnswers()
        self._settled = SettledCache()
        self._plain: dict[int, Plain | None] = {}
        self._plain_until = (0, 0)
        self._last = NOWHERE

    def find(self, shape: Shape, acceptable: Mask) -> int:
        """The row of the first acceptable node that takes such a pod, after the one found last; NOWHERE without any."""
        rows = self._feasible(shape)
        rows = rows[acceptable[rows]]
        if not len(rows):
            return NOWHERE
        at = int(rows.searchsorted(self._last, side="right"))
        self._last = int(rows[at if at < len(rows) else 0])
        return self._last

    def _feasible(self, shape: Shape) -> Rows:
        plain = self.plain(shape)
        if plain is None:
            return self._answers.fresh(self.profile, self.cluster, shape).feasible_rows()
        rows = self._settled.of(self.profile, self.cluster, shape).rows
        for plugin, prepared in plain.filters:
            rows = rows[ask_passes(plugin, shape, self.cluster.rows(rows), prepared)]
        return rows

    def fits(self, shape: Shape, row: int) -> bool:
        """Whether one node takes such a pod."""
        plain = self.plain(shape)
        if plain is None:
            rows = self._feasible(shape)
            at = int(rows.searchsorted(row))
            return at < len(rows) and int(rows[at]) == row
        settled = self._settled.of(self.profile, self.cluster, shape)
        if settled.refused or not settled.is_row[row]:
            return False
        nodes = self.cluster.nodes
        return all(
            nodes.allocatable(name).item(row) - nodes.requested(name).item(row) >= amount
            for name, amount in plain.asks.items()
        )

    def plain(self, shape: Shape) -> Plain | None:
        """What a pod asks of a node, if nodes of one kind differ by nothing but amounts for it; None if by more."""
        shapes = self.cluster.shapes
        until = len(shapes.with_pod_affinity), len(shapes.sharing_gpus)
        if until != self._plain_until:  # there are pods now that may have to do with any other
            self._plain, self._plain_until = {}, until
        if shape.id not in self._plain:
            self._plain[shape.id] = self._look_at(shape)
        return self._plain[shape.id]

    def _look_at(self, shape: Shape) -> Plain | None:
        filters: list[tuple[CountedRoom, Any]] = []
        asks: dict[str, int] = {}
        for plugin in self.profile.filters:
            if is_settled(plugin):
                continue
            prepared = ask_pre_filter(plugin, shape, self.cluster)
            if prepared is SKIP and plugin.skip_is_settled:
                continue
            if not isinstance(plugin, CountedRoom) or prepared is SKIP or isinstance(prepared, Rejection):
                return None
            filters.append((plugin, prepared))
            for name, amount in plugin.asks_for(shape, prepared).items():
                asks[name] = max(amount, asks.get(name, 0))
        return Plain(tuple(filters), asks)

    def verdict(self, shape: Shape, row: int) -> Verdict | None:
        """Why one node does not take such a pod; None if it does."""
        if self.plain(shape) is not None and self.fits(shape, row):
            return None
        answer = Evaluation(shape, self.cluster, self.profile, np.array([row], np.intp))
        allowed = prepare_filters(answer)
        if answer.refused is not None:
            return answer.refused
        run_filters(answer, allowed)
        return answer.verdict(0)

    def uncordoned(self) -> Mask:
        """All nodes that are not cordoned: others take nothing."""
        nodes = self.cluster.nodes
        found: Mask = nodes.alive.values[: nodes.end] & ~nodes.unschedulable.values[: nodes.end]
        return found

    def only(self, rows: list[int] | Rows) -> Mask:
        """Some rows alone."""
        found = np.zeros(self.cluster.nodes.end, np.bool_)
        found[rows] = True
        return found
