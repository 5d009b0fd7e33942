"""All that a plugin of yours imports, and the one place from which it should: what is here stays.

Contracts say what a plugin can do, views what it is given, values what it answers with. `docs/writing-a-plugin.md` is
the guide, `mooring.testing.plugin_checks` holds a plugin to the contracts.
"""

from mooring.engine.plugin import (
    ALL,
    IGNORED,
    MAX_SCORE,
    MIN_SCORE,
    SKIP,
    Bind,
    Change,
    Changed,
    Codes,
    Depends,
    Filter,
    Mask,
    NoArgs,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Score,
    Scores,
    Skip,
    normalize_by_highest,
)
from mooring.engine.verdict import Rejection, Wait
from mooring.errors import PluginError
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.events import Event, ObjectLost, ObjectSeen
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView, PodView, RelatedView

__all__ = [
    "ALL",
    "IGNORED",
    "MAX_SCORE",
    "MIN_SCORE",
    "SKIP",
    "Bind",
    "Change",
    "Changed",
    "ClusterView",
    "Codes",
    "Depends",
    "Event",
    "Filter",
    "Mask",
    "NoArgs",
    "Node",
    "NodeRows",
    "ObjectLost",
    "ObjectSeen",
    "Permit",
    "Plugin",
    "PluginError",
    "Pod",
    "PodView",
    "PostBind",
    "PostFilter",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "PreScore",
    "QueueSort",
    "Rejection",
    "RelatedView",
    "Reserve",
    "Score",
    "Scores",
    "Shape",
    "Skip",
    "Wait",
    "normalize_by_highest",
]
