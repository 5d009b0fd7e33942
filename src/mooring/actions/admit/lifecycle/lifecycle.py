"""Where workloads are moved from stage to stage, and what is decided about them is written down.

It knows quota and time. It knows nothing of pods: whoever has changed a workload's stage here sees to them afterwards.
"""

from collections.abc import Callable, Iterable, Mapping

from mooring.actions.admit.cycle.conditions import ADMISSION_GATED, SUSPENDED, WAITING_FOR_QUOTA
from mooring.actions.admit.cycle.cycle import Admission, Preempted
from mooring.actions.admit.cycle.faults import blame, in_turn_of
from mooring.actions.admit.lifecycle.admission_checks import look_at_checks
from mooring.actions.admit.lifecycle.evictions import DEACTIVATED, preemption_message
from mooring.actions.admit.lifecycle.settling import Deadlines, Settling
from mooring.actions.admit.quota.structure import Structure
from mooring.actions.admit.quota.workload_info import EVICTED, QUOTA_RESERVED, parse_time
from mooring.config.queueing import QueueingSettings
from mooring.model.api.kueue import LocalQueue
from mooring.model.api.kueue_workload import ADMITTED, FINISHED
from mooring.model.decisions import Admit, Decision, PodSetFlavors, Suspend
from mooring.model.keys import WorkloadKey
from mooring.model.queued.workloads import QueuedWorkload
from mooring.state.workloads import (
    ADMISSION_CHECK,
    PODS_READY_TIMEOUT,
    Condition,
    Eviction,
    Stage,
    WorkloadRecord,
    WorkloadTable,
)

FinishedOf = Callable[[WorkloadKey], Mapping[str, int]]
"""Says of a workload, by pod set, how many of its pods are done."""


class Lifecycle:
    """All workloads, the admission that decides on them, and the times at which they must be looked at."""

    def __init__(
        self, settings: QueueingSettings, admission: Admission, finished_of: FinishedOf, table: WorkloadTable
    ) -> None:
        """Go on with what the state has of each workload; lines and ledger are filled by `change_queues`."""
        self._settings = settings
        self._finished_of = finished_of
        self._table = table
        self.admission = admission
        self.settling = Settling(admission.structure)
        self.workloads = table.records
        self.aside = table.aside
        self.deadlines = Deadlines()
        self.unready: dict[WorkloadKey, WorkloadRecord] = {}
        """Workloads that hold quota, and not all of whose pods are there."""
        self.leaving: dict[WorkloadKey, WorkloadRecord] = {}
        self.moved: dict[WorkloadKey, WorkloadRecord] = {}
        """Workloads whose stage changed: their pods are to be brought in line."""
        self.spoken_of: dict[WorkloadKey, WorkloadRecord] = {}
        """Workloads of which there may be something new to say."""
        self.decisions: list[Decision] = []
        for record in table.records.values():
            self._set_down(record)

    @property
    def run(self) -> int:
        """The number of the run that goes on, or comes next."""
        return self._table.run

    def _change(self, record: WorkloadRecord, **values: object) -> None:
        self._table.change(record, **values)

    def _set_down(self, record: WorkloadRecord) -> None:
        """Let a workload be found wherever it is to be by its stage, but for lines and ledger."""
        if record.holds is not None:
            record.holds.stand(record)
        if record.stage is Stage.LEAVING:
            self.leaving[record.key] = record
        elif record.stage is Stage.RESERVED or (record.stage is Stage.ADMITTED and not record.is_ready):
            self.unready[record.key] = record
        self._remind(record)

    def _remind(self, record: WorkloadRecord) -> None:
        """Have a workload looked at when something is due."""
        if record.stage is Stage.BACKOFF and record.requeue_at is not None:
            self.deadlines.add(record.requeue_at, record.key)
        if record.stage is Stage.ADMITTED:
            for time in (record.ready_by, record.stop_by):
                if time is not None:
                    self.deadlines.add(time, record.key)

    def follow(self, record: WorkloadRecord, queued: QueuedWorkload) -> None:
        """The world says something else of a workload."""
        self._change(record, queued=queued)

    def trust_activation(self, record: WorkloadRecord) -> None:
        """The world says itself that a workload is not active."""
        self._change(record, is_deactivated=False)

    def note_told(self, record: WorkloadRecord, condition: Condition) -> None:
        """A workload was told why it waits."""
        self._change(record, told=condition)

    def note_told_ends(self, record: WorkloadRecord, ends: frozenset[float]) -> None:
        """A workload was told when it will lose its quota."""
        self._change(record, told_ends=ends)

    def leave_alone(self, record: WorkloadRecord) -> None:
        """Something raised in the turn of a workload that waits: it waits in no line until it may be tried again."""
        self.admission.finish([record.key])
        self._keep_out(record, Condition(WAITING_FOR_QUOTA, self.aside.message(record.key)))

    def come_back(self, record: WorkloadRecord, now: float) -> None:
        """A workload is to be tried again in whose turn something raised."""
        self._remind(record)
        self.moved[record.key] = self.spoken_of[record.key] = record
        if record.stage is Stage.OUTSIDE:
            self.enter(record, now)

    def take_decisions(self) -> list[Decision]:
        """What was decided since this was last asked."""
        decisions, self.decisions = self.decisions, []
        return decisions

    def take_moved(self) -> list[WorkloadRecord]:
        """The workloads whose pods may have to be brought in line since this was last asked."""
        moved, self.moved = self.moved, {}
        return list(moved.values())

    def take_spoken_of(self) -> list[WorkloadRecord]:
        """The workloads of which there may be something new to say since this was last asked."""
        spoken_of, self.spoken_of = self.spoken_of, {}
        return list(spoken_of.values())

    def look_at_pods_of(self, record: WorkloadRecord) -> None:
        """The pods of a workload are not what they were: they are to be brought in line."""
        self.moved[record.key] = record

    def speak_of(self, record: WorkloadRecord) -> None:
        """There may be something new to say of a workload."""
        self.spoken_of[record.key] = record

    # Coming in.

    def take_in_unread(self, record: WorkloadRecord) -> None:
        """Let a workload be there that could not be taken in, until that is tried again."""
        self._change(record, is_unread=True)
        self._table.put(record)
        self._keep_out(record, Condition(WAITING_FOR_QUOTA, self.aside.message(record.key)))

    def take_in(self, record: WorkloadRecord, now: float) -> None:
        """Let a workload that was not known before go on from where the world says that it is."""
        workload = record.workload
        self._table.put(record)
        state = workload.status.requeue_state
        if state is not None:
            self._change(record, requeue_count=state.count)
            self._change(record, requeue_at=parse_time(state.requeue_at) if state.requeue_at else None)
        self._change(record, past_seconds=float(workload.status.accumulated_past_execution_time_seconds or 0))
        if workload.condition(FINISHED) is not None:
            self._move(record, Stage.DONE)
        elif workload.status.admission is not None:
            self.take_in_admitted(record, now)
        else:
            self.enter(record, now)

    def take_in_admitted(self, record: WorkloadRecord, now: float) -> None:
        """Let a workload go on that the world says has quota."""
        workload = record.workload
        self._hold_as_the_world_says(record)
        evicted, admitted = workload.condition(EVICTED), workload.condition(ADMITTED)
        if evicted is not None:
            at = parse_time(evicted.last_transition_time) if evicted.last_transition_time else now
            self._leave(record, Eviction(evicted.reason, evicted.message, at))
            return
        since = admitted or workload.condition(QUOTA_RESERVED)
        self.unready[record.key] = record
        if admitted is None:
            self._move(record, Stage.RESERVED)
            self.follow_checks(record, now)
        else:
            at = parse_time(since.last_transition_time) if since and since.last_transition_time else now
            self._start(record, at)

    def _hold_as_the_world_says(self, record: WorkloadRecord) -> None:
        self.admission.add(record.workload)
        info = self.admission.admitted(record.key)
        assert info is not None
        self._change(record, holds=info, pod_sets=info.pod_sets)

    def enter(self, record: WorkloadRecord, now: float) -> None:
        """Put a workload that holds nothing where it belongs: into its line, behind its backoff, or outside."""
        workload = record.workload
        self.admission.finish([record.key])
        self._change(record, holds=None)
        if record.is_deactivated or not workload.spec.active:
            said = record.eviction.message if record.eviction is not None and record.is_deactivated else ""
            self._keep_out(record, Condition(SUSPENDED, said or "The workload is deactivated"))
            return
        if record.requeue_at is not None and record.requeue_at > now:
            said = f"{record.eviction.message}; " if record.eviction is not None else ""
            self._move(record, Stage.BACKOFF)
            self.say(record, Condition(SUSPENDED, f"{said}requeued in {record.requeue_at - now:.0f}s"))
            self.deadlines.add(record.requeue_at, record.key)
            return
        self._change(record, requeue_at=None)
        if record.key in self.aside:
            self.leave_alone(record)
            return
        queue = self.admission.find_queue(workload)
        if isinstance(queue, Condition):
            self._keep_out(record, queue)
            return
        pending = self.admission.intake.make_pending(workload, queue.name, self._finished_of(record.key))
        if record.queued_since is not None and self._loses_its_place(record):
            pending.queued_at = record.queued_since
        self._move(record, Stage.WAITING)
        self.admission.wait(pending)
        if queue.is_active:
            self.say(record, self.admission.pending.words_for(record.key) or record.condition)
        else:
            self.say(record, Condition(SUSPENDED, f"ClusterQueue {queue.name} is inactive: {queue.inactive_reason}"))

    def _loses_its_place(self, record: WorkloadRecord) -> bool:
        if record.eviction is not None and record.eviction.reason == PODS_READY_TIMEOUT:
            return self.admission.intake.orders_by_eviction
        return True

    def _keep_out(self, record: WorkloadRecord, condition: Condition) -> None:
        self._move(record, Stage.OUTSIDE)
        self.say(record, condition)

    def say(self, record: WorkloadRecord, condition: Condition) -> None:
        """Note why a workload waits; the same again is nothing new."""
        if condition != record.condition:
            self._change(record, condition=condition)
            self.spoken_of[record.key] = record

    # Quota.

    def reserve(self, record: WorkloadRecord, now: float) -> None:
        """A workload was given quota; it starts once its checks are ready."""
        info = self.admission.admitted(record.key)
        assert info is not None
        self._change(record, holds=info, pod_sets=info.pod_sets, admitted_in_run=self.run, eviction=None)
        self.unready[record.key] = record
        self._move(record, Stage.RESERVED)
        pending = self.follow_checks(record, now)
        if record.stage is Stage.RESERVED:
            queue = info.pending.queue_name
            message = f"Quota reserved in ClusterQueue {queue}"
            self.decisions.append(Admit(record.key, queue, record.pod_sets, message, pending))

    def reassign(self, record: WorkloadRecord, pod_sets: tuple[PodSetFlavors, ...], message: str) -> None:
        """The pods of a workload that have no node are to go to other domains."""
        self.admission.ledger.reassign(record.key, pod_sets)
        info = self.admission.admitted(record.key)
        assert info is not None
        self._change(record, pod_sets=pod_sets)
        self._change(record, let_go=set())
        self.moved[record.key] = record
        self.decisions.append(Admit(record.key, info.pending.queue_name, pod_sets, message))

    def follow_checks(self, record: WorkloadRecord, now: float) -> tuple[str, ...]:
        """Act on the admission checks of a workload that holds quota; the names of those that are pending."""
        info = self.admission.admitted(record.key)
        queue = self.admission.structure.queues.get(info.pending.queue_name) if info is not None else None
        result = look_at_checks(record, queue.checks_for(record.flavors()) if queue is not None else (), now)
        if result.rejected:
            names = ",".join(result.rejected)
            self.deactivate(record, ADMISSION_CHECK, f"Admission check(s): {names}, were rejected", now)
        elif result.retry_at is not None:
            self._change(record, requeue_at=result.retry_at)
            self.evict(record, Eviction(ADMISSION_CHECK, "At least one admission check is false", now))
        elif record.stage is Stage.RESERVED and not result.pending:
            assert info is not None
            name = info.pending.queue_name
            self.decisions.append(Admit(record.key, name, record.pod_sets, "The workload is admitted"))
            self._start(record, now)
        elif record.stage is Stage.RESERVED:
            names = ", ".join(result.pending)
            self.say(
                record, Condition(ADMISSION_GATED, f"The workload has quota, and waits for admission checks: {names}")
            )
        return result.pending

    def _start(self, record: WorkloadRecord, since: float) -> None:
        self._change(record, admitted_at=since)
        info = self.admission.admitted(record.key)
        if info is not None:
            info.started_at = since
        self._change(record, is_ready=False)
        self._change(record, let_go=set())
        self._change(record, flavor_terms={})
        self._move(record, Stage.ADMITTED)
        if self._settings.pods_ready is not None:
            self._expect_ready(record, since + self._settings.pods_ready.timeout_seconds)
        most = record.workload.spec.maximum_execution_time_seconds
        stop_by = None if most is None else since + most - record.past_seconds
        self._change(record, stop_by=stop_by)
        if stop_by is not None:
            self.deadlines.add(stop_by, record.key)

    def _expect_ready(self, record: WorkloadRecord, by: float) -> None:
        self._change(record, ready_by=by)
        self.deadlines.add(by, record.key)

    def set_ready(self, record: WorkloadRecord, is_ready: bool, now: float) -> None:
        """Note whether all pods of an admitted workload are there; if they were and are not, they may recover."""
        if is_ready == record.is_ready:
            return
        self._change(record, is_ready=is_ready)
        if is_ready:
            self._change(record, ready_by=None)
            self.unready.pop(record.key, None)
            self.settling.wake_all()  # whoever waits for the others to be ready
            return
        self.unready[record.key] = record
        settings = self._settings.pods_ready
        if settings is not None and settings.recovery_timeout_seconds is not None:
            self._expect_ready(record, now + settings.recovery_timeout_seconds)

    # Time.

    def pass_time(self, now: float) -> None:
        """Act on what is due: backoffs that end, pods that took too long, workloads that ran for too long."""
        for key in list(self.deadlines.due(now)):
            record = self.workloads.get(key)
            if record is not None and key not in self.aside:
                with in_turn_of(key):
                    self._pass_time(record, now)

    def next_deadline(self) -> float | None:
        """When something falls due though nothing happens."""
        return self.deadlines.next(self._counts)

    def _counts(self, time: float, key: WorkloadKey) -> bool:
        """Whether a deadline is still one."""
        record = self.workloads.get(key)
        if record is None:
            return False
        if record.stage is Stage.BACKOFF:
            return record.requeue_at == time
        return record.stage is Stage.ADMITTED and time in (record.stop_by, record.ready_by)

    def _pass_time(self, record: WorkloadRecord, now: float) -> None:
        if record.stage is Stage.BACKOFF and record.requeue_at is not None and record.requeue_at <= now:
            self.enter(record, now)
        elif record.stage is Stage.ADMITTED and record.stop_by is not None and record.stop_by <= now:
            self._change(record, past_seconds=0.0)
            self.deactivate(record, "MaximumExecutionTimeExceeded", "exceeding the maximum execution time", now)
        elif record.stage is Stage.ADMITTED and record.ready_by is not None and record.ready_by <= now:
            self._take_too_long(record, now)

    def _take_too_long(self, record: WorkloadRecord, now: float) -> None:
        settings = self._settings.pods_ready
        assert settings is not None
        self._change(record, requeue_count=record.requeue_count + 1)
        if settings.backoff_limit is not None and record.requeue_count > settings.backoff_limit:
            cause = "exceeding the maximum number of re-queuing retries"
            self.deactivate(record, "RequeuingLimitExceeded", cause, now)
            return
        self._change(record, requeue_at=now + settings.backoff_seconds(record.requeue_count))
        self.evict(record, Eviction(PODS_READY_TIMEOUT, f"Exceeded the PodsReady timeout {record.key}", now))

    def change_queues(self, structure: Structure, local_queues: Iterable[LocalQueue], now: float) -> None:
        """Go on with other queues: nobody loses what it holds, and who waits looks for its line anew.

        Who holds what is read from the records: whatever became of lines and ledger, this makes them anew.
        """
        holding = {record.key: record.holds for record in self.workloads.values() if record.holds is not None}
        self.admission = self.admission.rebuilt(structure, local_queues, holding)
        self.settling = Settling(structure)
        for record in list(self.workloads.values()):
            if record.stage in (Stage.WAITING, Stage.OUTSIDE) and not record.is_unread:
                try:
                    self.enter(record, now)
                except Exception as error:
                    blame(record.key, error)

    # Going.

    def preempt(self, found: Preempted, now: float) -> None:
        record, preemptor = self.workloads[found.workload], self.workloads[found.preemptor]
        message = preemption_message(preemptor.workload, found, self.admission)
        self.evict(record, Eviction(found.reason, message, now, preemptor=preemptor.key))

    def deactivate(self, record: WorkloadRecord, cause: str, message: str, now: float) -> None:
        """Stop a workload, and do not try it again until somebody asks for it."""
        self._change(record, is_deactivated=True)
        self._change(record, requeue_count=0, requeue_at=None)
        self.evict(record, Eviction(f"{DEACTIVATED}DueTo{cause}", f"The workload is deactivated due to {message}", now))

    def evict(self, record: WorkloadRecord, eviction: Eviction) -> None:
        """Tell a workload to stop; it holds its quota until its pods are gone."""
        if record.stage is Stage.LEAVING:
            return
        if record.stage is Stage.ADMITTED and not record.is_deactivated:
            self._change(record, past_seconds=record.past_seconds + max(0.0, eviction.at - record.admitted_at))
        self._change(record, outdated_checks=record.queued)
        self._leave(record, eviction)
        self._tell_to_stop(record, eviction)

    def hold_again(self, record: WorkloadRecord) -> None:
        """The world did not let a workload be stopped: it is told again. Without pods it had given its quota back
        already; it has it again, as the world says, or others would be given what it goes on to use."""
        eviction, workload = record.eviction, record.workload
        if eviction is None or record.stage is Stage.DONE:
            return
        if not record.is_holding and workload.status.admission is not None:
            self.admission.finish([record.key])
            self._hold_as_the_world_says(record)
            self._leave(record, eviction)
        if record.stage is Stage.LEAVING:
            self._change(record, is_refused=True)
            self.moved[record.key] = record  # its pods may not have been told either
            self._tell_to_stop(record, eviction)

    def _tell_to_stop(self, record: WorkloadRecord, eviction: Eviction) -> None:
        self.decisions.append(Suspend(record.key, eviction.reason, eviction.message, eviction.preemptor))

    def _leave(self, record: WorkloadRecord, eviction: Eviction) -> None:
        info = self.admission.admitted(record.key)
        if info is not None:
            self.admission.ledger.mark_evicted(info)
        self._change(record, eviction=eviction)
        self._change(record, is_refused=False)
        self._change(record, ready_by=None, stop_by=None)
        self.unready.pop(record.key, None)
        self.leaving[record.key] = record
        self._move(record, Stage.LEAVING)
        self.say(record, Condition(eviction.reason, eviction.message))

    def complete_evictions(self, gone: Iterable[WorkloadRecord], now: float) -> None:
        """The pods of these workloads are gone: their quota is free, and they wait again."""
        workloads = list(gone)
        self.admission.finish([record.key for record in workloads])
        for record in workloads:
            try:
                del self.leaving[record.key]
                self._change(record, pod_sets=())
                self.enter(record, now)
            except Exception as error:
                blame(record.key, error)

    def finish(self, record: WorkloadRecord) -> None:
        """A workload is done: what it held is free."""
        self.admission.finish([record.key])
        self._change(record, holds=None)
        self.unready.pop(record.key, None)
        self.leaving.pop(record.key, None)
        self._move(record, Stage.DONE)

    def forget(self, record: WorkloadRecord) -> None:
        """A workload is gone from the world."""
        self.finish(record)
        self.aside.forget([record.key])
        self._table.remove(record.key)
        self.moved.pop(record.key, None)
        self.spoken_of.pop(record.key, None)

    def _move(self, record: WorkloadRecord, stage: Stage) -> None:
        if record.stage is not stage:
            self._change(record, stage=stage)
            self.moved[record.key] = record
