"""Which part of a cluster one of several schedulers has: pods by namespace or priority class, nodes by label."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from mooring.drivers.live.checks import Check
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.gangs.dialects.volcano import VolcanoPodGroup

ELSEWHERE = "/elsewhere"
"""Behind the schedulerName of pods that are another one's: no scheduler has such a name."""
LOOK_SECONDS = 5.0
"""How often it is looked at whether there are nodes."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shard:
    """Empty: everything."""

    namespaces: frozenset[str] = frozenset()
    priority_classes: frozenset[str] = frozenset()
    node_labels: tuple[tuple[str, str], ...] = ()
    """Of each label that is named, a node must have one of the values."""

    @cached_property
    def _values(self) -> Mapping[str, frozenset[str]]:
        keys = dict.fromkeys(key for key, _ in self.node_labels)
        return {key: frozenset(value for known, value in self.node_labels if known == key) for key in keys}

    def has_node(self, node: Node) -> bool:
        labels = node.metadata.labels or {}
        return all(labels.get(key) in values for key, values in self._values.items())

    def has_pod(self, pod: Pod) -> bool:
        if self.namespaces and pod.metadata.namespace not in self.namespaces:
            return False
        return not self.priority_classes or pod.spec.priority_class_name in self.priority_classes

    def has_group(self, group: VolcanoPodGroup) -> bool:
        """Whether a group's pods will be ours, as far as it tells: it need not name the priority class that they do."""
        if self.namespaces and group.metadata.namespace not in self.namespaces:
            return False
        named = group.spec.priority_class_name
        return not self.priority_classes or not named or named in self.priority_classes

    @property
    def describe_nodes(self) -> str:
        """Which nodes it has: zone=a, and pool=batch or pool=serving."""
        return ", and ".join(
            " or ".join(f"{key}={value}" for value in sorted(values)) for key, values in self._values.items()
        )


class NodesOfShard:
    """Looks whether a part has nodes at all, and says once if it has not: a label may be misspelt."""

    def __init__(self, shard: Shard, count: Callable[[], int]) -> None:
        """`count` gives how many nodes there are in it now."""
        self._shard, self._count = shard, count
        self._is_empty = False

    async def run(self) -> None:
        """Look now and then, beginning when there was time to take them in."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        was_empty, self._is_empty = self._is_empty, bool(self._shard.node_labels) and not self._count()
        if self._is_empty and not was_empty:
            _log.warning("no node has %s (--node-pool): no pod can be placed", self._shard.describe_nodes)

    def checks(self) -> list[Check]:
        """That there are none is said, and nothing more: they may come."""
        if not self._is_empty:
            return []
        return [Check("node-pool", f"no node has {self._shard.describe_nodes}", is_needed=False)]
