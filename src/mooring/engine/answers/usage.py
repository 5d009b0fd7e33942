"""What plugins by usage say about some rows: which pass, and what their scores add up to.

Each plugin is asked by itself, unless one of them offers to answer for all of them in one go.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from mooring.engine.answers.settled import Settled
from mooring.engine.asking import ask_passes, ask_score
from mooring.engine.plugin import FilterAnswers, Mask, ScoreAnswers, Scores
from mooring.engine.ranking.blocks import Keys
from mooring.state.nodes import NodeTable
from mooring.state.rows import NodeRows, Rows
from mooring.state.shapes import Shape

UsageFilter = tuple[FilterAnswers, Any]
"""(plugin, what it has prepared)"""
UsageScore = tuple[ScoreAnswers, int, Any]
"""(plugin, weight, what it has prepared)"""


class InOneGo(Protocol):
    """Answers for several plugins by usage together."""

    def __call__(self, nodes: NodeRows) -> tuple[Mask | None, Scores] | None:
        """Which rows pass (None for all), and their weighted totals, which are of no matter where a row does not pass.

        None where the plugins have to be asked one by one after all.
        """

    def set_keys(self, table: NodeTable, rows: Rows, settled: Settled, keys: Keys) -> bool:
        """Set the keys of those of some rows that no settled filter refuses; False if that is not on offer."""


class OffersInOneGo:
    """A plugin that can answer for others too."""

    def in_one_go(self, filters: Sequence[UsageFilter], scores: Sequence[UsageScore]) -> InOneGo | None:
        """Offer to answer for all of these together, only faster; None to let each be asked by itself."""
        raise NotImplementedError


class UsageAnswers:
    """The plugins by usage that have something to say about one shape."""

    __slots__ = ("_filters", "_in_one_go", "_scores", "_shape")

    def __init__(self, shape: Shape, filters: Sequence[UsageFilter], scores: Sequence[UsageScore]) -> None:
        self._shape = shape
        self._filters = filters
        self._scores = scores
        self._in_one_go: InOneGo | None = None
        for plugin in (*(plugin for plugin, _ in filters), *(plugin for plugin, _, _ in scores)):
            if self._in_one_go is None and isinstance(plugin, OffersInOneGo):
                self._in_one_go = plugin.in_one_go(filters, scores)

    def set_keys(self, table: NodeTable, rows: Rows, settled: Settled, keys: Keys) -> bool:
        """Ask about some rows and set their keys, if that can be done in one go; False if nothing was done."""
        return self._in_one_go is not None and self._in_one_go.set_keys(table, rows, settled, keys)

    def ask(self, nodes: NodeRows) -> tuple[Mask | None, Scores | None]:
        """(which rows pass, their weighted totals); None where all pass, and where nobody scores."""
        if self._in_one_go is not None:
            answer = self._in_one_go(nodes)
            if answer is not None:
                return answer
        return self.ask_one_by_one(nodes)

    def ask_one_by_one(self, nodes: NodeRows) -> tuple[Mask | None, Scores | None]:
        """The same from each plugin by itself."""
        passed: Mask | None = None
        for plugin, prepared in self._filters:
            answer = ask_passes(plugin, self._shape, nodes, prepared)
            passed = answer if passed is None else passed & answer
        totals: Scores | None = None
        for score, weight, prepared in self._scores:
            asked = ask_score(score, self._shape, nodes, prepared)
            weighted = asked if weight == 1 else weight * asked
            totals = weighted if totals is None else totals + weighted
        return passed, totals
