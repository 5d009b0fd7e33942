"""The shares of a cluster's queues, kept up to date from what changed since the last look.

Everything here is worked out from facts of the state: a job whose pods or gang changed is looked at again, all others
stay as they are. So what is kept always equals what would be found from nothing, after a rollback as after a restart.
What was let in and what queues had in the past is in the state (`state/shares.py`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from mooring.actions.shares.family import Family
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.shared_jobs import SharedJob, shared_job, turns_by_job
from mooring.actions.shares.sharing import Sharing
from mooring.engine.queue.parked import Turn
from mooring.engine.queue.shared import SharedQueues
from mooring.model.gangs.gang import Stage
from mooring.model.keys import GangKey, PodKey
from mooring.model.values.requests import PODS
from mooring.state.amounts import LARGEST_SUM, exact_sum
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord


class SharedJobs:
    """All jobs of shared queues of one cluster, and how the queues stand."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ShareSettings,
        family: Family,
        shared: SharedQueues,
        is_ours: Callable[[Cluster, GangRecord], bool] = lambda cluster, root: True,
    ) -> None:
        """`is_ours` tells of a gang that waits to be let in whether that is for us to decide."""
        self.cluster, self._family, self._shared, self._is_ours = cluster, family, shared, is_ours
        self.jobs: dict[str, SharedJob] = {}
        self.refused: dict[str, str] = {}
        """Why jobs can never have a turn as things are, by key: these are not in the cache."""
        queues, total = family.queues(cluster), total_of(cluster, family.parts)
        self.sharing = Sharing(queues, total, settings, log=cluster.log, parts=family.parts)
        self._versions = self._current_versions()
        self._with_turns: set[str] = set()
        self.times_let_in = 0
        self.is_news = True
        """Whether anything has changed since jobs were last let in: if not, nobody else can be."""
        self._pods, self._gangs = cluster.pods.watch(), cluster.gangs.watch()
        self._pods.update(cluster.pods.records)
        self._gangs.update(cluster.gangs.records)
        self._gone = cluster.shares.jobs_let_in(family.name)
        """Jobs that may be gone by now, to be forgotten."""

    def follow(self, turns: Sequence[Turn], now: float) -> dict[str, SharedJob]:
        """Take in what changed, and who may have a turn now. Returns the jobs whose turns these are, in their order."""
        self.sharing.pass_time(now)
        by_job = turns_by_job(self.cluster, turns)
        changed = self._changed()
        if turns:  # without any, nobody is asked how much those who wait ask for
            changed |= self._with_turns.union(by_job)
            self._with_turns = set(by_job)
        before = self._versions
        changed |= self._follow_queues_and_nodes()
        changed |= self._create_queues(changed)
        self.is_news = self.is_news or bool(changed) or before != self._versions
        for key in sorted(changed):
            self._look_at(key, by_job.get(key, ()))
        return {key: self.jobs[key] for key in by_job if key in self.jobs}

    def end(self) -> None:
        """There is nothing to share any more: changes are no longer collected."""
        self.cluster.pods.unwatch(self._pods)
        self.cluster.gangs.unwatch(self._gangs)

    def let_in(self) -> None:
        """Let jobs in that wait for it, as far as there will be room for them."""
        self.is_news = False
        self.times_let_in += 1
        if not self.sharing.cache.outside:
            return
        factor = self.sharing.settings.overcommit_factor
        idle = None if factor is None else idle_of(self.cluster, factor)
        for key in self.sharing.enqueue_waiting(idle):
            self.cluster.shares.let_in(self._family.name, key)

    def why_outside(self, key: str) -> str | None:
        """Why a job may have nothing yet; empty if it was let in, None if there is no such job."""
        if key in self.refused:
            return self.refused[key]
        return self.sharing.why_outside(key) if key in self.jobs else None

    def _changed(self) -> set[str]:
        """The jobs of which something came, went or was described anew."""
        table = self.cluster.gangs
        keys = set[str](self._gangs)
        for key in self._gangs:
            record = table.records.get(key)
            if record is not None:
                keys.add(table.root_of(record).key)
            # What is inside a gang that came or went is now part of a larger job, or a job of its own.
            keys.update(_all_inside(table.children, key))
        keys |= self._pods | self._gone
        self._gone = set()
        self._pods.clear()
        self._gangs.clear()
        return keys

    def _follow_queues_and_nodes(self) -> set[str]:
        """See whether there are other queues, or more or less to share; tell which jobs to look at because of it."""
        before, self._versions = self._versions, self._current_versions()
        if before == self._versions:
            return set()
        total, queues = total_of(self.cluster, self._family.parts), self._family.queues(self.cluster)
        if total != self.sharing.total:
            self.sharing.set_total(total)
        if tuple(queues) != self.sharing.queues:
            self.sharing = self.sharing.with_queues(queues)
            return {*self.jobs, *self.cluster.gangs.records}
        # Pods may have other shapes now, which tell the roles of a job apart.
        return {*self.jobs} if before[2] != self._versions[2] else set()

    def _create_queues(self, changed: Iterable[str]) -> set[str]:
        """Create the queues that placement rules want for pods that came; tell which jobs to look at because of it."""
        found = (self.cluster.pods.records.get(PodKey(key)) for key in changed)
        pods = (record.pod for record in found if record is not None)
        if self._family.created_queues(self.cluster, pods) <= self.sharing.cache.tree.row_of.keys():
            return set()
        queues = self._family.queues(self.cluster)
        if tuple(queues) == self.sharing.queues:
            return set()
        self.sharing = self.sharing.with_queues(queues)
        return {*self.jobs, *self.cluster.gangs.records}

    def _current_versions(self) -> tuple[int, int, int]:
        cluster = self.cluster
        return cluster.related.version, cluster.nodes_version, cluster.shapes_version

    def _look_at(self, key: str, turns: Sequence[Turn]) -> None:
        job = shared_job(self.cluster, key, turns, self._family, self._shared)
        self.refused.pop(key, None)
        if job is not None and not job.members and not job.leaving and self._is_anothers(job):
            job = None
        if job is None:
            self.cluster.shares.forget(self._family.name, key)
            self.jobs.pop(key, None)
            self.sharing.forget(key)
            return
        self.jobs[key] = job
        was_let_in = self.cluster.shares.is_let_in(self._family.name, key)
        is_let_in = was_let_in or not self.sharing.settings.enqueues or job.stage in (Stage.LET_IN, Stage.STARTED)
        why = self.sharing.put(job.demand(self.cluster, is_let_in=is_let_in))
        if why:
            better = "" if job.first is None else self._family.why_refused(job.queue, job.first.pod)
            self.refused[key] = better or why

    def _is_anothers(self, job: SharedJob) -> bool:
        """Whether it is for another scheduler to let a job in: until it does, it needs nothing."""
        return job.stage is Stage.OUTSIDE and job.root is not None and not self._is_ours(self.cluster, job.root)


def total_of(cluster: Cluster, parts: Mapping[str, int] | None = None) -> dict[str, int]:
    """What all nodes have: of each resource, and places for pods, which count in shares like a resource.

    `parts`: of which resources parts of one are counted, and how many parts one has.
    """
    nodes, parts = cluster.rows(), parts or {}
    names = [name for name in cluster.nodes.resources.values if name]
    amounts = {name: min(exact_sum(nodes.allocatable(name)) * parts.get(name, 1), LARGEST_SUM) for name in names}
    return {**amounts, PODS: int(nodes.allowed_pods.sum())}


def idle_of(cluster: Cluster, factor: float) -> dict[str, int]:
    """So many times what all nodes have, without what runs there."""
    nodes = cluster.rows()
    used = {name: exact_sum(nodes.requested(name)) for name in cluster.nodes.resources.values if name}
    return {name: int(total * factor) - used.get(name, 0) for name, total in total_of(cluster).items()}


def _all_inside(children: Mapping[GangKey, Iterable[GangKey]], key: GangKey) -> Iterable[GangKey]:
    for child in children.get(key, ()):
        yield child
        yield from _all_inside(children, child)
