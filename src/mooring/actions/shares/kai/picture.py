"""A cluster as KAI's solver sees it: some nodes, the queues, and the jobs that wait or may move.

A solution is looked for among few: the jobs that wait first in each queue, the running jobs on the nodes with most
room, and the nodes of these with others that have room. Whatever else runs counts for its node and its queue only.
What one cycle does not find, a later one may.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest, nsmallest
from itertools import islice, zip_longest

from mooring.actions.preempt.pods.eligible import potential_rows
from mooring.actions.shares.action import Share
from mooring.actions.shares.kai.queues import GPU, kai_amounts
from mooring.actions.shares.kai.solver.jobs import NOTHING, ONE_GPU, Amount, Job, Node, Task
from mooring.actions.shares.kai.solver.queues import entitle, read_columns
from mooring.actions.shares.kai.solver.session import Session
from mooring.actions.shares.members import members_of_turn
from mooring.actions.shares.shared_jobs import SharedJob
from mooring.actions.shares.sharing import Sharing
from mooring.engine.disruption import DO_NOT_DISRUPT, again_at, as_created
from mooring.engine.evaluate import evaluate
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Entry
from mooring.model.devices.cards import Sharing as CardSharing
from mooring.model.values.requests import CPU, MEMORY
from mooring.state.cluster import Cluster
from mooring.state.plans import Reason, owner_of
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.remembered import Derived
from mooring.state.shapes import Shape

MOST_MOVABLE = 16
"""So many jobs may be moved for another one, as with KAI's default."""
MOST_WAITING = 16
"""So many jobs of a queue are looked at in a cycle."""
MOST_NODES = 256
"""So many nodes with room are looked at, besides those of jobs that may move."""
NODES_PER_POD = 4
"""Fewer nodes will do for jobs of few pods: so many for each pod that waits, and for each job that may move."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What the solver is given, and which pods wait."""

    session: Session
    waiting: Mapping[str, Sequence[Entry]]
    """By job, the pods that would be placed next."""


def draw_picture(cluster: Cluster, share: Share, profiles: Mapping[str, Profile], now: float) -> Picture | None:
    """Draw the picture of a cluster, in the middle of a cycle; None if nothing waits that others could move for.

    Jobs for which, or of which, a move failed not long ago are left out.
    """
    if share.sharing is None:
        return None
    failed = {
        subject
        for subject, setback in cluster.setbacks.items()
        if setback.reason is Reason.CONSOLIDATION and now < again_at(setback)
    }
    return _Drawing(cluster, share, share.sharing, profiles, failed).draw()


class _Drawing:
    """One picture in the making."""

    def __init__(
        self,
        cluster: Cluster,
        share: Share,
        sharing: Sharing,
        profiles: Mapping[str, Profile],
        failed: Container[str],
    ) -> None:
        self._cluster, self._share, self._profiles = cluster, share, profiles
        self._sharing, self._failed = sharing, failed
        rows = cluster.rows()
        barred = {cluster.nodes.name(row) for row in cluster.barred_rows}
        columns = (rows.free(GPU) * ONE_GPU, rows.free(CPU), rows.free(MEMORY))
        amounts = zip(*(column.tolist() for column in columns), strict=True)
        self._free = {name: Amount(*free) for name, free in zip(rows.names, amounts, strict=True) if name not in barred}
        """By node, what no pod has; a GPU in parts is not among it."""
        self._nodes_of_shape: Derived[tuple[str, int], frozenset[str]] = Derived()

    def draw(self) -> Picture | None:
        waiting = dict(self._waiting())
        if not waiting:
            return None
        asked = dict.fromkeys(self._largest_ask(entries) for entries in waiting.values())
        movable = self._movable(list(asked))
        chosen = {key: self._share.jobs[key] for key in waiting} | {found.key: found for found in movable}
        pods = max(map(len, waiting.values()))
        names = self._name_nodes(chosen.values(), min(MOST_NODES, NODES_PER_POD * (pods + MOST_MOVABLE)))
        jobs = [self._as_job(found, waiting.get(key, ()), names) for key, found in chosen.items()]
        jobs += self._bystanders(names, {task.uid for job in jobs for task in job.tasks})
        cache = self._sharing.cache
        held = {
            row: Amount(*map(int, amounts))
            for row, amounts in enumerate(read_columns(cache.tree, cache.ledger.allocated))
        }
        queues = entitle(cache.tree, cache.shares.deserved)
        return Picture(Session(self._nodes(names, jobs), queues, jobs, held), waiting)

    # Jobs that wait

    def _waiting(self) -> Iterator[tuple[str, list[Entry]]]:
        """The jobs that others could move for: there are enough GPUs in all."""
        free = sum(max(0, amount.gpus) for amount in self._free.values())
        cards = self._cluster.card_holders
        if cards.is_used:  # those in parts have something left to give
            free += ONE_GPU * sum(len(cards.cards_with_pods(row)) for row in self._cluster.rows().index.tolist())
        by_queue = Counter[str]()
        for job in self._share.unplaced:
            if by_queue[job.queue] < MOST_WAITING and (entries := self._next_pods(job)):
                asked = sum(kai_amounts(self._cluster, entry.record.shape).get(GPU, 0) for entry in entries)
                if asked <= free:
                    by_queue[job.queue] += 1
                    yield job.key, entries

    def _next_pods(self, job: SharedJob) -> list[Entry]:
        known = self._sharing.cache.jobs.get(job.key)
        if known is None or not known.demand.is_preemptible or known.demand.takes_from_nobody:
            return []
        if job.key in self._failed or _wants_a_domain(job):
            return []
        if self._sharing.is_closed(job.queue) or not self._sharing.is_let_in(job.key):
            return []
        entries = members_of_turn(self._cluster, job, known.wanted)
        everything = [*(entry.record for entry in entries), *_running(job)]
        return entries if all(_is_plain(record.shape) for record in everything) else []

    # Jobs that may move

    def _largest_ask(self, entries: Iterable[Entry]) -> int:
        return max(kai_amounts(self._cluster, entry.record.shape).get(GPU, 0) for entry in entries)

    def _movable(self, asked: Sequence[int]) -> Iterator[SharedJob]:
        """The jobs that may move: those that make most room for what is asked for first, then those on the nodes with
        most room."""
        room: dict[str, int] = {}
        on_node: dict[str, list[tuple[int, str]]] = {}
        for key, job in self._share.jobs.items():
            for record in (running := _running(job)):
                gpus = kai_amounts(self._cluster, record.shape).get(GPU, 0)
                on_node.setdefault(record.node_name, []).append((gpus, key))
            if running:
                room[key] = max(self._free.get(record.node_name, NOTHING).gpus for record in running)
        sets = [self._making_room(asked_for, on_node) for asked_for in asked]
        by_need = [key for turn in zip_longest(*sets, fillvalue=()) for keys in turn for key in keys]
        by_room = nlargest(4 * MOST_MOVABLE, room, key=lambda key: (room[key], key))
        likely = dict.fromkeys((*by_need, *by_room))
        return islice((job for key in likely if self._may_move(job := self._share.jobs[key])), MOST_MOVABLE)

    def _making_room(self, asked: int, on_node: Mapping[str, Sequence[tuple[int, str]]]) -> list[tuple[str, ...]]:
        """The jobs that would have to leave a node so that one pod that asks for so much fits: the fewest first."""
        found: list[tuple[int, str, tuple[str, ...]]] = []
        for node, jobs in on_node.items():
            short = asked - self._free.get(node, NOTHING).gpus
            leaving: list[str] = []
            for gpus, key in sorted(jobs, key=lambda one: (-one[0], one[1])):
                if short <= 0:
                    break
                if gpus:
                    leaving.append(key)
                    short -= gpus
            if leaving and short <= 0:
                found.append((len(leaving), node, tuple(leaving)))
        return [keys for _, _, keys in nsmallest(MOST_MOVABLE, found)]

    def _may_move(self, job: SharedJob) -> bool:
        """Whether all pods of a job come back when they are evicted, and may be evicted for the sake of others."""
        known = self._sharing.cache.jobs.get(job.key)
        if known is None or not known.demand.is_preemptible or job.key in self._failed or _wants_a_domain(job):
            return False
        return all(_is_plain(record.shape) and self._may_leave(record) for record in _running(job))

    def _may_leave(self, record: PodRecord) -> bool:
        annotations = record.pod.metadata.annotations or {}
        return (
            bool(owner_of(record.pod))
            and record.pod.spec.scheduler_name in self._profiles
            and self._cluster.budgets.allows(record.pod)
            and not any(annotations.get(key) == value for key, value in DO_NOT_DISRUPT)
        )

    # As the solver has them

    def _name_nodes(self, chosen: Iterable[SharedJob], most: int) -> list[str]:
        """The nodes of some jobs, and those with most GPUs free."""
        taken = (record.node_name for job in chosen for record in _running(job))
        with_room = nlargest(most, self._free, key=lambda name: (self._free[name].gpus, name))
        return list(dict.fromkeys((*taken, *with_room)))

    def _as_job(self, found: SharedJob, waiting: Sequence[Entry], names: Sequence[str]) -> Job:
        """A job with the tasks that run, and those that would be placed next."""
        demand = self._sharing.cache.jobs[found.key].demand
        running = _running(found)
        tasks = [self._task(record, record.node_name, names) for record in running]
        tasks += [self._task(entry.record, "", names) for entry in waiting]
        is_whole = found.gang is not None or _restarts_whole(found)
        return Job(
            found.key,
            found.queue,
            tuple(tasks),
            minimum=len(tasks) if is_whole else max(1, min(demand.min_members, len(running))),
            priority=found.priority,
            is_preemptible=demand.is_preemptible,
            may_move=bool(running) and self._may_move(found),
            created=found.created,
        )

    def _task(self, record: PodRecord, node: str, names: Sequence[str]) -> Task:
        allowed = self._allowed_nodes(record, names)
        return replace(self._as_task(record, node), nodes=allowed | {node} if node else allowed)

    def _as_task(self, record: PodRecord, node: str) -> Task:
        amounts = kai_amounts(self._cluster, record.shape)
        amount = Amount(amounts.get(GPU, 0), amounts.get(CPU, 0), amounts.get(MEMORY, 0))
        task = Task(record.key, amount, node)
        shares = self._cluster.card_holders.shares_of(record.key) if task.is_part and node else ()
        return replace(task, gpu=str(shares[0].card)) if shares else task

    def _bystanders(self, names: Iterable[str], known: Container[str]) -> Iterator[Job]:
        """The pods with parts of GPUs that stay where they are: how much of these GPUs is free depends on them."""
        if not self._cluster.card_holders.is_used:
            return
        for name in names:
            for record in self._cluster.pods.on(self._cluster.nodes.row_of[name]):
                if record.key not in known and self._cluster.card_holders.shares_of(record.key):
                    task = self._as_task(record, name)
                    if task.gpu:
                        yield Job(record.key, "", (task,), minimum=1, is_preemptible=False, may_move=False)

    def _allowed_nodes(self, record: PodRecord, names: Sequence[str]) -> frozenset[str]:
        """The nodes that a pod could be on if others made room there."""
        profile = self._profiles.get(record.pod.spec.scheduler_name)
        if profile is None:
            return frozenset()
        cluster = self._cluster
        shape = record.shape if record.row == UNBOUND else cluster.shape_for(as_created(record.pod))
        known = self._nodes_of_shape.get((profile.name, shape.id))
        if known is None:
            answer = evaluate(profile, cluster, shape)
            rows = {*answer.feasible.tolist(), *potential_rows(answer).tolist()}
            found = frozenset(name for name in names if cluster.nodes.row_of[name] in rows)
            known = self._nodes_of_shape.put((profile.name, shape.id), found)
        return known

    def _nodes(self, names: Iterable[str], jobs: Iterable[Job]) -> list[Node]:
        """The nodes, each with what these jobs have there or no pod has."""
        total = {name: self._free.get(name, NOTHING) for name in names}
        shared: set[tuple[str, str]] = set()
        for task in (task for job in jobs for task in job.tasks if task.node):
            gpus = task.amount.gpus
            if task.gpu:
                gpus = 0 if (task.node, task.gpu) in shared else ONE_GPU
                shared.add((task.node, task.gpu))
            total[task.node] = total[task.node].plus(task.amount._replace(gpus=gpus))
        return [Node(name, Amount(*(max(0, amount) for amount in found))) for name, found in total.items()]


def _running(job: SharedJob) -> list[PodRecord]:
    """The pods of a job that run; those that only hold a place do not."""
    return [
        record
        for records in job.members.values()
        for record in records
        if record.row != UNBOUND and not record.nominated
    ]


def _is_plain(shape: Shape) -> bool:
    """Whether a pod asks for no devices but whole GPUs, or a part of one: of others the solver does not see which are
    free."""
    request = shape.card_request
    asks = () if request is None else request.asks.get(CardSharing.COUNTED, ())
    if shape.claims or (request is not None and request.is_choosy):
        return False
    return not asks or (len(asks) == 1 and asks[0].count == 1 and not asks[0].profile)


def _wants_a_domain(job: SharedJob) -> bool:
    """Whether a gang asks for a place in the topology, which the solver does not see, or consists of gangs."""
    gang = None if job.root is None else job.root.gang
    return gang is not None and (gang.has_topology_request or gang.of_gangs)


def _restarts_whole(job: SharedJob) -> bool:
    """Whether the loss of any member stops all."""
    gang = None if job.root is None else job.root.gang
    return gang is not None and gang.restarts_whole
