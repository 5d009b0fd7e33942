"""Plugins whose answers move with pods elsewhere, each with what it has gathered for one shape."""

from dataclasses import dataclass
from typing import Any

from mooring.engine.asking import ask_filter
from mooring.engine.plugin import FilterAnswers, PreFilter, ScoreAnswers, Scores
from mooring.engine.shortcuts import Incremental
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView


@dataclass
class DomainFilter:
    """A filter whose answers depend on pods elsewhere, with what it has gathered."""

    plugin: PreFilter
    prepared: Any

    @property
    def counts(self) -> Incremental | None:
        return self.prepared if isinstance(self.prepared, Incremental) else None


@dataclass
class NormalizedScore:
    """A score that is brought into range over the feasible rows."""

    plugin: ScoreAnswers
    weight: int
    raw: Scores | None
    """One a row of the table if they are settled, None if they change with pods."""
    prepared: Any = None

    @property
    def counts(self) -> Incremental | None:
        return self.prepared if isinstance(self.prepared, Incremental) else None


def as_prepared(plugin: FilterAnswers) -> PreFilter:
    """A filter that gathers nothing, seen as one that does."""
    return plugin if isinstance(plugin, PreFilter) else _Ungathered(plugin)


class _Ungathered(PreFilter):
    def __init__(self, plugin: FilterAnswers) -> None:
        super().__init__()
        self._plugin = plugin

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> None:
        return None

    def filter(self, pod: Shape, nodes: NodeRows, prepared: None) -> Any:
        return ask_filter(self._plugin, pod, nodes, None)
