"""Pods that ask for devices by claim wait: allocating devices is not part of this version.

To place such a pod as if it asked for nothing would start it without its devices.
"""

from mooring.engine.plugin import SKIP, Change, Depends, Mask, PreFilter, Skip
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import KubeObject
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView


class DynamicResourcesArgs(KubeObject):
    """DynamicResourcesArgs of KubeSchedulerConfiguration, read and left alone."""


class DynamicResources(PreFilter):
    depends_on = Depends.NODE
    helped_by = Change(0)
    args_type = DynamicResourcesArgs
    skip_is_settled = True
    reads = frozenset(("claims",))

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Rejection | Skip:
        claims = pod.spec.resource_claims
        if not claims:
            return SKIP
        names = " ".join(claim.name for claim in claims)
        return Rejection((f"resource claims are not allocated by this version: [{names}]",), unresolvable=True)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: object) -> Mask:
        raise AssertionError("a pod with claims is refused before nodes are asked")
