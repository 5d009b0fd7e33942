"""Our decisions on workloads that queue, beside what the present controller of the queues does."""

from collections.abc import Callable

from mooring.model.api.kueue_workload import QuotaAdmission, Workload
from mooring.model.decisions import Admit, Defer
from mooring.model.events import Event, Failed
from mooring.model.keys import WorkloadKey
from mooring.observe.shadow_log import ComparedAdmission, Side

NOT_ADMITTED = "it has not been admitted"


class AdmissionComparison:
    """Workloads that wait for quota, with what we decided on each."""

    def __init__(self, tell: Callable[[Event], None], note: Callable[[ComparedAdmission], None]) -> None:
        self._tell, self._note = tell, note
        self._pending: set[WorkloadKey] = set()
        """Workloads without quota, as the cluster shows them."""
        self._admitted: dict[WorkloadKey, tuple[Admit, float]] = {}
        self._deferred: dict[WorkloadKey, str] = {}
        self._noted: set[WorkloadKey] = set()
        """Workloads that we alone would have admitted, and of which a line says so."""

    def __len__(self) -> int:
        return len(self._admitted)

    def admit(self, decision: Admit, now: float) -> None:
        key = WorkloadKey(decision.workload)
        if key in self._pending:  # else its quota is known, and only its checks have changed
            self._admitted[key] = decision, now
            self._deferred.pop(key, None)

    def defer(self, decision: Defer) -> None:
        self._deferred[WorkloadKey(decision.workload)] = decision.message

    def seen(self, workload: Workload, now: float) -> None:
        """Take note of a workload before the scheduler is told of it; compare it if it has just got quota."""
        key, admission = workload.key, workload.status.admission
        if admission is None:
            self._pending.add(key)
            return
        if key not in self._pending:
            return
        self._pending.discard(key)
        self._noted.discard(key)
        decision, _ = self._admitted.pop(key, (None, 0.0))
        message = self._deferred.pop(key, "")
        line = ComparedAdmission(time=now, workload=key, side=Side.THEIRS, queue=admission.cluster_queue)
        theirs = _their_flavors(admission)
        if decision is None:
            line.message, line.other_flavors = message, theirs
        else:
            line.side, line.flavors = Side.BOTH, _our_flavors(decision)
            line.other_flavors = {} if line.flavors == theirs else theirs
        self._note(line)

    def lost(self, key: WorkloadKey) -> None:
        self._pending.discard(key)
        self._noted.discard(key)
        self._admitted.pop(key, None)
        self._deferred.pop(key, None)

    def drop_unconfirmed(self, now: float, timeout_seconds: float) -> None:
        for key in [key for key, (_, at) in self._admitted.items() if now >= at + timeout_seconds]:
            decision, _ = self._admitted.pop(key)
            self._tell(Failed(decision, NOT_ADMITTED))
            if key not in self._noted:
                self._noted.add(key)
                self._note(
                    ComparedAdmission(
                        time=now,
                        workload=key,
                        side=Side.OURS,
                        queue=decision.cluster_queue,
                        flavors=_our_flavors(decision),
                        message=decision.message,
                    )
                )


def _our_flavors(decision: Admit) -> dict[str, str]:
    return {f"{each.name}/{name}": flavor for each in decision.podsets for name, flavor in each.flavors.items()}


def _their_flavors(admission: QuotaAdmission) -> dict[str, str]:
    return {
        f"{each.name}/{name}": flavor
        for each in admission.pod_set_assignments
        for name, flavor in (each.flavors or {}).items()
    }
