"""The desk at which works are moved from stage to stage, and what is decided about them is written down.

It knows quota and time. It knows nothing of pods: whoever has changed a work's stage here sees to them afterwards.
"""

from collections.abc import Callable, Iterable, Mapping

from mooring.actions.admit.cycle.cycle import Admission, Preempted
from mooring.actions.admit.lifecycle.admission_checks import look_at_checks
from mooring.actions.admit.lifecycle.conditions import ADMISSION_GATED, SUSPENDED, Words
from mooring.actions.admit.lifecycle.deadlines import Deadlines
from mooring.actions.admit.lifecycle.evictions import preemption_message
from mooring.actions.admit.lifecycle.settling import Settling
from mooring.actions.admit.lifecycle.stages import DEACTIVATED, Eviction, Stage, Work
from mooring.actions.admit.quota.structure import Structure
from mooring.actions.admit.workload_info import (
    ADMISSION_CHECK,
    EVICTED,
    PODS_READY_TIMEOUT,
    QUOTA_RESERVED,
    parse_time,
)
from mooring.config.queueing import QueueingSettings
from mooring.model.api.kueue import LocalQueue
from mooring.model.api.kueue_workload import ADMITTED, FINISHED
from mooring.model.decisions import Admit, Decision, Suspend

FinishedOf = Callable[[str], Mapping[str, int]]
"""Says of a work, by pod set, how many of its pods are done."""


class Desk:
    """All works, the admission that decides on them, and the times at which they must be looked at."""

    def __init__(self, settings: QueueingSettings, admission: Admission, finished_of: FinishedOf) -> None:
        self._settings = settings
        self._finished_of = finished_of
        self.admission = admission
        self.settling = Settling(admission.structure)
        self.works: dict[str, Work] = {}
        self.deadlines = Deadlines()
        self.unready: dict[str, Work] = {}
        """Works that hold quota, and not all of whose pods are there."""
        self.leaving: dict[str, Work] = {}
        self.moved: dict[str, Work] = {}
        """Works whose stage changed: their pods are to be brought in line."""
        self.spoken_of: dict[str, Work] = {}
        """Works of which there may be something new to say."""
        self.decisions: list[Decision] = []
        self.run = 0
        """How many times decisions were asked for."""

    # Coming in.

    def take_in(self, work: Work, now: float) -> None:
        """Let a work that was not known before go on from where the world says that it is."""
        workload = work.workload
        self.works[work.key] = work
        state = workload.status.requeue_state
        if state is not None:
            work.requeue_count = state.count
            work.requeue_at = parse_time(state.requeue_at) if state.requeue_at else None
        work.past_seconds = float(workload.status.accumulated_past_execution_time_seconds or 0)
        if workload.condition(FINISHED) is not None:
            self._move(work, Stage.DONE)
        elif workload.status.admission is not None:
            self.take_in_holder(work, now)
        else:
            self.enter(work, now)

    def take_in_holder(self, work: Work, now: float) -> None:
        """Let a work go on that the world says has quota."""
        workload = work.workload
        self.admission.add(workload)
        holder = self.admission.holder(work.key)
        assert holder is not None
        work.pod_sets = holder.pod_sets
        evicted, admitted = workload.condition(EVICTED), workload.condition(ADMITTED)
        if evicted is not None:
            at = parse_time(evicted.last_transition_time) if evicted.last_transition_time else now
            self._leave(work, Eviction(evicted.reason, evicted.message, at))
            return
        since = admitted or workload.condition(QUOTA_RESERVED)
        self.unready[work.key] = work
        if admitted is None:
            self._move(work, Stage.RESERVED)
            self.follow_checks(work, now)
        else:
            at = parse_time(since.last_transition_time) if since and since.last_transition_time else now
            self._start(work, at)

    def enter(self, work: Work, now: float) -> None:
        """Put a work that holds nothing where it belongs: into its line, behind its backoff, or outside."""
        workload = work.workload
        self.admission.finish([work.key])
        if work.is_deactivated or not workload.spec.active:
            said = work.eviction.message if work.eviction is not None and work.is_deactivated else ""
            self._keep_out(work, Words(SUSPENDED, said or "The workload is deactivated"))
            return
        if work.requeue_at is not None and work.requeue_at > now:
            said = f"{work.eviction.message}; " if work.eviction is not None else ""
            self._move(work, Stage.BACKOFF)
            self.say(work, Words(SUSPENDED, f"{said}requeued in {work.requeue_at - now:.0f}s"))
            self.deadlines.add(work.requeue_at, work.key)
            return
        work.requeue_at = None
        queue = self.admission.find_queue(workload)
        if isinstance(queue, Words):
            self._keep_out(work, queue)
            return
        applicant = self.admission.intake.make_applicant(workload, queue.name, self._finished_of(work.key))
        if work.queued_since is not None and self._loses_its_place(work):
            applicant.queued_at = work.queued_since
        self._move(work, Stage.WAITING)
        self.admission.wait(applicant)
        if queue.is_active:
            self.say(work, self.admission.pending.words_for(work.key) or work.words)
        else:
            self.say(work, Words(SUSPENDED, f"ClusterQueue {queue.name} is inactive: {queue.inactive_reason}"))

    def _loses_its_place(self, work: Work) -> bool:
        if work.eviction is not None and work.eviction.reason == PODS_READY_TIMEOUT:
            return self.admission.intake.orders_by_eviction
        return True

    def _keep_out(self, work: Work, words: Words) -> None:
        self._move(work, Stage.OUTSIDE)
        self.say(work, words)

    def say(self, work: Work, words: Words) -> None:
        """Note why a work waits."""
        work.words = words
        self.spoken_of[work.key] = work

    # Quota.

    def reserve(self, work: Work, now: float) -> None:
        """A work was given quota; it starts once its checks are ready."""
        holder = self.admission.holder(work.key)
        assert holder is not None
        work.pod_sets = holder.pod_sets
        work.admitted_in_run = self.run
        work.eviction = None
        self.unready[work.key] = work
        self._move(work, Stage.RESERVED)
        pending = self.follow_checks(work, now)
        if work.stage is Stage.RESERVED:
            queue = holder.applicant.queue_name
            message = f"Quota reserved in ClusterQueue {queue}"
            self.decisions.append(Admit(work.key, queue, work.pod_sets, message, pending))

    def follow_checks(self, work: Work, now: float) -> tuple[str, ...]:
        """Act on the admission checks of a work that holds quota; the names of those that are pending."""
        holder = self.admission.holder(work.key)
        queue = self.admission.structure.queues.get(holder.applicant.queue_name) if holder is not None else None
        result = look_at_checks(work, queue.checks_for(work.flavors()) if queue is not None else (), now)
        if result.rejected:
            names = ",".join(result.rejected)
            self.deactivate(work, ADMISSION_CHECK, f"Admission check(s): {names}, were rejected", now)
        elif result.retry_at is not None:
            work.requeue_at = result.retry_at
            self.evict(work, Eviction(ADMISSION_CHECK, "At least one admission check is false", now))
        elif work.stage is Stage.RESERVED and not result.pending:
            assert holder is not None
            name = holder.applicant.queue_name
            self.decisions.append(Admit(work.key, name, work.pod_sets, "The workload is admitted"))
            self._start(work, now)
        elif work.stage is Stage.RESERVED:
            names = ", ".join(result.pending)
            self.say(work, Words(ADMISSION_GATED, f"The workload has quota, and waits for admission checks: {names}"))
        return result.pending

    def _start(self, work: Work, since: float) -> None:
        work.admitted_at = since
        holder = self.admission.holder(work.key)
        if holder is not None:
            holder.started_at = since
        work.is_ready = work.was_ready = False
        work.let_go.clear()
        self._move(work, Stage.ADMITTED)
        if self._settings.pods_ready is not None:
            self._expect_ready(work, since + self._settings.pods_ready.timeout_seconds)
        most = work.workload.spec.maximum_execution_time_seconds
        work.stop_by = None
        if most is not None:
            work.stop_by = since + most - work.past_seconds
            self.deadlines.add(work.stop_by, work.key)

    def _expect_ready(self, work: Work, by: float) -> None:
        work.ready_by = by
        self.deadlines.add(by, work.key)

    def set_ready(self, work: Work, is_ready: bool, now: float) -> None:
        """Note whether all pods of an admitted work are there; those that were, and are not, have time to recover."""
        if is_ready == work.is_ready:
            return
        work.is_ready = is_ready
        if is_ready:
            work.was_ready, work.ready_by = True, None
            self.unready.pop(work.key, None)
            self.settling.wake_all()  # whoever waits for the others to be ready
            return
        self.unready[work.key] = work
        settings = self._settings.pods_ready
        if settings is not None and settings.recovery_timeout_seconds is not None:
            self._expect_ready(work, now + settings.recovery_timeout_seconds)

    # Time.

    def pass_time(self, now: float) -> None:
        """Act on what is due: backoffs that end, pods that took too long, works that ran for too long."""
        for key in list(self.deadlines.due(now)):
            work = self.works.get(key)
            if work is None:
                continue
            if work.stage is Stage.BACKOFF and work.requeue_at is not None and work.requeue_at <= now:
                self.enter(work, now)
            elif work.stage is Stage.ADMITTED and work.stop_by is not None and work.stop_by <= now:
                work.past_seconds = 0.0
                self.deactivate(work, "MaximumExecutionTimeExceeded", "exceeding the maximum execution time", now)
            elif work.stage is Stage.ADMITTED and work.ready_by is not None and work.ready_by <= now:
                self._take_too_long(work, now)

    def _take_too_long(self, work: Work, now: float) -> None:
        settings = self._settings.pods_ready
        assert settings is not None
        work.requeue_count += 1
        if settings.backoff_limit is not None and work.requeue_count > settings.backoff_limit:
            cause = "exceeding the maximum number of re-queuing retries"
            self.deactivate(work, "RequeuingLimitExceeded", cause, now)
            return
        work.requeue_at = now + settings.backoff_seconds(work.requeue_count)
        self.evict(work, Eviction(PODS_READY_TIMEOUT, f"Exceeded the PodsReady timeout {work.key}", now))

    def change_queues(self, structure: Structure, local_queues: Iterable[LocalQueue], now: float) -> None:
        """Go on with other queues: nobody loses what it holds, and who waits looks for its line anew."""
        self.admission.restructure(structure, local_queues)
        self.settling = Settling(structure)
        for work in list(self.works.values()):
            if work.stage in (Stage.WAITING, Stage.OUTSIDE):
                self.enter(work, now)

    # Going.

    def preempt(self, found: Preempted, now: float) -> None:
        work, preemptor = self.works[found.workload], self.works[found.preemptor]
        message = preemption_message(preemptor.workload, found, self.admission)
        self.evict(work, Eviction(found.reason, message, now, preemptor=preemptor.key))

    def deactivate(self, work: Work, cause: str, message: str, now: float) -> None:
        """Stop a work, and do not try it again until somebody asks for it."""
        work.is_deactivated = True
        work.requeue_count, work.requeue_at = 0, None
        self.evict(work, Eviction(f"{DEACTIVATED}DueTo{cause}", f"The workload is deactivated due to {message}", now))

    def evict(self, work: Work, eviction: Eviction) -> None:
        """Tell a work to stop; it holds its quota until its pods are gone."""
        if work.stage is Stage.LEAVING:
            return
        if work.stage is Stage.ADMITTED and not work.is_deactivated:
            work.past_seconds += max(0.0, eviction.at - work.admitted_at)
        work.outdated_checks = work.queued
        self.decisions.append(Suspend(work.key, eviction.reason, eviction.message, eviction.preemptor))
        self._leave(work, eviction)

    def _leave(self, work: Work, eviction: Eviction) -> None:
        holder = self.admission.holder(work.key)
        if holder is not None:
            holder.is_evicted = True
        work.eviction = eviction
        work.ready_by = work.stop_by = None
        self.unready.pop(work.key, None)
        self.leaving[work.key] = work
        self._move(work, Stage.LEAVING)
        work.stopping.clear()
        self.say(work, Words(eviction.reason, eviction.message))

    def complete_evictions(self, gone: Iterable[Work], now: float) -> None:
        """The pods of these works are gone: their quota is free, and they wait again."""
        works = list(gone)
        self.admission.finish([work.key for work in works])
        for work in works:
            del self.leaving[work.key]
            work.pod_sets = ()
            self.enter(work, now)

    def finish(self, work: Work) -> None:
        """A work is done: what it held is free."""
        self.admission.finish([work.key])
        self.unready.pop(work.key, None)
        self.leaving.pop(work.key, None)
        self._move(work, Stage.DONE)

    def forget(self, work: Work) -> None:
        """A work is gone from the world."""
        self.finish(work)
        del self.works[work.key]
        self.moved.pop(work.key, None)
        self.spoken_of.pop(work.key, None)

    def _move(self, work: Work, stage: Stage) -> None:
        if work.stage is not stage:
            work.stage = stage
            self.moved[work.key] = work
