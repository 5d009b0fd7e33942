"""Binds every pod that gets this far, by the driver's ordinary way."""

from mooring.engine.plugin import Bind
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape


class DefaultBinder(Bind):
    def applies_to(self, pod: Shape) -> bool:
        return False  # the decision to bind is all it takes

    def bind(self, pod: PodRecord, cluster: Cluster, row: int) -> bool:
        return True
