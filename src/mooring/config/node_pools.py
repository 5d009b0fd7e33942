"""Node pools as people write them down: which nodes, whose they are, and what others may do with them."""

from collections.abc import Iterator
from typing import Literal

import msgspec

Problem = tuple[str, str, str]
"""(field, expected, found)"""


class NodePool(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Nodes with certain labels. All kinds of owners that are given must match for a pod to be one of its own."""

    name: str
    node_labels: dict[str, str]
    policy: Literal["Dedicated", "Shared", "Reserved"] = "Shared"
    namespaces: list[str] = []
    pod_labels: dict[str, str] = {}
    priority_classes: list[str] = []
    """Names of PriorityClasses: a pool for urgent work, whoever's it is."""
    reserved_percent: int = 0
    """Of each resource of a node of a Reserved pool, what others together may not use."""
    moves_back: bool = False
    """Whether pods that spilled over are evicted when there is room for them here. Off: evicting costs work, and who
    does not ask for it must not be surprised by it."""

    def validate(self, field: str) -> Iterator[Problem]:
        if not self.node_labels:
            yield f"{field}.nodeLabels", "at least one label", "none"
        if not (self.namespaces or self.pod_labels or self.priority_classes):
            yield field, "namespaces, podLabels or priorityClasses, which say whose pool it is", "none of them"
        if not 0 <= self.reserved_percent <= 100:
            yield f"{field}.reservedPercent", "from 0 to 100", str(self.reserved_percent)
        elif bool(self.reserved_percent) != (self.policy == "Reserved"):
            expected = "1 or more with policy Reserved, else none"
            yield f"{field}.reservedPercent", expected, str(self.reserved_percent)
        if self.moves_back and self.policy == "Dedicated":
            expected = "false with policy Dedicated, whose own pods go nowhere else"
            yield f"{field}.movesBack", expected, "true"


class NodePoolsArgs(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of NodePools in a profile's pluginConfig."""

    pools: list[NodePool] = []
    most_moves_at_a_time: int = 1
    """How many pods may be on their way back at once: evicted, and their replacements not placed yet. One, so that a
    mistake in somebody's pools costs one pod at a time."""

    def validate(self) -> Iterator[Problem]:
        names: set[str] = set()
        for index, pool in enumerate(self.pools):
            field = f"pools[{index}]"
            if not pool.name or pool.name in names:
                yield f"{field}.name", "a name of its own", f'"{pool.name}"'
            names.add(pool.name)
            yield from pool.validate(field)
        if self.most_moves_at_a_time < 1:
            yield "mostMovesAtATime", "a whole number above 0", str(self.most_moves_at_a_time)

    @property
    def moves_back(self) -> bool:
        """Whether any pool has its pods back."""
        return any(pool.moves_back for pool in self.pools)
