"""DaemonSets: one pod for each node that their template allows, pinned to it as the DaemonSet controller pins it."""

import zlib
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from mooring.model.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Affinity, NodeAffinity, Pod, PodSpec, Toleration
from mooring.model.api.workloads import DaemonSet
from mooring.model.jobs.expansion import Owned, PodNames, Stamp, owner_key
from mooring.model.values.selectors import compile_equality, compile_node_selector, matches_any_term
from mooring.model.values.tolerations import untolerated

_DAEMON_TOLERATIONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_HOST_NETWORK_TOLERATION = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def expand_daemon_set(owner: DaemonSet, nodes: Sequence[Node], owned: Owned) -> list[Pod]:
    """Create a pod for each suitable node that has none of this DaemonSet yet."""
    covered = {node for pod in owned.get(owner_key(owner), ()) if (node := _pinned_node(pod)) is not None}
    spec = with_daemon_tolerations(owner.spec.template.spec)
    stamp, names = Stamp(owner, owner.spec.template), PodNames(owner)
    return [
        stamp.pod(names.of(zlib.crc32(node.name.encode())), spec=_pinned(spec, node.name))
        for node in suitable_nodes(spec, nodes)
        if node.name not in covered
    ]


def suitable_nodes(spec: PodSpec, nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that a daemon's name, selector, required affinity and tolerations allow; room is not asked."""
    selector = compile_equality(spec.node_selector or {})
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required if affinity else None
    terms = compile_node_selector(required) if required is not None else None
    tolerations = spec.tolerations or []
    found = []
    for node in nodes:
        labels = node.metadata.labels or {}
        if (
            spec.node_name in ("", node.name)
            and selector.matches(labels)
            and (terms is None or matches_any_term(terms, node.name, labels))
            and not untolerated(tolerations, node.spec.taints or ())
        ):
            found.append(node)
    return found


def with_daemon_tolerations(spec: PodSpec) -> PodSpec:
    """Let a daemon's pods stay where others have to leave, as its controller does."""
    wanted = [*_DAEMON_TOLERATIONS, *([_HOST_NETWORK_TOLERATION] if spec.host_network else [])]
    tolerations = list(spec.tolerations or ())
    for key, effect in wanted:
        toleration = Toleration(key=key, operator="Exists", effect=effect)
        if toleration not in tolerations:
            tolerations.append(toleration)
    return replace(spec, tolerations=tolerations)


def _pinned(spec: PodSpec, node_name: str) -> PodSpec:
    """Replace the required node affinity by the node's name; that the node suits has been seen already."""
    term = NodeSelectorTerm(
        match_fields=[NodeSelectorRequirement(key="metadata.name", operator="In", values=[node_name])]
    )
    affinity = spec.affinity or Affinity()
    preferred = affinity.node_affinity.preferred if affinity.node_affinity else None
    pinned = NodeAffinity(required=NodeSelector(node_selector_terms=[term]), preferred=preferred)
    return replace(spec, affinity=replace(affinity, node_affinity=pinned))


def _pinned_node(pod: Pod) -> str | None:
    """Tell which node a daemon pod is for, bound or not."""
    if pod.spec.node_name or pod.is_terminal:
        return pod.spec.node_name or None
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    for term in affinity.required.node_selector_terms if affinity and affinity.required else ():
        for requirement in term.match_fields or ():
            if requirement.key == "metadata.name" and requirement.operator == "In" and requirement.values:
                return requirement.values[0]
    return None
