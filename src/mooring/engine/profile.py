"""A profile: the plugins that run, point by point, in order, with weights.

`mooring.config.scheduler` reads KubeSchedulerConfiguration; `mooring.assembly` turns it into profiles.
"""

from dataclasses import dataclass, field

from mooring.engine.plugin import (
    Bind,
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
