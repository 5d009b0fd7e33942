"""What admission shows of itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mooring.actions.admit.cycle.cycle import Admission
from mooring.engine.action import Section
from mooring.model.keys import WorkloadKey
from mooring.state.workloads import WorkloadRecord


@dataclass(frozen=True)
class AdmissionSection(Section):
    """Queues, lines and ledger of quota, and the workloads in them."""

    current: Admission | None
    """None as long as nothing has queued."""
    workloads: Mapping[WorkloadKey, WorkloadRecord]
    make: Callable[[], Admission]
    """Makes what admission would be if a workload came now."""

    @property
    def admission(self) -> Admission:
        """Queues, lines and ledger as they are; empty ones as long as nothing has queued."""
        return self.current or self.make()
