"""Following the world: what it says of queues and workloads since we last looked, brought to the lifecycle."""

from collections.abc import Iterable

from mooring.actions.admit.cycle.faults import blame, in_turn_of
from mooring.actions.admit.lifecycle.evictions import CLUSTER_QUEUE_STOPPED, DEACTIVATED, LOCAL_QUEUE_STOPPED
from mooring.actions.admit.lifecycle.lifecycle import Lifecycle
from mooring.actions.admit.quota.structure import Structure
from mooring.actions.admit.quota.windows import Overrides, QuotaSchedule, apply
from mooring.errors import TurnFailed
from mooring.model.api.kueue import HOLD, HOLD_AND_DRAIN, Workload
from mooring.model.api.kueue_workload import FINISHED
from mooring.model.decisions import Admit, Suspend
from mooring.model.keys import WorkloadKey
from mooring.model.queued.workloads import QueuedWorkload
from mooring.state.remembered import Seen
from mooring.state.tenants import TenantTable
from mooring.state.undo import UndoLog
from mooring.state.workloads import WITHOUT_QUOTA, Eviction, Stage, WorkloadRecord, WorkloadTable

REFUSED = "AdmissionRefused"
"""The reason of an eviction because the API server did not take the admission."""


def make_structure(tenants: TenantTable, log: UndoLog, overrides: Overrides | None = None) -> Structure:
    """The queues as they are now, compiled; with other quotas where windows give them some."""
    queues = apply(overrides or {}, tenants.cluster_queues.values())
    return Structure(queues, tenants.cohorts.values(), tenants.flavors.values(), tenants.checks.values(), log=log)


class WorkloadSync:
    """How far the world has been followed."""

    def __init__(
        self, tenants: TenantTable, table: WorkloadTable, lifecycle: Lifecycle, schedule: QuotaSchedule, now: float
    ) -> None:
        """The lifecycle has the queues as they are, and as the schedule makes them now."""
        self._table = table
        self._tenants = tenants
        self._lifecycle = lifecycle
        self._schedule = schedule
        self._seen = Seen()
        """The queues, and what windows make of them, for which lines and ledger were made."""
        if not lifecycle.workloads:
            self._seen.is_news((tenants.version, self._open_windows(now)))

    def catch_up(self, now: float, come_back: Iterable[WorkloadKey] = ()) -> list[WorkloadRecord]:
        """Take in what changed; the workloads to look at, because they or their pods are not what they were.

        Of those that are set aside, only who comes back is followed, and who is gone is forgotten.
        """
        tenants, lifecycle = self._tenants, self._lifecycle
        touched = tenants.touched(self._table.position)
        if touched is None:
            touched = list(dict.fromkeys((*lifecycle.workloads, *tenants.workloads)))
        self._table.follow_to(tenants.position)
        back = set(come_back)
        if back:
            touched = list(dict.fromkeys((*touched, *back)))
        there = [key for key in touched if key in tenants.workloads or self._is_there(key)]
        if self._seen.is_news((tenants.version, self._open_windows(now))):
            self.rebuild(now)
            for record in lifecycle.workloads.values():
                with in_turn_of(record.key):
                    self._obey_stop_policies(record, now)
        found, aside = [], lifecycle.aside
        key = None
        try:
            for key in there:
                if key in aside:
                    self._leave_alone(key, now)
                    continue
                record = self._follow(key, now)
                found.append(record)
                if key in back:
                    lifecycle.come_back(record, now)
        except Exception as error:
            blame(key, error)
        for failure in tenants.take_refused():
            lifecycle.admission.ledger.log.note_standing(tenants.note_refused, failure)
            assert isinstance(failure.decision, Admit | Suspend)
            with in_turn_of(WorkloadKey(failure.decision.workload)):
                self._take_back(failure.decision, failure.message, now)
        return found

    def _leave_alone(self, key: WorkloadKey, now: float) -> None:
        """A workload is set aside: it is not followed. If it is not known, it still has the quota that it has."""
        known = self._lifecycle.workloads.get(key)
        if known is not None:
            self._lifecycle.look_at_pods_of(known)
        else:
            record = WorkloadRecord(self._tenants.workloads[key])
            if key in self._lifecycle.aside.unread:
                self._lifecycle.take_in_unread(record)
            else:
                self._take_in(record, now)

    def _take_in(self, record: WorkloadRecord, now: float) -> None:
        try:
            self._lifecycle.take_in(record, now)
        except Exception as error:
            self._lifecycle.aside.keep_unread(record.key)
            raise TurnFailed(record.key, error) from error

    def _is_there(self, key: WorkloadKey) -> bool:
        """Whether the world has a workload of that name; whoever it has no more is forgotten."""
        if key in self._tenants.workloads:
            return True
        record = self._lifecycle.workloads.get(key)
        if record is not None:
            with in_turn_of(key):
                self._lifecycle.forget(record)
        return False

    def rebuild(self, now: float) -> None:
        """Compile the queues as they are, and make lines and ledger anew from what is known of each workload."""
        tenants, lifecycle = self._tenants, self._lifecycle
        structure = make_structure(tenants, lifecycle.admission.ledger.log, self._open_windows(now))
        lifecycle.change_queues(structure, tenants.local_queues.values(), now)

    def _open_windows(self, now: float) -> Overrides:
        """What the open windows say of queues that are there."""
        if not self._schedule:
            return {}
        found = self._schedule.overrides(now)
        return {key: override for key, override in found.items() if key.queue in self._tenants.cluster_queues}

    def distrust(self) -> None:
        """Have lines and ledger made anew in the next run: a mistake of ours may have left something in them."""
        self._seen.forget()

    def _follow(self, key: WorkloadKey, now: float) -> WorkloadRecord:
        queued, record = self._tenants.workloads[key], self._lifecycle.workloads.get(key)
        if record is None or record.is_unread or _identity(record.workload) != _identity(queued.workload):
            if record is not None and not record.is_unread:
                self._lifecycle.forget(record)  # another one under the same name
            record = WorkloadRecord(queued)
            self._take_in(record, now)
            self._obey_stop_policies(record, now)
            if not record.workload.spec.active and record.stage in (Stage.RESERVED, Stage.ADMITTED):
                self._lifecycle.evict(record, Eviction(DEACTIVATED, "The workload is deactivated", now))
        elif record.queued is not queued:
            before = record.queued
            self._lifecycle.follow(record, queued)
            self._update(record, before, now)
        return record

    def _take_back(self, decision: Admit | Suspend, message: str, now: float) -> None:
        """The world refused a decision: a workload to be admitted waits again, one to be stopped is told again."""
        record = self._lifecycle.workloads.get(WorkloadKey(decision.workload))
        if record is None:
            return
        if isinstance(decision, Suspend):
            self._lifecycle.hold_again(record)
        elif record.is_holding:
            self._lifecycle.evict(record, Eviction(REFUSED, f"The admission was refused: {message}", now))

    def _obey_stop_policies(self, record: WorkloadRecord, now: float) -> None:
        """Evict a workload from a queue that is drained; one that has not started yet, from any that is stopped."""
        lifecycle, workload = self._lifecycle, record.workload
        admitted = lifecycle.admission.admitted(record.key)
        if admitted is None or record.stage not in (Stage.RESERVED, Stage.ADMITTED):
            return
        name = admitted.pending.queue_name
        has_started = record.stage is Stage.ADMITTED
        queue = lifecycle.admission.structure.queues.get(name)
        local = lifecycle.admission.local_queue(workload)
        policy = local.spec.stop_policy if local is not None else None
        if policy == HOLD_AND_DRAIN or (policy == HOLD and not has_started):
            said = "The LocalQueue is stopped" if has_started else f"LocalQueue {workload.spec.queue_name} is stopped"
            lifecycle.evict(record, Eviction(LOCAL_QUEUE_STOPPED, said, now))
        elif queue is not None and (queue.is_drained or (queue.is_stopped and not has_started)):
            said = "The ClusterQueue is stopped" if has_started else f"ClusterQueue {name} is stopped"
            lifecycle.evict(record, Eviction(CLUSTER_QUEUE_STOPPED, said, now))

    def _update(self, record: WorkloadRecord, before: QueuedWorkload, now: float) -> None:
        """A workload is not what it was: act on what differs."""
        lifecycle, workload, old = self._lifecycle, record.workload, before.workload
        if workload.condition(FINISHED) is not None:
            lifecycle.finish(record)
        elif record.stage is Stage.DONE:
            return
        elif not workload.spec.active:
            lifecycle.trust_activation(record)
            if record.stage in WITHOUT_QUOTA:
                lifecycle.enter(record, now)
            else:
                lifecycle.evict(record, Eviction(DEACTIVATED, "The workload is deactivated", now))
        elif record.stage in WITHOUT_QUOTA:
            if old.status.admission is None and workload.status.admission is not None:
                lifecycle.admission.finish([record.key])
                lifecycle.take_in_admitted(record, now)
            elif old.spec != workload.spec:
                lifecycle.enter(record, now)
        else:
            admitted = lifecycle.admission.admitted(record.key)
            if admitted is not None:
                lifecycle.admission.ledger.set_priority(admitted, workload.spec.priority or 0)
            if record.stage is not Stage.LEAVING:
                lifecycle.follow_checks(record, now)


def _identity(workload: Workload) -> tuple[str, ...]:
    """What tells a workload from an earlier one of its name: its owners, whose it is made for, or else itself."""
    owners = workload.metadata.owner_references or ()
    return tuple(owner.uid for owner in owners) or (workload.metadata.uid,)
