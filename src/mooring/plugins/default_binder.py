"""Binds every pod that gets this far, by the driver's ordinary way."""

from mooring.engine.plugin import Bind
from mooring.state.pods import PodRecord


class DefaultBinder(Bind):
    reads_pod_labels = False
    reads_pod_annotations = False

    def bind(self, pod: PodRecord, node_name: str) -> bool:
        return True
