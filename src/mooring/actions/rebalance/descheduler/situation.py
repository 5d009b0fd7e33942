"""The cluster as one cycle of descheduling sees it: nodes, the pods on them, and what pods are protected by."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from mooring.model.api.meta import Namespace
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PriorityClass
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.keys import PodKey
from mooring.model.kubelet.qos import qos_class
from mooring.model.load.reports import NodeReport
from mooring.model.values.quantity import NANO
from mooring.model.values.requests import CPU, Amounts, pod_requests
from mooring.model.values.selector_text import parse_label_selector
from mooring.model.values.selectors import Selector, compile_label_selector
from mooring.state.plans import owner_of
from mooring.state.remembered import Derived

QOS_CLASSES = ("BestEffort", "Burstable", "Guaranteed")
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"


@dataclass(slots=True)
class Situation:
    """Everything that strategies look at. An evicted pod is gone at once; nothing is placed anew."""

    now: float
    nodes: Sequence[Node]
    pods: Iterable[Pod]
    namespaces: Sequence[Namespace] = ()
    priority_classes: Sequence[PriorityClass] = ()
    volume_claims: Sequence[PersistentVolumeClaim] = ()
    budgets: Sequence[PodDisruptionBudget] = ()
    measured: Mapping[str, NodeReport] = field(default_factory=dict)
    """By node, what was measured there."""
    alike: Mapping[PodKey, int] = field(default_factory=dict)
    """Pods of one number have the same spec; what is not known of pods here is found out of each by itself."""
    _on_node: dict[str, dict[PodKey, Pod]] = field(default_factory=dict)
    _node_of: dict[PodKey, str] = field(default_factory=dict)
    _replicas: Counter[str] = field(default_factory=Counter)
    """How many pods are there of each owner, by its uid."""
    _places: dict[str, Counter[str]] = field(default_factory=dict)
    """By controller: how many of its pods are on each node."""
    _allowed: list[int] = field(default_factory=list)
    """How many pods each budget still lets go."""
    _requests: Derived[PodKey | int, Amounts] = field(default_factory=Derived)
    """What pods request, by their number, or by their own name where they have none."""
    changed: list[str] = field(default_factory=list)
    """The nodes that a pod left or came to, in order: what was found out about others still holds."""
    _requested: dict[str, tuple[int, Amounts]] = field(default_factory=dict)
    """By node: how many pods are there that have not ended, and what they request together."""
    _covering: dict[str, list[tuple[int, Selector]]] = field(default_factory=dict)
    """By namespace: the positions of its budgets, and which pods they cover."""

    def __post_init__(self) -> None:
        for pod in self.pods:
            self._put(pod)
        for position, budget in enumerate(self.budgets):
            selector = compile_label_selector(budget.spec.selector)
            self._covering.setdefault(budget.metadata.namespace, []).append((position, selector))
        self._allowed = [budget.status.disruptions_allowed if budget.status else 0 for budget in self.budgets]

    def ready_nodes(self, selector: str) -> list[Node]:
        """The nodes that a selector matches and that are not said to be unready."""
        requirements = parse_label_selector(selector)
        return [
            node
            for node in self.nodes
            if is_ready(node) and all(one.matches(node.metadata.labels or {}) for one in requirements)
        ]

    def all_pods(self, node: Node) -> list[Pod]:
        """The pods on a node, of whatever phase."""
        return list(self._on_node.get(node.metadata.name, {}).values())

    def live_pods(self, node: Node) -> list[Pod]:
        """The pods on a node that have not ended."""
        return [pod for pod in self._on_node.get(node.metadata.name, {}).values() if not pod.is_terminal]

    def everywhere(self) -> Iterator[Pod]:
        for pods in self._on_node.values():
            yield from pods.values()

    def replicas(self, uid: str) -> int:
        """How many pods of an owner are there, of whatever phase."""
        return self._replicas[uid]

    def places(self, pod: Pod) -> Counter[str]:
        """How many pods of a pod's controller are on each node."""
        return self._places[owner_of(pod)]

    def requests(self, pod: Pod) -> Amounts:
        """What a pod requests, in billionths."""
        key = pod.key
        like = self.alike.get(key, key)
        return self._requests.of(like, pod_requests, pod)

    def requested_on(self, node: Node) -> tuple[int, Amounts]:
        """How many pods are on a node that have not ended, and what they request together, in billionths."""
        found = self._requested.get(node.metadata.name)
        if found is None:
            there = self.live_pods(node)
            total: Amounts = {}
            for pod in there:
                for name, amount in self.requests(pod).items():
                    total[name] = total.get(name, 0) + amount
            found = self._requested[node.metadata.name] = (len(there), total)
        return found

    def uses(self, pod: Pod, *, measured: bool) -> Amounts:
        """What a pod requests or, if that is what counts, was measured to use; in billionths."""
        if not measured:
            return self.requests(pod)
        report = self.measured.get(pod.spec.node_name)
        usage = report.pods.get(pod.key) if report is not None else None
        return _in_billionths(usage.amounts) if usage is not None else {}

    def measured_on(self, node: Node) -> Amounts | None:
        """What was measured on a node, in billionths; None without a report."""
        report = self.measured.get(node.metadata.name)
        return None if report is None or report.usage is None else _in_billionths(report.usage)

    def find(self, key: PodKey) -> Pod | None:
        """A pod as it is now, on the node that it is on."""
        return self._on_node.get(self._node_of.get(key, ""), {}).get(key)

    def remove(self, key: PodKey) -> Pod:
        """Let a pod be gone; return it."""
        node = self._node_of.pop(key)
        pod = self._on_node[node].pop(key)
        self._count(pod, -1)
        self._note_change(node)
        return pod

    def move(self, key: PodKey, node: str) -> Pod:
        """Let a pod be on another node; return it as it was."""
        pod = self.remove(key)
        there = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
        self._put(there)
        self._note_change(node)
        return pod

    def _note_change(self, node: str) -> None:
        self.changed.append(node)
        self._requested.pop(node, None)

    def _put(self, pod: Pod) -> None:
        key, node = pod.key, pod.spec.node_name
        self._on_node.setdefault(node, {})[key] = pod
        self._node_of[key] = node
        self._count(pod, 1)

    def _count(self, pod: Pod, sign: int) -> None:
        for uid in {owner.uid for owner in pod.metadata.owner_references or ()}:
            self._replicas[uid] += sign
        owner = owner_of(pod)
        places = self._places.get(owner)
        if places is None:
            places = self._places[owner] = Counter()
        places[pod.spec.node_name] += sign

    def budgets_of(self, pod: Pod) -> list[int]:
        """The positions of the budgets that cover a pod."""
        labels = pod.metadata.labels or {}
        covering = self._covering.get(pod.metadata.namespace, ())
        return [position for position, selector in covering if selector.matches(labels)]

    def evict(self, pod: Pod) -> bool:
        """Ask the API server to evict a pod; False where a budget refuses that, or the pod is gone."""
        if pod.key not in self._node_of:
            return False
        if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None:
            covering = self.budgets_of(pod)
            if len(covering) > 1 or any(self._allowed[position] < 1 for position in covering):
                return False
            for position in covering:
                self._allowed[position] -= 1
        self.remove(pod.key)
        return True


def _in_billionths(amounts: Mapping[str, int]) -> dict[str, int]:
    """Measured amounts are in millicores, and in whole units of everything else."""
    return {name: amount * (NANO // 1000 if name == CPU else NANO) for name, amount in amounts.items()}


def is_ready(node: Node) -> bool:
    """Whether no condition says that a node is unready."""
    return all(one.status == "True" for one in node.status.conditions or () if one.type == "Ready")


def owner_kinds(pod: Pod) -> list[str]:
    return [owner.kind for owner in pod.metadata.owner_references or ()]


def eviction_order(pod: Pod) -> tuple[int, int, bool]:
    """Less urgent pods first; of equally urgent ones those that were promised least."""
    priority = pod.spec.priority if pod.spec.priority is not None else -(2**31) - 1
    qos = QOS_CLASSES.index(qos_class(msgspec.to_builtins(pod.spec)))
    return priority, qos, PREFER_NO_EVICTION in (pod.metadata.annotations or {})


class LabelledPods:
    """Pods in order, found by one of some labels that selectors ask for."""

    def __init__(self, pods: Iterable[Pod], keys: frozenset[str]) -> None:
        self._keys = keys
        self._all = {pod.key: pod for pod in pods}
        self._by_label: dict[tuple[str, str], dict[PodKey, Pod]] = {}
        for pod_key, pod in self._all.items():
            for label in self._labels(pod):
                found = self._by_label.get(label)
                if found is None:
                    found = self._by_label[label] = {}
                found[pod_key] = pod

    def remove(self, pod: Pod) -> None:
        del self._all[pod.key]
        for label in self._labels(pod):
            del self._by_label[label][pod.key]

    def _labels(self, pod: Pod) -> list[tuple[str, str]]:
        return [label for label in (pod.metadata.labels or {}).items() if label[0] in self._keys]

    def selected(self, selector: Selector) -> list[Pod]:
        """The pods that a selector matches."""
        candidates = self._all
        for one in selector.requirements:
            if one.operator == "In" and len(one.values) == 1 and one.key in self._keys:
                (value,) = one.values
                candidates = min(candidates, self._by_label.get((one.key, value), {}), key=len)
        return [pod for pod in candidates.values() if selector.matches(pod.metadata.labels or {})]
