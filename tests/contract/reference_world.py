"""A cluster as plain lists of objects, and what the references share: quantities, requests, selectors.

Written apart from the engine, from kube-scheduler's rules, node by node and pod by pod: slow, and easy to read.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from mooring.model.api.meta import LabelSelector, Namespace
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Container, Pod
from mooring.model.api.policies import Service
from mooring.model.api.workloads import ReplicaSet
from mooring.testing.situations import Objects

SUFFIXES: dict[str, Fraction | int] = {
    "m": Fraction(1, 1000),
    "k": 1000,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}


@dataclass
class PlainCluster:
    nodes: list[Node]
    pods: list[Pod]
    """Those that are bound to one of the nodes."""
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    services: list[Service] = field(default_factory=list)
    replica_sets: list[ReplicaSet] = field(default_factory=list)

    def pods_on(self, node: Node) -> list[Pod]:
        return [pod for pod in self.pods if pod.spec.node_name == node.name]


def plain_cluster(objects: Objects) -> PlainCluster:
    nodes = list(objects.nodes)
    names = {node.name for node in nodes}
    found = PlainCluster(nodes, [pod for pod in objects.pods if pod.spec.node_name in names])
    for related in objects.related:
        if isinstance(related, Namespace):
            found.namespaces[related.metadata.name] = related.metadata.labels or {}
        elif isinstance(related, Service):
            found.services.append(related)
        elif isinstance(related, ReplicaSet):
            found.replica_sets.append(related)
    return found


def labels_of(thing: Node | Pod) -> dict[str, str]:
    return thing.metadata.labels or {}


def quantity(text: str | int | float) -> Fraction:
    words = str(text)
    for suffix, factor in sorted(SUFFIXES.items(), key=lambda pair: -len(pair[0])):
        if words.endswith(suffix):
            return Fraction(words.removesuffix(suffix)) * Fraction(factor)
    return Fraction(words)


def units(resource: str, amount: Fraction) -> int:
    """As the scheduler counts: thousandths of CPU, whole units of everything else, rounded up."""
    return ceil(amount * 1000) if resource == "cpu" else ceil(amount)


def requests(pod: Pod, *, nonzero: bool = False) -> dict[str, int]:
    """What a pod asks for: its containers together; nonzero counts at least 100m and 200Mi a container."""
    total: dict[str, Fraction] = {}
    for container in pod.spec.containers:
        for resource, amount in _asked(container, nonzero).items():
            total[resource] = total.get(resource, Fraction(0)) + amount
    return {resource: units(resource, amount) for resource, amount in total.items()}


def _asked(container: Container, nonzero: bool) -> dict[str, Fraction]:
    given = (container.resources.requests if container.resources else None) or {}
    asked = {resource: quantity(text) for resource, text in given.items()}
    if nonzero:
        asked.setdefault("cpu", Fraction(1, 10))
        asked.setdefault("memory", Fraction(200 * 2**20))
    return asked


def allocatable(node: Node, resource: str) -> int:
    return units(resource, quantity((node.status.allocatable or {}).get(resource, 0)))


def is_device(resource: str) -> bool:
    return "/" in resource


def selects(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
    """A missing selector selects nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    for expression in selector.match_expressions or ():
        value, values = labels.get(expression.key), expression.values or []
        holds = {
            "In": value is not None and value in values,
            "NotIn": value is None or value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[expression.operator]
        if not holds:
            return False
    return True


def is_empty(selector: LabelSelector | None) -> bool:
    return selector is not None and not selector.match_labels and not selector.match_expressions
