"""What gangs and pods of shared queues ask for and hold, as the jobs that shares are decided on.

A job is worked out from the facts of the state and from the turns that its members have now, from nothing else.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mooring.actions.gangs.members import NO_RANK
from mooring.actions.shares.demands import JobDemand, Role
from mooring.actions.shares.family import Family
from mooring.actions.shares.resources import column_amounts
from mooring.engine.queue.parked import Turn
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.engine.queue.shared import SharedQueues
from mooring.model.api.meta import timestamp_seconds
from mooring.model.gangs.gang import Gang, Stage
from mooring.model.keys import GangKey, PodKey
from mooring.model.priorities import NEVER, is_critical, is_preemptible
from mooring.model.queued.yunikorn_placement import NOBODY, User
from mooring.model.values.requests import PODS
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.pods import UNBOUND, PodRecord

TASK_PRIORITY = "volcano.sh/task-priority"
"""An annotation of pods: how important one is among those of its own gang."""

RoleKey = tuple[str, str, int]
"""Part of the gang, role there, shape."""


@dataclass
class SharedJob:
    """A gang, or a pod by itself, of a shared queue."""

    family: Family
    key: str
    queue: str
    priority: int
    created: float
    root: GangRecord | None = None
    gang: GangEntry | None = None
    """Set while it is not whole."""
    spares: list[Entry] = field(default_factory=list)
    """Members that wait by themselves, in their order: the whole job of a single pod, what a gang can grow by."""
    members: dict[RoleKey, list[PodRecord]] = field(default_factory=dict)
    """All that run or may be tried now, by role."""
    application: str = ""
    user: User = NOBODY
    leaving: list[PodRecord] = field(default_factory=list)
    """Those that still run, and are being evicted."""
    takes_turns: bool = False
    """Whether its members are tried one by one in their order, as Volcano does, not all that it needs at once."""

    @property
    def stage(self) -> Stage | None:
        return self.root.gang.stage if self.root is not None and self.root.gang is not None else None

    @property
    def is_expected(self) -> bool:
        """Whether its pods are yet to be made, or are being made: what it needs counts all the same, as in Volcano."""
        return self.family.expects_pods and self.stage in (Stage.OUTSIDE, Stage.LET_IN)

    @property
    def min_resources(self) -> dict[str, int]:
        """What its group says that it needs to be let in."""
        given = self.root.gang.min_resources if self.root is not None and self.root.gang is not None else None
        return column_amounts(given)

    @property
    def first(self) -> PodRecord | None:
        """One of its pods; None if it has none yet."""
        return next((record for records in (*self.members.values(), self.leaving) for record in records), None)

    @property
    def waiting(self) -> list[Entry]:
        return [*(self.gang.entries.values() if self.gang is not None else ()), *self.spares]

    def is_best_effort(self, record: PodRecord) -> bool:
        """Whether a pod asks for nothing that its queue counts, but a place."""
        return self.family.is_best_effort(record)

    def waits(self, entries: Iterable[Entry]) -> bool:
        """Whether all of these still wait: none has been set aside after a fault."""
        waiting = {entry.record.key for entry in self.waiting}
        return all(entry.record.key in waiting for entry in entries)

    def _turns(self) -> tuple[int, ...]:
        """The roles of those that wait and ask for something, in their order; nothing if all are alike."""
        asking = {
            index: found for index, found in enumerate(self.members.values()) if not self.is_best_effort(found[0])
        }
        if not self.takes_turns or len(asking) < 2:
            return ()
        role_of = {record.key: index for index, found in asking.items() for record in found}
        waiting = [entry for entry in self.waiting if entry.record.key in role_of]
        return tuple(role_of[entry.record.key] for entry in in_turn(waiting, self.root))

    def demand(self, cluster: Cluster, *, is_let_in: bool = True) -> JobDemand:
        """The job as shares see it; whether it was let in counts only for one that waits and says what it needs."""
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
            kind = f"{part_key}/{role_name}"
            request = {**self.family.requests(cluster, records[0]), PODS: 1}
            roles.append(Role(request, len(records), owed, held, kind))
        records = [record for found in self.members.values() for record in found]
        if not self.waiting:
            minimum = min(minimum, len(records))  # what runs of a gang in part is held all the same
        starts = [timestamp_seconds(record.pod.status.start_time) for record in records if record.row != UNBOUND]
        known = [start for start in starts if start is not None]
        return JobDemand(
            key=self.key,
            queue=self.queue,
            roles=tuple(roles),
            min_members=minimum,
            turns=self._turns(),
            priority=self.priority,
            created=self.created,
            started=min(known, default=None),
            application=self.application,
            user=self.user.name if self.application else "",
            groups=self.user.groups,
            min_resources=self.min_resources,
            is_enqueued=is_let_in or not self.min_resources or any(role.held for role in roles),
            leaving=_sum(self.family.requests(cluster, record) for record in self.leaving),
            is_firm=not may_go or not all(is_preemptible(record.pod) for record in records),
            is_preemptible=may_go and all(_may_be_evicted(record) for record in records),
            takes_from_nobody=any(entry.record.pod.spec.preemption_policy == NEVER for entry in self.waiting),
        )


def _may_be_evicted(record: PodRecord) -> bool:
    """Who is nominated to a place does not run there, and cannot be evicted from it; nor can what the cluster needs."""
    return is_preemptible(record.pod) and not is_critical(record.pod) and not record.nominated


def _sum(requests: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found = Counter[str]()
    for amounts in requests:
        found.update({**amounts, PODS: 1})
    return dict(found)


def turns_by_job(cluster: Cluster, turns: Iterable[Turn]) -> dict[str, list[Turn]]:
    """Whose turns these are: the outermost gang's, or the pod's own."""
    found: dict[str, list[Turn]] = {}
    for turn in turns:
        if isinstance(turn, GangEntry):
            key: str = turn.root.key
        else:
            part = cluster.gangs.of(turn.record.key)
            key = turn.record.key if part is None else cluster.gangs.root_of(part).key
        found.setdefault(key, []).append(turn)
    return found


def shared_jobs(cluster: Cluster, turns: Iterable[Turn], family: Family, shared: SharedQueues) -> dict[str, SharedJob]:
    """Every job of a family's queues that runs, or whose turn it may be now."""
    by_job = turns_by_job(cluster, turns)
    jobs: dict[str, SharedJob] = {}
    for key in dict.fromkeys([*by_job, *cluster.gangs.records, *cluster.pods.records]):
        job = shared_job(cluster, key, by_job.get(key, ()), family, shared)
        if job is not None:
            jobs[key] = job
    return jobs


def shared_job(
    cluster: Cluster, key: str, turns: Sequence[Turn], family: Family, shared: SharedQueues
) -> SharedJob | None:
    """The job of this key; None if no queue of the family has it, or nothing of it runs, has a turn or is expected."""
    root = cluster.gangs.records.get(GangKey(key))
    if root is None:
        record = cluster.pods.records.get(PodKey(key))
        if record is None or key in cluster.gangs.of_pod:
            return None
        queue = shared.of_pod(cluster, record)
    else:
        queue = shared.of_gang(cluster, root)
    if queue is None or queue.family is not family:
        return None
    if root is None:
        assert record is not None
        job: SharedJob | None = _pod_job(cluster, record, turns, family, queue.name)
    else:
        job = _gang_job(cluster, root, turns, family, queue.name)
    return job if job is not None and (job.members or job.leaving or job.is_expected) else None


def _pod_job(cluster: Cluster, record: PodRecord, turns: Sequence[Turn], family: Family, queue: str) -> SharedJob:
    created = timestamp_seconds(record.pod.metadata.creation_timestamp)
    job = SharedJob(family, record.key, queue, record.priority, created or 0.0)
    job.application, job.user = family.application(record.pod)
    job.spares = [turn for turn in turns if isinstance(turn, Entry)]
    if created is None and job.spares:
        job.created = job.spares[0].queued_at
    if turns or _holds(record):
        job.members[role_key(cluster, record)] = [record]
    elif record.row != UNBOUND:
        job.leaving.append(record)
    return job


def _gang_job(
    cluster: Cluster, root: GangRecord, turns: Sequence[Turn], family: Family, queue: str
) -> SharedJob | None:
    table = cluster.gangs
    if root.gang is None or table.root_of(root) is not root:
        return None
    job = SharedJob(family, root.key, queue, 0, root.gang.created or 0.0, root)
    job.takes_turns = family.takes_turns and not root.gang.of_gangs
    waiting: dict[PodKey, Entry] = {}
    for turn in turns:
        if isinstance(turn, GangEntry):
            job.gang = turn
            job.created = turn.queued_at
            waiting.update(turn.entries)
        else:
            job.spares.append(turn)
            waiting[turn.record.key] = turn
    job.spares = in_turn(job.spares, root)
    for part in table.parts_of(root):
        for key, record in part.members.items():
            if _holds(record) or key in waiting:
                job.members.setdefault(role_key(cluster, record), []).append(record)
            elif record.row != UNBOUND:
                job.leaving.append(record)
    job.priority = _gang_priority(root.gang, job.members)
    first = next((record for records in job.members.values() for record in records), None)
    if first is not None:
        job.application, job.user = family.application(first.pod)
    return job


def _holds(record: PodRecord) -> bool:
    """Whether a pod has its place and stays: it runs there, or room is being made for it."""
    return record.row != UNBOUND and record.leaving is None and not record.shape.terminating


def _gang_priority(gang: Gang, members: Mapping[RoleKey, Sequence[PodRecord]]) -> int:
    if gang.priority is not None:
        return gang.priority
    return max((record.priority for records in members.values() for record in records), default=0)


def in_turn(entries: Iterable[Entry], root: GangRecord | None) -> list[Entry]:
    """Members in the order in which Volcano tries them: the more important first, then by index, age and UID."""
    ranks = root.ranks if root is not None else {}

    def key(entry: Entry) -> tuple[int, int, float, str, int, int]:
        metadata, rank = entry.record.pod.metadata, ranks.get(entry.record.key, NO_RANK)
        index = NO_RANK if _is_short_name(metadata.name, rank) else rank
        age = timestamp_seconds(metadata.creation_timestamp) or 0.0
        return (-_task_priority(entry.record), index, age, metadata.uid or "", rank, entry.arrival)

    return sorted(entries, key=key)


def _is_short_name(name: str, rank: int) -> bool:
    """Whether a rank is only the end of a name of two parts; Volcano reads an index from `job-task-index` alone."""
    first, _, last = name.partition("-")
    return bool(first) and last.isdecimal() and int(last) == rank


def _task_priority(record: PodRecord) -> int:
    given = (record.pod.metadata.annotations or {}).get(TASK_PRIORITY, "")
    return int(given) if given.removeprefix("-").isdecimal() and given.isascii() else record.priority


def role_key(cluster: Cluster, record: PodRecord) -> RoleKey:
    part = cluster.gangs.of(record.key)
    return ("", "", record.shape.id) if part is None else (part.key, part.roles[record.key], record.shape.id)
