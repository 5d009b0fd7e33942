"""The action: room for a job that waits, by moving preemptible jobs of KAI's queues to other nodes.

It runs for jobs that found no node, before anything is reclaimed or preempted, since nobody loses by it: each pod that
leaves has another place, which is held for the pod that its controller makes in its stead. KAI's solver decides which
jobs move, and where (`solver/`); the plugins have to agree to every place before anything is evicted.

Jobs with parts of several GPUs each, with claims to devices, or with a place in the topology neither move nor have
others moved.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mooring.actions.shares.action import Share
from mooring.actions.shares.kai.picture import Picture, draw_picture
from mooring.actions.shares.kai.solver.jobs import JobView, Status
from mooring.actions.shares.kai.solver.order import Turns
from mooring.actions.shares.kai.solver.rounds import consolidate_for, waiting_jobs
from mooring.actions.shares.kai.solver.session import Session
from mooring.actions.shares.reclaim import ForUnplaced
from mooring.actions.shares.shared_jobs import SharedJob
from mooring.engine.action import Cycle
from mooring.engine.disruption import Refusal, Voluntary, as_created, begin, check_progress, disrupt, successor_of
from mooring.engine.follow_up import all_fit
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Entry
from mooring.model.decisions import Decision, Wait
from mooring.model.keys import NO_GANG, PodKey
from mooring.state.cluster import Cluster
from mooring.state.plans import Held, Plan, Reason
from mooring.state.pods import Leaving, PodRecord


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """Where the pods of a job get their places, and where those that leave for them go."""

    entries: Sequence[Entry]
    rows: Sequence[int]
    moves: Mapping[str, Sequence[tuple[PodRecord, int]]]
    """By job, its pods that move, each with its row."""


class Consolidate(ForUnplaced):
    """The action."""

    def __init__(self, share: Share, profiles: Mapping[str, Profile]) -> None:
        super().__init__(share)
        self._profiles = profiles

    def run(self, cycle: Cycle) -> list[Decision]:
        decisions: list[Decision] = []
        tried: set[object] = set()
        # The picture is drawn anew after every rearrangement: pods that leave or hold a place are nobody's victims.
        while (found := self._next_try(cycle, tried)) is not None and not cycle.is_over():
            job, rearrangement = found
            turns = [job.gang] if job.gang is not None else job.spares[:1]
            made: list[Decision] = []
            with cycle.attempt(*turns) as attempt:
                for turn in turns:
                    check_progress(cycle.cluster, turn.turn_name, cycle.now)
                made = self._carry_out(cycle, job, rearrangement)
                if made:
                    attempt.keep()
            if made and attempt.error is None:
                self._take_from_queue(cycle, job, rearrangement.entries)
                decisions += made
        return decisions

    def _next_try(self, cycle: Cycle, tried: set[object]) -> tuple[SharedJob, Rearrangement] | None:
        """The next job in KAI's order for which others can move; what was tried in vain is noted."""
        picture = draw_picture(cycle.cluster, self._share, self._profiles, cycle.now)
        if picture is None:
            return None
        session = picture.session
        turns = Turns(session, waiting_jobs(session))
        while turns and not cycle.is_over():
            view = turns.pop()
            asked = _asked(session, view)
            if view.job.uid not in picture.waiting or not tried.isdisjoint((view.job.uid, asked)):
                continue
            tried.add(view.job.uid)
            checkpoint = session.checkpoint()
            if consolidate_for(session, view):
                return self._share.jobs[view.job.uid], _read(cycle.cluster, session, view, picture)
            session.rollback(checkpoint)
            tried.add(asked)
        return None

    def _carry_out(self, cycle: Cycle, job: SharedJob, found: Rearrangement) -> list[Decision]:
        """Evict the pods that move, and hold their new places and those of the job; nothing if it cannot be."""
        cluster, queue = cycle.cluster, cycle.queue
        if not found.moves or not self._is_right(cluster, found):
            return []
        first = found.entries[0].record.key
        name = f"gang {job.gang.name}" if job.gang is not None else f"pod {first}"
        why = Voluntary(f"Moved to make room for {name} in queue {job.queue}", first)
        decisions: list[Decision] = []
        leaves: list[Leaving] = []
        adopted: list[Plan] = []
        for key, moves in found.moves.items():
            holds = tuple(Held(successor_of(cluster, record), row) for record, row in moves)
            plan = Plan(Reason.CONSOLIDATION, holds, subject=key)
            made = disrupt(cluster, queue, [record for record, _ in moves], why, plan)
            if isinstance(made, Refusal) or made.plan is None:
                return []
            decisions += made.decisions
            leaves += made.plan.leaves
            adopted.append(made.plan)
        for plan in adopted:
            # One may move to where another one leaves.
            plan_id = cluster.plan_of(plan.holds[0].key)
            assert plan_id is not None
            cluster.renew(plan_id, replace(plan, leaves=tuple(leaves)))
        own = tuple(Held(entry.record.key, row) for entry, row in zip(found.entries, found.rows, strict=True))
        gang = job.root.key if job.root is not None else NO_GANG
        plan, _ = begin(cluster, Plan(Reason.CONSOLIDATION, own, tuple(leaves), gang))
        message = f"room is made for it by moving others to other nodes, in queue {job.queue}"
        family = self._share.family.name
        return [*decisions, *(Wait(held.key, message, (family,), held.node) for held in plan.holds)]

    def _is_right(self, cluster: Cluster, found: Rearrangement) -> bool:
        """Whether the plugins agree to every place, with all pods in their new places."""
        with cluster.what_if():
            moved = [(record, row) for moves in found.moves.values() for record, row in moves]
            for record, _ in moved:
                cluster.release(record.key)
            entries = list(found.entries)
            for record, row in moved:
                cluster.replace_pod(as_created(record.pod))
                cluster.assume(record.key, row)
                entries.append(Entry((), record.slot, record, self._profiles[record.pod.spec.scheduler_name]))
            for entry, row in zip(found.entries, found.rows, strict=True):
                cluster.assume(entry.record.key, row)
            return all_fit(cluster, entries)

    def _take_from_queue(self, cycle: Cycle, job: SharedJob, entries: Sequence[Entry]) -> None:
        """Let the pods that hold their places wait in no queue, and count them as placed."""
        if job.gang is not None:
            cycle.queue.take(job.gang)
        for entry in entries:
            cycle.queue.set_aside(entry)
        self._share.note_room_made(job, cycle.now)


def _asked(session: Session, view: JobView) -> object:
    """What the next tasks of a job ask for: where nothing can be moved for one job, nothing can for its like."""
    kinds = Counter((task.amount, task.nodes) for task in view.next_tasks(session.states))
    return view.job.queue, frozenset(kinds.items())


def _read(cluster: Cluster, session: Session, view: JobView, picture: Picture) -> Rearrangement:
    """The places of a solution, as rows."""
    row_of = cluster.nodes.row_of
    entries = [
        entry for entry in picture.waiting[view.job.uid] if session.states[entry.record.key].status is Status.NOMINATED
    ]
    moves: dict[str, list[tuple[PodRecord, int]]] = {}
    for job in session.jobs.values():
        for task in job.tasks:
            state = session.states[task.uid]
            if task.node and state.status is Status.NOMINATED:
                record = cluster.pods.records[PodKey(task.uid)]
                moves.setdefault(job.uid, []).append((record, row_of[state.node]))
    rows = [row_of[session.states[entry.record.key].node] for entry in entries]
    return Rearrangement(entries, rows, moves)
