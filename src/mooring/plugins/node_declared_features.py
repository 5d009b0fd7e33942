"""Pods that need a feature of the kubelet go to nodes that declare it."""

import numpy as np

from mooring.engine.plugin import SKIP, Change, Depends, Mask, PreFilter, Skip
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView


class NodeDeclaredFeatures(PreFilter):
    depends_on = Depends.NODE
    helped_by = Change.NODE
    skip_is_settled = True
    reads = frozenset(("features",))
    reason = "node(s) didn't match Pod's required features"
    unresolvable = True

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> frozenset[str] | Skip:
        return required_features(pod) or SKIP

    def filter(self, pod: Shape, nodes: NodeRows, prepared: frozenset[str]) -> Mask:
        return np.array([prepared.issubset(node.status.declared_features or ()) for node in nodes.nodes], np.bool_)


def required_features(pod: Shape) -> frozenset[str]:
    """The features that a pod's specification implies."""
    spec = pod.spec
    features = set[str]()
    if spec.host_network and spec.host_users is False:
        features.add("UserNamespacesHostNetworkSupport")
    containers = (*spec.containers, *(spec.init_containers or ()))
    if any(rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules or ()):
        features.add("RestartAllContainersOnContainerExits")
    return frozenset(features)
