"""Prefer nodes that have the least, or the most, whatever is taken of it; a plugin of scheduler-plugins."""

from collections.abc import Iterator

import msgspec
import numpy as np

from mooring.engine.plugin import MAX_SCORE, Depends, Score, Scores
from mooring.model.api.meta import KubeObject
from mooring.model.values.requests import CPU, MEMORY
from mooring.plugins.resource_scoring import Problem, ResourceSpec
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape

LEAST, MOST = "Least", "Most"


class NodeResourcesAllocatableArgs(KubeObject, forbid_unknown_fields=True):
    api_version: str = ""
    kind: str = ""
    mode: str = LEAST
    resources: list[ResourceSpec] = msgspec.field(
        default_factory=lambda: [ResourceSpec(name=CPU, weight=1 << 20), ResourceSpec(name=MEMORY, weight=1)]
    )
    """A millicore weighs as much as a mebibyte by default."""

    def validate(self) -> Iterator[Problem]:
        if self.mode not in (LEAST, MOST):
            yield "mode", f"one of {LEAST}, {MOST}", f'"{self.mode}"'
        if not self.resources:
            yield "resources", "at least one resource", "none"
        for index, resource in enumerate(self.resources):
            if resource.weight <= 0:
                yield f"resources[{index}].weight", "a whole number of 1 or more", str(resource.weight)


class NodeResourcesAllocatable(Score):
    depends_on = Depends.NODE
    reads = frozenset[str]()
    args_type = NodeResourcesAllocatableArgs
    args: NodeResourcesAllocatableArgs
    normalizes = True

    def score(self, pod: Shape, nodes: NodeRows) -> Scores:
        total = np.zeros(len(nodes), np.int64)
        for resource in self.args.resources:
            total += resource.weight * nodes.allocatable(resource.name)
        total //= sum(resource.weight for resource in self.args.resources)
        return -total if self.args.mode == LEAST else total

    def normalize(self, raw: Scores, lowest: int, highest: int) -> Scores:
        return spread(raw, lowest, highest)


def spread(raw: Scores, lowest: int, highest: int) -> Scores:
    """Stretch scores from the lowest to the highest over the whole range; all 0 if they are equal."""
    if lowest == highest:
        return np.zeros_like(raw)
    return (raw - lowest) * MAX_SCORE // (highest - lowest)
