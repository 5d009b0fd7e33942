"""RemoveDuplicates: pods of one owner that share a node, spread over the nodes that they may use."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from mooring.actions.rebalance.descheduler.evictor import Evictor, Outcome
from mooring.actions.rebalance.descheduler.node_fit import matches_node, required_node_affinity
from mooring.actions.rebalance.descheduler.situation import owner_kinds
from mooring.config.descheduler import RemoveDuplicatesArgs
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.values.tolerations import untolerated

Owner = tuple[str, str, str, str]
"""Namespace, kind and name of an owner, and the images of its pods."""


def remove_duplicates(evictor: Evictor, nodes: Sequence[Node], args: RemoveDuplicatesArgs) -> None:
    """Evict what an owner has on a node beyond its even share; the first pod of each node stays."""
    counts: Counter[Owner] = Counter()
    duplicates: dict[Owner, dict[str, list[Pod]]] = {}
    for node in nodes:
        known: set[tuple[Owner, ...]] = set()
        for pod in evictor.situation.live_pods(node):
            if args.namespaces is not None and not args.namespaces.has(pod.metadata.namespace):
                continue
            if not evictor.may_evict(pod) or not evictor.could_move(pod):
                continue
            owners = _owners(pod)
            if not owners or set(owner_kinds(pod)) & set(args.exclude_owner_kinds):
                continue
            counts.update(owners)
            if owners in known:
                for owner in owners:
                    duplicates.setdefault(owner, {}).setdefault(node.metadata.name, []).append(pod)
            known.add(owners)
    matching: dict[bytes, set[str]] = {}
    for owner, by_node in duplicates.items():
        targets = _target_nodes((pod for pods in by_node.values() for pod in pods), nodes, matching)
        if len(targets) < 2:
            continue
        share = math.ceil(counts[owner] / len(targets))
        for pods in by_node.values():
            if len(pods) + 1 <= share:
                continue
            for pod in pods[share - 1 :]:
                outcome = evictor.evict(pod, "RemoveDuplicates")
                if outcome is Outcome.NODE_LIMIT:
                    break
                if outcome is Outcome.TOTAL_LIMIT:
                    return


def _owners(pod: Pod) -> tuple[Owner, ...]:
    images = "#".join(sorted(container.image for container in pod.spec.containers))
    references = pod.metadata.owner_references or ()
    return tuple(sorted((pod.metadata.namespace, owner.kind, owner.name, images) for owner in references))


def _target_nodes(pods: Iterable[Pod], nodes: Sequence[Node], matching: dict[bytes, set[str]]) -> set[str]:
    """Where the pods may be; a pod that may be on one node only says nothing of where others go.

    `matching` remembers which nodes match what pods ask for: most pods ask for the same.
    """
    found: dict[bytes, set[str]] = {}
    for pod in pods:
        asked = msgspec.json.encode((pod.spec.node_selector, required_node_affinity(pod), pod.spec.tolerations))
        if asked not in matching:
            matching[asked] = {
                node.metadata.name
                for node in nodes
                if not untolerated(pod.spec.tolerations or (), node.spec.taints or ()) and matches_node(pod, node)
            }
        if len(matching[asked]) > 1:
            found[asked] = matching[asked]
    return next(iter(found.values())) if len(found) == 1 else set[str]().union(*found.values())
