"""What a new node of a group would be like, and which pods would be on it from the start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.actions.capacity.autoscaler.situation import (
    TO_BE_DELETED,
    NodeGroup,
    Situation,
    controller_of,
    is_daemon,
    is_mirror,
    readiness,
)
from mooring.model.api.meta import ObjectMeta, OwnerReference
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.workloads import DaemonSet
from mooring.model.loading.daemons import suitable_nodes, with_daemon_tolerations
from mooring.model.node_offer import HOSTNAME

STABLE_AFTER_SECONDS = 60.0
"""A node that has just become ready may not have all of its daemons yet."""

TEMPLATE_LABEL = "cluster-autoscaler.kubernetes.io/template-node"
OLD_TWINS = {
    "node.kubernetes.io/instance-type": "beta.kubernetes.io/instance-type",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
}
"""Labels that cloud providers still write under their old names, too."""

PASSING_TAINTS = frozenset(
    (
        TO_BE_DELETED,
        "DeletionCandidateOfClusterAutoscaler",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/pid-pressure",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
        "cloud.google.com/impending-node-termination",
        "NodeWithImpairedVolumes",
    )
)
PASSING_PREFIXES = (
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
)
"""Taints that tell of the state that a node is in, and that a new one would not have."""


@dataclass(frozen=True, slots=True)
class Template:
    """A node as it would come up, and the pods that come with it."""

    node: Node
    daemons: tuple[Pod, ...] = ()


def group_templates(situation: Situation, *, force_daemon_sets: bool) -> Mapping[str, Template]:
    """The template of each group that has one: a live node where there is a good one, else the group's own."""
    found: dict[str, Template] = {}
    good = [node for node in situation.nodes if _is_good_example(node, situation.now)]
    _from_nodes(situation, good, found, force_daemon_sets)
    for group in situation.groups:
        if group.name not in found and group.template is not None:
            found[group.name] = _from_group(group, group.template, situation.daemon_sets)
    _from_nodes(situation, situation.nodes, found, force_daemon_sets)  # a bad example is better than none
    return found


def _is_good_example(node: Node, now: float) -> bool:
    ready = readiness(node)
    is_leaving = any(taint.key == TO_BE_DELETED for taint in node.spec.taints or ())
    is_stable = ready.since + STABLE_AFTER_SECONDS < now
    return ready.is_ready and is_stable and not node.spec.unschedulable and not is_leaving


def _from_nodes(
    situation: Situation, nodes: Sequence[Node], found: dict[str, Template], force_daemon_sets: bool
) -> None:
    for node in nodes:
        group = situation.group_of.get(node.name)
        if group is not None and group.name not in found:
            running = situation.pods_by_node.get(node.name, ())
            found[group.name] = _from_node(group, node, running, situation.daemon_sets, force_daemon_sets)


def _from_node(
    group: NodeGroup, node: Node, running: Sequence[Pod], daemon_sets: Sequence[DaemonSet], force_daemon_sets: bool
) -> Template:
    fresh = _fresh(group, node)
    staying = [pod for pod in running if pod.metadata.deletion_timestamp is None]
    here = {owner.uid for pod in staying if (owner := controller_of(pod)) is not None and owner.kind == "DaemonSet"}
    missing = [daemon for daemon in daemon_sets if daemon.metadata.uid not in here]
    added = [pod for pod in _daemon_pods(fresh, missing) if force_daemon_sets or _comes_first(pod)]
    return Template(fresh, (*(pod for pod in staying if is_mirror(pod) or is_daemon(pod)), *added))


def _from_group(group: NodeGroup, node: Node, daemon_sets: Sequence[DaemonSet]) -> Template:
    fresh = _fresh(group, node)
    daemons = tuple(_daemon_pods(fresh, daemon_sets))
    labels = dict(fresh.metadata.labels or {})
    labels |= {old: labels[new] for new, old in OLD_TWINS.items() if new in labels}
    return Template(replace(fresh, metadata=replace(fresh.metadata, labels=labels)), daemons)


def _fresh(group: NodeGroup, node: Node) -> Node:
    """A node like this one that has just come up."""
    name = f"template-node-for-{group.name}"
    labels = {**(node.metadata.labels or {}), HOSTNAME: name, TEMPLATE_LABEL: "true"}
    taints = [taint for taint in node.spec.taints or () if not _is_passing(taint.key)]
    return replace(
        node,
        metadata=ObjectMeta(name=name, labels=labels, annotations=node.metadata.annotations),
        spec=replace(node.spec, taints=taints, provider_id=""),
    )


def _is_passing(key: str) -> bool:
    return key in PASSING_TAINTS or key.startswith(PASSING_PREFIXES)


def _daemon_pods(node: Node, daemon_sets: Sequence[DaemonSet]) -> list[Pod]:
    """The pods of DaemonSets that should run on a node, whether there is room for them or not."""
    found = []
    for daemon in daemon_sets:
        spec = with_daemon_tolerations(daemon.spec.template.spec)
        if suitable_nodes(spec, [node]):
            own = daemon.metadata
            owner = OwnerReference(kind="DaemonSet", name=own.name, uid=own.uid, controller=True)
            labels = daemon.spec.template.metadata.labels
            metadata = ObjectMeta(name=own.name, namespace=own.namespace, labels=labels, owner_references=[owner])
            found.append(Pod(metadata=metadata, spec=spec))
    return found


def _comes_first(pod: Pod) -> bool:
    """Whether a daemon gets its place on a new node whoever else is there."""
    spec = pod.spec
    return spec.priority_class_name == "system-node-critical" and spec.preemption_policy in (
        None,
        "PreemptLowerPriority",
    )
