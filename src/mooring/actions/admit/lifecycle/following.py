"""Following the world: what it says of queues and works since we last looked, brought to the desk."""

from mooring.actions.admit.lifecycle.lifecycle import Desk
from mooring.actions.admit.lifecycle.stages import (
    CLUSTER_QUEUE_STOPPED,
    DEACTIVATED,
    LOCAL_QUEUE_STOPPED,
    Eviction,
    Stage,
    Work,
)
from mooring.actions.admit.quota.structure import Structure
from mooring.actions.admit.windows.windows import Overrides, QuotaSchedule, apply
from mooring.model.api.kueue import HOLD, HOLD_AND_DRAIN, Workload
from mooring.model.api.kueue_workload import FINISHED
from mooring.model.queued.workloads import QueuedWork
from mooring.state.tenants import TenantTable

_NOT_HOLDING = frozenset({Stage.OUTSIDE, Stage.BACKOFF, Stage.WAITING})


def make_structure(tenants: TenantTable, overrides: Overrides | None = None) -> Structure:
    """The queues as they are now, compiled; with other quotas where windows give them some."""
    queues = apply(overrides or {}, tenants.cluster_queues.values())
    return Structure(queues, tenants.cohorts.values(), tenants.flavors.values(), tenants.checks.values())


class Following:
    """How far the world has been followed."""

    def __init__(self, tenants: TenantTable, desk: Desk, schedule: QuotaSchedule, now: float) -> None:
        """The desk has the queues as they are, and as the schedule makes them now."""
        self._tenants = tenants
        self._desk = desk
        self._schedule = schedule
        self._version = tenants.version
        self._overrides = self._open_windows(now)
        self._position = 0

    def catch_up(self, now: float) -> list[Work]:
        """Take in what changed; the works to look at, because they or their pods are not what they were."""
        tenants, desk = self._tenants, self._desk
        overrides = self._open_windows(now)
        if tenants.version != self._version or overrides != self._overrides:
            self._version, self._overrides = tenants.version, overrides
            desk.change_queues(make_structure(tenants, overrides), tenants.local_queues.values(), now)
            for work in desk.works.values():
                self._obey_stop_policies(work, now)
        touched = tenants.touched(self._position)
        if touched is None:
            touched = list(dict.fromkeys((*desk.works, *tenants.works)))
        self._position = tenants.position
        found = [self._follow(key, now) for key in touched]
        return [work for work in found if work is not None]

    def _open_windows(self, now: float) -> Overrides:
        """What the open windows say of queues that are there."""
        found = self._schedule.overrides(now)
        return {key: override for key, override in found.items() if key.queue in self._tenants.cluster_queues}

    def skip(self) -> None:
        """What was touched since then, we touched ourselves."""
        self._position = self._tenants.position

    def _follow(self, key: str, now: float) -> Work | None:
        queued, work = self._tenants.works.get(key), self._desk.works.get(key)
        if queued is None:
            if work is not None:
                self._desk.forget(work)
            return None
        if work is None or _identity(work.workload) != _identity(queued.workload):
            if work is not None:
                self._desk.forget(work)  # another one under the same name
            work = Work(queued)
            self._desk.take_in(work, now)
            self._obey_stop_policies(work, now)
        elif work.queued is not queued:
            before, work.queued = work.queued, queued
            self._update(work, before, now)
        return work

    def _obey_stop_policies(self, work: Work, now: float) -> None:
        """Evict a work from a queue that is drained; one that has not started yet, from any that is stopped."""
        desk, workload = self._desk, work.workload
        holder = desk.admission.holder(work.key)
        if holder is None or work.stage not in (Stage.RESERVED, Stage.ADMITTED):
            return
        name = holder.applicant.queue_name
        has_started = work.stage is Stage.ADMITTED
        queue = desk.admission.structure.queues.get(name)
        local = desk.admission.local_queue(workload)
        policy = local.spec.stop_policy if local is not None else None
        if policy == HOLD_AND_DRAIN or (policy == HOLD and not has_started):
            said = "The LocalQueue is stopped" if has_started else f"LocalQueue {workload.spec.queue_name} is stopped"
            desk.evict(work, Eviction(LOCAL_QUEUE_STOPPED, said, now))
        elif queue is not None and (queue.is_drained or (queue.is_stopped and not has_started)):
            said = "The ClusterQueue is stopped" if has_started else f"ClusterQueue {name} is stopped"
            desk.evict(work, Eviction(CLUSTER_QUEUE_STOPPED, said, now))

    def _update(self, work: Work, before: QueuedWork, now: float) -> None:
        """A work is not what it was: act on what differs."""
        desk, workload, old = self._desk, work.workload, before.workload
        if workload.condition(FINISHED) is not None:
            desk.finish(work)
        elif work.stage is Stage.DONE:
            return
        elif not workload.spec.active:
            work.is_deactivated = False  # the world says so itself now
            if work.stage in _NOT_HOLDING:
                desk.enter(work, now)
            else:
                desk.evict(work, Eviction(DEACTIVATED, "The workload is deactivated", now))
        elif work.stage in _NOT_HOLDING:
            if old.status.admission is None and workload.status.admission is not None:
                desk.admission.finish([work.key])
                desk.take_in_holder(work, now)
            elif old.spec != workload.spec:
                desk.enter(work, now)
        else:
            holder = desk.admission.holder(work.key)
            if holder is not None:
                holder.applicant.priority = workload.spec.priority or 0
            if work.stage is not Stage.LEAVING:
                desk.follow_checks(work, now)


def _identity(workload: Workload) -> tuple[str, ...]:
    """What tells a workload from an earlier one of its name: its owners, whose it is made for, or else itself."""
    owners = workload.metadata.owner_references or ()
    return tuple(owner.uid for owner in owners) or (workload.metadata.uid,)
