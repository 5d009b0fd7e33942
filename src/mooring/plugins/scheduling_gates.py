"""Pods with scheduling gates stay out of the queue until the gates are gone."""

from mooring.engine.plugin import PreEnqueue
from mooring.engine.verdict import Rejection
from mooring.model.api.pods import Pod


class SchedulingGates(PreEnqueue):
    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return Rejection((f"waiting for scheduling gates: [{names}]",), unresolvable=True)
