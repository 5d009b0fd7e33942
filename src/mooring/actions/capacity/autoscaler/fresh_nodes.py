"""Nodes that do not exist yet, opened for a trial with the daemons that would run on them."""

from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from mooring.actions.capacity.autoscaler.templates import Template
from mooring.model.api.pods import Pod
from mooring.model.events import PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.model.node_offer import NodeOffer
from mooring.state.cluster import Cluster


class FreshNodes:
    """Opens nodes from templates. Their daemons are pods that wait, until the trial around them places them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made: set[PodKey] = set()

    def announce(self, templates: Iterable[Template]) -> None:
        """Let it be known which pods daemons select, before anybody tells pods apart."""
        for template in templates:
            for daemon in template.daemons:
                self._cluster.shape_for(_copy(daemon, "announced"))

    def open(self, template: Template, number: int) -> int:
        """Let there be one more node, the so-many-th of its kind in this trial; return its row."""
        cluster = self._cluster
        row = cluster.open_row(NodeOffer(template.node))
        for index, daemon in enumerate(template.daemons):
            pod = _copy(daemon, f"{template.node.name}-{number}-{index}")
            if pod.key not in self._made:
                self._made.add(pod.key)
                cluster.observe(PodSeen(pod))
            cluster.assume(pod.key, row)
        return row

    def forget(self) -> None:
        """Let the daemons that were made up be gone; after the trials have ended."""
        self._cluster.observe(*(PodLost(key) for key in sorted(self._made)))
        self._made.clear()

    def free(self, template: Template, names: tuple[str, ...]) -> NDArray[np.int64]:
        """How much of some resources a fresh node has left beside its daemons."""
        cluster = self._cluster
        with cluster.what_if():
            row = self.open(template, 0)
            nodes = cluster.rows(np.array([row], np.intp))
            return np.array([int(nodes.free(name)[0]) for name in names], np.int64)


def _copy(pod: Pod, suffix: str) -> Pod:
    """A pod like one that runs elsewhere, before it is bound."""
    metadata = replace(pod.metadata, name=f"{pod.metadata.name}-{suffix}", uid="")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""))
