"""The pods of a ComputeDomain go onto nodes of one NVLink clique: elsewhere they would not reach each other's GPUs."""

import numpy as np
from numpy.typing import NDArray

from mooring.engine.plugin import SKIP, Change, Depends, Mask, PreFilter, Skip
from mooring.model.devices.compute_domains import CLIQUE
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

Cliques = NDArray[np.int32]
"""Codes of the label's values; nothing as long as no pod of a domain has its place."""


class ComputeDomains(PreFilter):
    depends_on = Depends.PODS | Depends.NODE | Depends.RELATED
    helped_by = Change.NODE | Change.POD_GONE
    skip_is_settled = True
    unresolvable = True
    reason = "node(s) were in another NVLink clique than the pods of the same ComputeDomain"

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Cliques | Skip:
        domain, claims = cluster.claims.domain_of(pod), cluster.claims
        if not domain:
            return SKIP
        shapes, rows = cluster.bound_pods()
        is_of_domain = cluster.effects((self.name, domain), lambda other: int(claims.domain_of(other) == domain))
        found: Cliques = np.unique(cluster.label_codes(CLIQUE)[rows[is_of_domain.at(shapes) > 0]])
        return found

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Cliques) -> Mask:
        if not len(prepared):
            return np.ones(len(nodes), np.bool_)
        return np.isin(nodes.label_codes(CLIQUE), prepared)
