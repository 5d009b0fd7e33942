"""A profile: the plugins that run, point by point, in order, with weights.

`mooring.config.scheduler` reads KubeSchedulerConfiguration; `mooring.assembly` turns it into profiles.
"""

from dataclasses import dataclass, field
from functools import cached_property

from mooring.engine.plugin import (
    EVERYTHING,
    Bind,
    Depends,
    FilterAnswers,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    QueueSort,
    Reserve,
    ScoreAnswers,
)


@dataclass(frozen=True)
class Profile:
    """The plugins of one schedulerName."""

    name: str
    queue_sort: QueueSort
    filters: tuple[FilterAnswers, ...]
    """Filters in order, those that prepare included."""
    scores: tuple[tuple[ScoreAnswers, int], ...]
    """Score plugins with their weights."""
    pre_enqueue: tuple[PreEnqueue, ...] = ()
    post_filter: tuple[PostFilter, ...] = ()
    reserve: tuple[Reserve, ...] = ()
    permit: tuple[Permit, ...] = ()
    pre_bind: tuple[PreBind, ...] = ()
    bind: tuple[Bind, ...] = ()
    post_bind: tuple[PostBind, ...] = ()
    percentage_of_nodes_to_score: int = 100
    plugins: tuple[Plugin, ...] = field(default=())
    """All plugin instances, each once."""

    @cached_property
    def settled_parts(self) -> tuple[str, ...]:
        """The parts of a pod that plugins read whose answers depend on descriptions only."""
        parts = set[str]()
        for plugin in (*self.filters, *(plugin for plugin, _ in self.scores)):
            if not plugin.depends_on & (Depends.NODE_USAGE | Depends.NODE_LOAD | Depends.PODS):
                parts |= EVERYTHING if plugin.reads is None else plugin.reads
        return tuple(sorted(parts))
