"""Which part of a cluster one of several schedulers has: pods by namespace or priority class, nodes by label."""

from dataclasses import dataclass

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod

ELSEWHERE = "/elsewhere"
"""Behind the schedulerName of pods that are another one's: no scheduler has such a name."""


@dataclass(frozen=True)
class Part:
    """Empty: everything."""

    namespaces: frozenset[str] = frozenset()
    priority_classes: frozenset[str] = frozenset()
    node_labels: tuple[tuple[str, str], ...] = ()

    def has_node(self, node: Node) -> bool:
        labels = node.metadata.labels or {}
        return all(labels.get(key) == value for key, value in self.node_labels)

    def has_pod(self, pod: Pod) -> bool:
        if self.namespaces and pod.metadata.namespace not in self.namespaces:
            return False
        return not self.priority_classes or pod.spec.priority_class_name in self.priority_classes
