"""What plugins by usage say about some rows: which pass, and what their scores add up to.

Each plugin is asked by itself, unless one of them offers to answer for all of them in one go.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from mooring.engine.answers.settled import Settled
from mooring.engine.asking import ask_passes, ask_score
from mooring.engine.plugin import FilterAnswers, Mask, ScoreAnswers, Scores
from mooring.engine.ranking.blocks import FEASIBLE_FROM, INFEASIBLE, Keys
from mooring.state.nodes import TIE_BITS, NodeTable
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

    together: ClassVar[frozenset[str]] = frozenset()
    """The names of those that it can answer for; plugins besides them are asked by themselves."""

    def in_one_go(self, filters: Sequence[UsageFilter], scores: Sequence[UsageScore]) -> InOneGo | None:
        """Offer to answer for all of these together, only faster; None to let each be asked by itself."""
        raise NotImplementedError


class UsageAnswers:
    """The plugins by usage that have something to say about one shape."""

    __slots__ = ("_filters", "_in_one_go", "_other_filters", "_other_scores", "_scores", "_shape")

    def __init__(self, shape: Shape, filters: Sequence[UsageFilter], scores: Sequence[UsageScore]) -> None:
        self._shape = shape
        self._filters = filters
        self._scores = scores
        self._in_one_go: InOneGo | None = None
        self._other_filters: Sequence[UsageFilter] = ()
        self._other_scores: Sequence[UsageScore] = ()
        """The plugins that are not part of what is answered in one go."""
        for plugin in (*(plugin for plugin, _ in filters), *(plugin for plugin, _, _ in scores)):
            if self._in_one_go is None and isinstance(plugin, OffersInOneGo):
                names = plugin.together
                self._in_one_go = plugin.in_one_go(
                    [each for each in filters if each[0].name in names],
                    [each for each in scores if each[0].name in names],
                )
                self._other_filters = [each for each in filters if each[0].name not in names]
                self._other_scores = [each for each in scores if each[0].name not in names]

    def set_keys(self, table: NodeTable, rows: Rows, settled: Settled, keys: Keys) -> bool:
        """Ask about some rows and set their keys, if that can be done in one go; False if nothing was done."""
        if self._in_one_go is None or not self._in_one_go.set_keys(table, rows, settled, keys):
            return False
        if self._other_filters or self._other_scores:
            found = keys.take(rows)
            passed, totals = self._ask(NodeRows(table, rows), self._other_filters, self._other_scores)
            refused = found < FEASIBLE_FROM
            if totals is not None:
                found += totals << TIE_BITS
            found[refused if passed is None else refused | ~passed] = INFEASIBLE
            keys[rows] = found
        return True

    def ask(self, nodes: NodeRows) -> tuple[Mask | None, Scores | None]:
        """(which rows pass, their weighted totals); None where all pass, and where nobody scores."""
        answer = self._in_one_go(nodes) if self._in_one_go is not None else None
        if answer is None:
            return self.ask_one_by_one(nodes)
        if not self._other_filters and not self._other_scores:
            return answer
        passed, totals = self._ask(nodes, self._other_filters, self._other_scores)
        return (
            answer[0] if passed is None else passed if answer[0] is None else passed & answer[0],
            answer[1] if totals is None else totals + answer[1],
        )

    def ask_one_by_one(self, nodes: NodeRows) -> tuple[Mask | None, Scores | None]:
        """The same from each plugin by itself."""
        return self._ask(nodes, self._filters, self._scores)

    def _ask(
        self, nodes: NodeRows, filters: Sequence[UsageFilter], scores: Sequence[UsageScore]
    ) -> tuple[Mask | None, Scores | None]:
        passed: Mask | None = None
        for plugin, prepared in filters:
            answer = ask_passes(plugin, self._shape, nodes, prepared)
            passed = answer if passed is None else passed & answer
        totals: Scores | None = None
        for score, weight, prepared in scores:
            asked = ask_score(score, self._shape, nodes, prepared)
            weighted = asked if weight == 1 else weight * asked
            totals = weighted if totals is None else totals + weighted
        return passed, totals
