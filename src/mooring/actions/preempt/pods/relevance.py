"""Whose going makes a difference to filters that look beyond a node's usage: most victims are no concern of theirs.

Where it makes none, the answer of such a filter is what it is now, whoever goes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mooring.actions.preempt.pods.reprieve import AskedFilter
from mooring.engine.plugin import Mask
from mooring.engine.shortcuts import BesidesAmounts, Incremental
from mooring.state.cluster import Cluster
from mooring.state.remembered import Derived
from mooring.state.shapes import GONE, Shape

GATHERED_FROM: dict[str, Callable[[Shape], bool]] = {
    "NodePorts": lambda shape: bool(shape.host_ports),
    "VolumeRestrictions": lambda shape: shape.has_volumes,
    "NodeVolumeLimits": lambda shape: shape.has_volumes,
}
"""Filters that gather anew rather than count, and from which pods they gather; of others, any pod may be a concern."""

MOST_KEPT = 256


@dataclass
class Known:
    """By shape id: whether such a pod is a concern of the filters, as far as shapes have been looked at."""

    description: tuple[int, ...]
    is_concern: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))


class Relevance:
    """Keeps, for each shape that preempted, which other shapes its filters care about."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: Derived[tuple[str, int, tuple[str, ...]], Known] = Derived(MOST_KEPT)

    def of(self, profile: str, shape: Shape, filters: Sequence[AskedFilter]) -> Mask:
        """One truth a shape id."""
        cluster = self._cluster
        key = (profile, shape.id, tuple(plugin.name for plugin, _ in filters))
        known = self._known.get(key)
        if known is None or known.description != cluster.description:
            known = self._known.put(key, Known(cluster.description))
        start = len(known.is_concern)
        if start < len(cluster.shapes):
            new = [other is not GONE and _is_relevant(other, filters) for other in cluster.shapes.all[start:]]
            known.is_concern = np.concatenate([known.is_concern, np.array(new, np.bool_)])
        return known.is_concern


def _is_relevant(other: Shape, filters: Sequence[AskedFilter]) -> bool:
    for plugin, prepared in filters:
        if isinstance(prepared, Incremental):
            if prepared.is_moved_by(other):
                return True
        elif isinstance(plugin, BesidesAmounts):
            if plugin.is_concerned_by(other):
                return True
        elif plugin.name not in GATHERED_FROM or GATHERED_FROM[plugin.name](other):
            return True
    return False
