"""A cluster as KAI's solver sees it: nodes with what other pods leave of them, queues, and jobs of KAI's queues."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mooring.actions.shares.action import Share
from mooring.actions.shares.demands import JobDemand, QueueSpec
from mooring.actions.shares.kai.queues import GPU, kai_amounts
from mooring.actions.shares.kai.solver.jobs import NOTHING, ONE_GPU, Amount, Job, Node, Task
from mooring.actions.shares.kai.solver.rounds import open_session
from mooring.actions.shares.kai.solver.session import Session
from mooring.actions.shares.members import members_of_turn
from mooring.actions.shares.shared_jobs import SharedJob
from mooring.engine.disruption import DO_NOT_DISRUPT, as_created
from mooring.engine.evaluate import evaluate
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Entry
from mooring.model.devices.cards import Sharing
from mooring.model.keys import PodKey
from mooring.model.values.requests import CPU, MEMORY
from mooring.state.cluster import Cluster
from mooring.state.plans import owner_of
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.shapes import Shape

MOST_CANDIDATES = 16
"""So many jobs may be moved for another one, as with KAI's default."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What the solver is given, and which pods its tasks stand for."""

    nodes: Sequence[Node]
    queues: Sequence[QueueSpec]
    jobs: Sequence[Job]
    waiting: Mapping[str, Sequence[Entry]]
    """By job, the pods that would be placed next."""

    def open(self) -> Session:
        return open_session(self.nodes, self.queues, self.jobs)


class Drawing:
    """Draws the picture of a cluster, in the middle of a cycle."""

    def __init__(self, cluster: Cluster, share: Share, profiles: Mapping[str, Profile]) -> None:
        self._cluster, self._share, self._profiles = cluster, share, profiles
        self._nodes_of_shape: dict[tuple[str, int], frozenset[str]] = {}

    def picture(self) -> Picture | None:
        """The picture; None if nothing waits in it that others could move for."""
        waiting = {job.key: entries for job in self._share.unplaced if (entries := self._next_pods(job))}
        if not waiting:
            return None
        made = (self._job(found, waiting.get(key, ())) for key, found in self._share.jobs.items())
        jobs = [job for job in made if job is not None]
        taken: dict[str, Amount] = {}
        for task in (task for job in jobs for task in job.tasks if task.node):
            taken[task.node] = taken.get(task.node, NOTHING).plus(task.amount)
        specs = self._share.family.queues(self._cluster)
        return Picture([*self._nodes(taken)], specs, self._with_candidates(jobs), waiting)

    def _nodes(self, taken: Mapping[str, Amount]) -> Iterator[Node]:
        """The nodes, with what pods other than the jobs' leave of them."""
        rows = self._cluster.rows()
        barred = {self._cluster.nodes.name(row) for row in self._cluster.barred_rows}
        columns = np.stack([rows.free(GPU) * ONE_GPU, rows.free(CPU), rows.free(MEMORY)], axis=1).tolist()
        for name, free in zip(rows.names, columns, strict=True):
            left = Amount(*free).plus(taken.get(name, NOTHING))
            yield Node(name, NOTHING if name in barred else Amount(*(max(0, amount) for amount in left)))

    def _next_pods(self, job: SharedJob) -> list[Entry]:
        """The pods of a job that are placed next, if any are, and others may be moved for them."""
        sharing = self._share.sharing
        demand = self._demand(job)
        if sharing is None or demand is None or demand.takes_from_nobody or wants_a_domain(job):
            return []
        if sharing.is_closed(job.queue) or not sharing.is_let_in(job.key):
            return []
        entries = members_of_turn(self._cluster, job, sharing.wanted(job.key))
        return entries if all(_is_plain(entry.record.shape) for entry in entries) else []

    def _job(self, found: SharedJob, waiting: Sequence[Entry]) -> Job | None:
        """A job with the tasks that run, and those that would be placed next; None if it has neither."""
        demand = self._demand(found)
        members = [record for records in found.members.values() for record in records]
        running = [record for record in members if record.row != UNBOUND and not record.nominated]
        if demand is None or not (running or waiting) or not all(_is_plain(record.shape) for record in running):
            return None
        tasks = [self._task(record, record.node_name) for record in running]
        tasks += [self._task(entry.record, "") for entry in waiting]
        minimum = len(tasks) if found.gang is not None or _goes_whole(found) else min(demand.min_members, len(running))
        return Job(
            found.key,
            found.queue,
            tuple(tasks),
            minimum=max(1, minimum),
            priority=found.priority,
            is_preemptible=demand.is_preemptible,
            created=found.created,
        )

    def _task(self, record: PodRecord, node: str) -> Task:
        amounts = kai_amounts(self._cluster, record.shape)
        amount = Amount(amounts.get(GPU, 0), amounts.get(CPU, 0), amounts.get(MEMORY, 0))
        return Task(record.key, amount, node, nodes=self._allowed_nodes(record) | ({node} if node else set()))

    def _allowed_nodes(self, record: PodRecord) -> frozenset[str]:
        """The nodes that a pod could be on if others made room there."""
        profile = self._profiles.get(record.pod.spec.scheduler_name)
        if profile is None:
            return frozenset()
        cluster = self._cluster
        shape = record.shape if record.row == UNBOUND else cluster.shape_for(as_created(record.pod))
        if (profile.name, shape.id) not in self._nodes_of_shape:
            found = evaluate(profile, cluster, shape)
            names = (
                []
                if found.refused is not None
                else [
                    cluster.nodes.name(row)
                    for position, row in enumerate(found.rows.tolist())
                    if (verdict := found.verdict(position)) is None or not verdict.unresolvable
                ]
            )
            self._nodes_of_shape[profile.name, shape.id] = frozenset(names)
        return self._nodes_of_shape[profile.name, shape.id]

    def _with_candidates(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs, of which at most so many may be moved: those on the nodes with most room."""
        rows = self._cluster.rows()
        room = dict(zip(rows.names, rows.free(GPU).tolist(), strict=True))

        def key(job: Job) -> tuple[int, int, float]:
            return -max(room[task.node] for task in job.tasks if task.node), job.priority, -job.created

        movable = sorted((job for job in jobs if job.is_preemptible and self._is_movable(job)), key=key)
        candidates = {job.uid for job in movable[:MOST_CANDIDATES]}
        return [replace(job, may_move=job.uid in candidates) for job in jobs]

    def _is_movable(self, job: Job) -> bool:
        """Whether all pods of a job come back when they are evicted, and may be evicted for the sake of others."""
        running = [self._cluster.pods.records[PodKey(task.uid)] for task in job.tasks if task.node]
        is_free = not wants_a_domain(self._share.jobs[job.uid])
        return is_free and bool(running) and all(map(self._may_move, running))

    def _may_move(self, record: PodRecord) -> bool:
        annotations = record.pod.metadata.annotations or {}
        return (
            bool(owner_of(record.pod))
            and record.pod.spec.scheduler_name in self._profiles
            and self._cluster.budgets.allows(record.pod)
            and not any(annotations.get(key) == value for key, value in DO_NOT_DISRUPT)
        )

    def _demand(self, job: SharedJob) -> JobDemand | None:
        sharing = self._share.sharing
        known = None if sharing is None else sharing.cache.jobs.get(job.key)
        return None if known is None else known.demand


def _is_plain(shape: Shape) -> bool:
    """Whether a pod asks for no devices but whole GPUs: of others the solver does not see which are free."""
    request = shape.card_request
    return not shape.claims and (request is None or not request.asks.get(Sharing.COUNTED))


def wants_a_domain(job: SharedJob) -> bool:
    """Whether a gang, or a part of it, asks for a place in the topology, which the solver does not see."""
    gang = None if job.root is None else job.root.gang
    return gang is not None and (gang.has_topology_request or gang.of_gangs)


def _goes_whole(job: SharedJob) -> bool:
    """Whether the loss of any member stops all."""
    gang = None if job.root is None else job.root.gang
    return gang is not None and gang.restarts_whole
