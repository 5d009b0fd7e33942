"""Keep pods from rows where they would spoil what is held for another pod, or count on a pod that is not there yet.

A held pod counts in every column, so that no other pod gets the amounts that it will take. Two things are not amounts:
how evenly pods spread, which another pod changes by coming to the same domain, and devices, which a held pod gets only
once others have given them back. This filter answers for those. It is part of every profile, and has nothing to say
while no such pod is held (`Plans.guarded`).

A pod that wants others near it, or spreads among them, starts only where it may also without the pods that hold rows
and do not run yet, and without those that leave for them (`Plans.tentative`), as in kube-scheduler.

It also refuses the rows that are not on offer while something is tried out on some rows only (`Plans.offer_only`), and
those of nodes that plans launch or terminate (`Plans.barred_rows`).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from mooring.engine.plugin import SKIP as NOTHING_TO_SAY
from mooring.engine.plugin import Codes, Depends, PreFilter, Skip
from mooring.engine.shortcuts import SpoiledByOthers
from mooring.engine.verdict import Rejection
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

HELD, NOT_OFFERED, BARRED, IN_DOUBT = 1, 2, 3, 4


class HeldPods(PreFilter):
    """Refuses rows on which a pod would keep a held pod from starting."""

    depends_on = Depends.PODS | Depends.NODE | Depends.RELATED
    skip_is_settled = True
    reason = "node(s) had room that is held for another pod"

    def __init__(self, profile: str, filters: Mapping[str, Sequence[SpoiledByOthers]]) -> None:
        """`filters` are those of each profile, by name, whose answers for a held pod change with pods elsewhere."""
        super().__init__()
        self._profile = profile
        self._filters = filters

    def filters_of(self, pod: Shape) -> Sequence[SpoiledByOthers]:
        """Those that are asked about a pod; where no profile has the name of its scheduler, those of this profile."""
        found = self._filters.get(pod.spec.scheduler_name)
        return self._filters[self._profile] if found is None else found

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Codes | Skip:
        codes: Codes | None = None
        if cluster.offered_rows is not None:
            codes = np.full(cluster.end, NOT_OFFERED, np.int64)
            codes[sorted(cluster.offered_rows)] = 0
        offered = cluster.offered_rows or ()
        barred = [row for row in cluster.barred_rows if row not in offered]
        if barred:
            codes = np.zeros(cluster.end, np.int64) if codes is None else codes
            codes[barred] = BARRED
        for held in cluster.guarded_pods():
            if codes is None:
                codes = np.zeros(cluster.end, np.int64)
            if cluster.compete_for_devices(held.shape, pod):
                codes[held.row] = HELD
            for plugin in self.filters_of(held.shape):
                spoiled = plugin.spoiled_rows(held, pod, cluster)
                if spoiled is not None:
                    codes[spoiled] = HELD
        tentative = cluster.tentative_pods()
        for plugin in self._filters[self._profile] if tentative else ():
            in_doubt = plugin.rows_in_doubt(pod, tentative, cluster)
            if in_doubt is not None:
                codes = np.zeros(cluster.end, np.int64) if codes is None else codes
                codes[in_doubt & (codes == 0)] = IN_DOUBT
        return NOTHING_TO_SAY if codes is None else codes

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Codes) -> Codes:
        codes: Codes = prepared[nodes.index]
        return codes

    def rejection(self, pod: Shape, code: int) -> Rejection:
        if code == NOT_OFFERED:
            return Rejection(("node(s) were not on offer",), unresolvable=True)
        if code == IN_DOUBT:
            return Rejection(("node(s) depended on pods that have not started or are leaving",))
        if code == BARRED:
            return Rejection(("node(s) were being launched or terminated",), unresolvable=True)
        return Rejection((self.reason,))
