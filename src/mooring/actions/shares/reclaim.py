"""The action: what a queue holds beyond its share goes back to one that starves within its own.

It runs for those whom their share allowed more and who found no node. This is not preemption by priority: only who
holds more than it deserves gives back. The room is held for the one it was freed for until it can be bound.
"""

import math
from collections.abc import Sequence

from mooring.actions.gangs.placing import GangPlacer
from mooring.actions.shares.action import Share
from mooring.actions.shares.checks import Refusal
from mooring.actions.shares.members import members_of_turn
from mooring.actions.shares.reclaim_victims import Victim
from mooring.actions.shares.shared_jobs import SharedJob
from mooring.engine.action import Action, Cycle
from mooring.engine.disruption import Forced, check_progress, disrupt, holds_of
from mooring.engine.queue.queue import Entry, Queue
from mooring.engine.verdict import Rejection, Verdict
from mooring.model.decisions import Decision, Wait
from mooring.model.keys import NO_GANG, PodKey
from mooring.state.cluster import Cluster
from mooring.state.plans import Plan, Reason
from mooring.state.pods import UNBOUND, PodRecord


class ForUnplaced(Action):
    """An action for the jobs that found no node; it goes by the cache that `Share` has just kept."""

    def __init__(self, share: Share) -> None:
        self._share = share

    def is_idle(self, cycle: Cycle) -> bool:
        return not self._share.unplaced


class Reclaim(ForUnplaced):
    """The action."""

    def __init__(self, share: Share, placer: GangPlacer) -> None:
        super().__init__(share)
        self._placer = placer

    def run(self, cycle: Cycle) -> list[Decision]:
        decisions: list[Decision] = []
        for job in self._share.unplaced:
            turns = [job.gang] if job.gang is not None else job.spares[:1]
            with cycle.attempt(*turns) as attempt:
                for turn in turns:
                    check_progress(cycle.cluster, turn.turn_name, cycle.now)
                decisions += self._reclaim_for(job, cycle.cluster, cycle.queue, cycle.now)
                attempt.keep()
        return decisions

    def _reclaim_for(self, job: SharedJob, cluster: Cluster, queue: Queue, now: float) -> list[Decision]:
        sharing = self._share.sharing
        entries = [] if sharing is None else members_of_turn(cluster, job, sharing.wanted(job.key))
        if sharing is None or not entries:
            return []
        found = sharing.find_victims(job.key, now, lambda victims: bool(self._rows(job, entries, victims, cluster)))
        if isinstance(found, Refusal):
            return self._try_later(job, queue, found)
        if not found.victims:
            return []
        rows = self._rows(job, entries, found.victims, cluster)
        if not rows:
            return []
        pods = self._pods_of(found.victims)
        nominated = f"gang {job.gang.name}" if job.gang is not None else f"pod {entries[0].record.key}"
        reason = f"Reclaimed by queue {job.queue} for {nominated}"
        gang = job.root.key if job.root is not None else NO_GANG
        plan = Plan(Reason.RECLAIM, holds_of(entries, rows), gang=gang)
        made = disrupt(cluster, queue, pods, Forced(reason, entries[0].record.key), plan)
        if job.gang is not None:
            queue.take(job.gang)
        for entry in entries:
            queue.set_aside(entry)
        for victim in found.victims:
            sharing.release(victim.job, victim.members)
        sharing.allocate(job.key, now=now)
        message = f"room is made for it in the share of queue {job.queue}"
        holds = made.plan.holds if made.plan is not None else ()
        return [*made.decisions, *(Wait(held.key, message, (self._share.family.name,), held.node) for held in holds)]

    def _try_later(self, job: SharedJob, queue: Queue, refusal: Refusal) -> list[Decision]:
        """Have a job tried again when its time comes, and say so."""
        turns = [job.gang] if job.gang is not None else job.spares[:1]
        parked = queue.parked_as(turns[0]) if turns and refusal.again_at < math.inf else None
        if parked is None:
            return []
        parked.again_at = refusal.again_at
        reasons = (*(parked.verdict.reasons if parked.verdict is not None else ()), refusal.message)
        message, plugin = "; ".join(reasons), self._share.family.name
        parked.verdict = Verdict(plugin, Rejection((message,)))
        return [Wait(entry.record.key, message, (plugin,)) for entry in parked.entries]

    def _rows(self, job: SharedJob, entries: Sequence[Entry], victims: Sequence[Victim], cluster: Cluster) -> list[int]:
        """Where the job's next members would go if the victims were gone; nothing if there is no room even then."""
        with cluster.what_if():
            for key in {*_leaving(cluster), *(pod.key for pod in self._pods_of(victims))}:
                cluster.release(key)
            if job.gang is None:
                row = self._placer.batches.choose(cluster, entries[0].profile, entries[0].record.shape)
                return [row] if row >= 0 else []
            if self._placer.try_together(cluster, job.gang, entries) is None:
                return [entry.record.row for entry in entries]
            return []

    def _pods_of(self, victims: Sequence[Victim]) -> list[PodRecord]:
        """The pods that have to go: of each role the last that came."""
        found: dict[PodKey, PodRecord] = {}
        for victim in victims:
            job = self._share.jobs[victim.job]
            for records, count in zip(job.members.values(), victim.members, strict=True):
                running = [record for record in records if record.row != UNBOUND and record.key not in found]
                found.update((record.key, record) for record in running[::-1][:count])
        return list(found.values())


def _leaving(cluster: Cluster) -> set[PodKey]:
    """The pods that leave already for somebody who holds their room: it must not be counted against anybody twice."""
    found = (leaving for _, plan in cluster.plans() for leaving in plan.leaves)
    return {leaving.key for leaving in found if not cluster.is_out_of_the_way(leaving)}
