"""What gangs and pods of shared queues ask for and hold, as the jobs that shares are decided on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mooring.actions.volcano.demands import JobDemand, Role
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.engine.queue.shared import QUEUE_NAME, gang_queue, share_queue
from mooring.model.api.meta import timestamp_seconds
from mooring.model.loading.priorities import is_preemptible
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.pods import UNBOUND, PodRecord

RoleKey = tuple[str, str, int]
"""Part of the gang, role there, shape."""


@dataclass
class SharedJob:
    """A gang, or a pod by itself, of a shared queue."""

    key: str
    queue: str
    priority: int
    created: float
    root: GangRecord | None = None
    gang: GangEntry | None = None
    """Set while it is not whole."""
    spares: list[Entry] = field(default_factory=list)
    """Members that wait by themselves: the whole job of a single pod, what a gang can grow by."""
    members: dict[RoleKey, list[PodRecord]] = field(default_factory=dict)
    """All that run or may be tried now, by role."""

    @property
    def waiting(self) -> list[Entry]:
        return [*(self.gang.entries.values() if self.gang is not None else ()), *self.spares]

    def demand(self, cluster: Cluster) -> JobDemand:
        """The job as shares see it."""
        minimum, may_go = 1, True
        minimum_of: dict[tuple[str, str], int] = {}
        if self.root is not None and self.root.gang is not None:
            may_go = self.root.gang.preemptible
            parts = [part for part in cluster.gangs.parts_of(self.root) if part.gang is not None]
            minimum = sum(max(0, part.gang.minimum - len(part.done)) for part in parts if part.gang is not None)
            minimum_of = {
                (part.key, role.name): max(0, role.minimum - part.by_role(())[role.name])
                for part in parts
                if part.gang is not None
                for role in part.gang.roles
            }
        roles: list[Role] = []
        for (part_key, role_name, _), records in self.members.items():
            owed = min(minimum_of.get((part_key, role_name), 0), len(records))
            minimum_of[part_key, role_name] = minimum_of.get((part_key, role_name), 0) - owed
            held = sum(record.row != UNBOUND for record in records)
            roles.append(Role(dict(records[0].shape.requests), len(records), owed, held))
        records = [record for found in self.members.values() for record in found]
        starts = [timestamp_seconds(record.pod.status.start_time) for record in records if record.row != UNBOUND]
        known = [start for start in starts if start is not None]
        return JobDemand(
            key=self.key,
            queue=self.queue,
            roles=tuple(roles),
            min_members=minimum,
            priority=self.priority,
            created=self.created,
            started=min(known, default=None),
            is_preemptible=may_go and all(is_preemptible(record.pod) for record in records),
        )


def shared_jobs(cluster: Cluster, turns: Sequence[Entry | GangEntry]) -> dict[str, SharedJob]:
    """Every job of a shared queue that runs, or whose turn it may be now."""
    jobs: dict[str, SharedJob] = {}
    for turn in turns:
        if isinstance(turn, GangEntry):
            job = _gang_job(cluster, turn.root, jobs)
            job.gang, job.priority = turn, turn.priority
            job.created = turn.queued_at
        else:
            part = cluster.gangs.of(turn.record.key)
            if part is not None:
                job = _gang_job(cluster, cluster.gangs.root_of(part), jobs)
            else:
                queue = share_queue(cluster, turn)
                job = jobs[turn.record.key] = SharedJob(turn.record.key, queue, turn.record.priority, turn.queued_at)
            job.spares.append(turn)
        for entry in turn.entries.values() if isinstance(turn, GangEntry) else [turn]:
            _count(cluster, job, entry.record)
    for root in cluster.gangs.records.values():
        if root.gang is not None and not root.gang.parent and gang_queue(cluster, root):
            bound = [record for part in cluster.gangs.parts_of(root) for record in part.bound()]
            for record in bound:
                _count(cluster, _gang_job(cluster, root, jobs), record)
    for record in cluster.pods.records.values():
        queue = (record.pod.metadata.annotations or {}).get(QUEUE_NAME, "")
        if queue and record.row != UNBOUND and record.key not in cluster.gangs.of_pod:
            job = jobs[record.key] = SharedJob(record.key, queue, record.priority, 0.0)
            _count(cluster, job, record)
    return jobs


def _gang_job(cluster: Cluster, root: GangRecord, jobs: dict[str, SharedJob]) -> SharedJob:
    job = jobs.get(root.key)
    if job is None:
        assert root.gang is not None, "a gang whose turn it is has been declared"
        priority = root.gang.priority
        if priority is None:
            members = (record for part in cluster.gangs.parts_of(root) for record in part.members.values())
            priority = max((record.priority for record in members), default=0)
        job = jobs[root.key] = SharedJob(root.key, gang_queue(cluster, root), priority, root.gang.created or 0.0, root)
    return job


def _count(cluster: Cluster, job: SharedJob, record: PodRecord) -> None:
    job.members.setdefault(role_key(cluster, record), []).append(record)


def role_key(cluster: Cluster, record: PodRecord) -> RoleKey:
    part = cluster.gangs.of(record.key)
    return ("", "", record.shape.id) if part is None else (part.key, part.roles[record.key], record.shape.id)
