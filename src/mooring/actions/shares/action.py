"""The action: pods and gangs of one family's queues, in the order of their queues' shares.

What has changed since the last cycle is taken in (`following.py`); then the best queue's best job has its turn, and
again, until nobody is left whom the shares allow more. Whoever the shares refuse waits without evicting anybody; who
found no node may reclaim, or preempt in its own queue (`mooring.actions.shares.reclaim`).
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from mooring.actions.batches import Outcome
from mooring.actions.gangs.placing import GangOutcome, GangPlacer, bind_all
from mooring.actions.shares.family import Family
from mooring.actions.shares.following import SharedJobs
from mooring.actions.shares.jobs import Members
from mooring.actions.shares.members import first_misfit, members_of_turn
from mooring.actions.shares.past import read_use, write_use
from mooring.actions.shares.section import SharesSection
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.shared_jobs import SharedJob, in_turn, role_key
from mooring.actions.shares.sharing import Offer, Sharing
from mooring.engine.action import Action, Cycle
from mooring.engine.binding import decision_to_bind
from mooring.engine.evaluate import evaluate
from mooring.engine.permits import hold_room
from mooring.engine.plugin import Change
from mooring.engine.queue.parked import Turn
from mooring.engine.queue.queue import Entry, GangEntry, Queue
from mooring.engine.queue.shared import SharedQueues
from mooring.engine.verdict import Rejection, Verdict
from mooring.model.decisions import Bind, Decision, Wait
from mooring.model.keys import PodKey
from mooring.model.memory import Memory
from mooring.model.values.requests import PODS
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.pods import UNBOUND
from mooring.state.shares import PastUse


class Share(Action):
    """The action."""

    def __init__(
        self,
        placer: GangPlacer,
        settings: ShareSettings,
        family: Family,
        shared: SharedQueues,
        names: Container[str] = (),
    ) -> None:
        """`shared` knows all families, of which this is one; `names`: the schedulerNames of the pods that are ours."""
        self._placer = placer
        self.family, self.families, self.names = family, (family,), names
        self.shared, self.settings = shared, settings
        self.followed: SharedJobs | None = None
        """How the queues stand; None while there are none."""
        self._reasons: dict[tuple[str, int], str] = {}
        """Why no node takes pods, by profile and shape, in this cycle."""
        self.unplaced: list[SharedJob] = []
        """Those of whom something still waits: they may reclaim what their share allows them, or preempt."""
        self._recalled: PastUse | None = None

    @property
    def sharing(self) -> Sharing | None:
        return None if self.followed is None else self.followed.sharing

    @property
    def jobs(self) -> Mapping[str, SharedJob]:
        """All that run or wait in shared queues, by key."""
        return {} if self.followed is None else self.followed.jobs

    def run(self, cycle: Cycle) -> list[Decision]:
        self.unplaced, self._reasons = [], {}
        cluster = cycle.cluster
        if not self.shared.has(cluster, self.family):
            if self.followed is not None:
                self.followed.end()
                self.followed = None
            return []
        # 1. Who there is, and what everybody holds.
        turns = cycle.queue.take_shared(lambda turn: self._is_mine(cluster, turn))
        if self.followed is None or self.followed.cluster is not cluster:
            self.followed = SharedJobs(cluster, self.settings, self.family, self.shared, self.is_ours)
            past = self._recalled or cluster.shares.past.get(self.family.name)
            if past is not None:
                self.followed.sharing.resume(past, cycle.now)
                self._recalled = None
            if not turns:
                self.followed.follow(self._parked(cycle), cycle.now)
        jobs = self.followed.follow(turns, cycle.now)
        if turns or self.followed.is_news:
            self.followed.let_in()
        decisions = self._take_turns(jobs, cycle) if turns else []
        cluster.shares.remember(self.family.name, self.followed.sharing.past_use())
        return decisions

    def report(self, cycle: Cycle) -> SharesSection:
        return SharesSection(self.family, self.settings, self.sharing)

    def why_beyond_limits(self, cycle: Cycle, gang: GangEntry, entries: Iterable[Entry]) -> str:
        """Why the queue of a gang may not hold some more of its members; empty if it may, or is of another family."""
        queue = self.shared.of_gang(cycle.cluster, gang.root)
        if self.followed is None or queue is None or queue.family is not self.family:
            return ""
        self.followed.follow((), cycle.now)
        amounts = Counter[str]()
        for entry in entries:
            amounts.update({**self.family.requests(cycle.cluster, entry.record), PODS: 1})
        return self.followed.sharing.why_beyond_limits(queue.name, amounts)

    def note_room_made(self, job: SharedJob, now: float) -> None:
        """Count the next members of a job as placed, which hold the room that others leave: it takes from nobody."""
        assert self.sharing is not None, "it found no node by its share"
        self.sharing.allocate(job.key, now=now)
        self.unplaced.remove(job)

    def _parked(self, cycle: Cycle) -> list[Turn]:
        """The turns of pods and gangs that wait, and are not to be tried now: what they request counts all the same."""
        turns = (turn for parked in cycle.queue.parked() for turn in parked.turns())
        return [turn for turn in turns if self._is_mine(cycle.cluster, turn)]

    def _is_mine(self, cluster: Cluster, turn: Turn) -> bool:
        queue = self.shared.of_turn(cluster, turn)
        return queue is not None and queue.family is self.family

    def is_ours(self, cluster: Cluster, root: GangRecord) -> bool:
        """Whether it is for us to let a gang in: by the scheduler that its Job or its pods name. Who names none is
        anybody's: all active schedulers see the same queues, and to be let in twice is to be let in."""
        if root.gang is not None and root.gang.scheduler_name:
            return root.gang.scheduler_name in self.names
        pods = [record.pod for part in cluster.gangs.parts_of(root) for record in part.members.values()]
        return not pods or any(pod.spec.scheduler_name in self.names for pod in pods)

    def remember(self, memory: Memory) -> None:
        use = self._recalled if self.sharing is None else self.sharing.past_use()
        if use is not None:
            memory.shared_queues[self.family.name] = write_use(use)

    def recall(self, memory: Memory) -> None:
        use = memory.shared_queues.get(self.family.name)
        if use is not None:
            self._recalled = read_use(use)

    def _take_turns(self, jobs: dict[str, SharedJob], cycle: Cycle) -> list[Decision]:
        assert self.followed is not None
        now = cycle.now
        sharing, refused = self.followed.sharing, self.followed.refused
        # 2. Turn by turn, by shares.
        decisions: list[Decision] = []
        sharing.start_cycle(now)
        no_node = dict[str, str]()
        backfilled = dict[str, Members]()
        while (offer := sharing.next_job()) is not None:
            job = jobs[offer.job]
            made, message, misfit = self._take_turn(cycle, job, offer)
            decisions += made
            if message:
                no_node[job.key] = message
                sharing.refuse(job.key, message, misfit)
            else:
                members, best_effort = _split(_members(cycle.cluster, job, made), job)
                sharing.allocate(job.key, members, now)
                if any(best_effort):
                    backfilled[job.key] = best_effort
        # 3. Who asks for nothing but a place gets one, whatever its queue deserves, and counts in shares only now.
        for key, members in backfilled.items():
            sharing.allocate(key, members, now)
        for job in jobs.values() if self.settings.backfills else ():
            if job.key not in refused:
                made, message = self._backfill(cycle, job, sharing)
                decisions += made
                if made:
                    sharing.allocate(job.key, _members(cycle.cluster, job, made), now)
                if message:
                    no_node[job.key] = message
        # 4. The others wait, each with its reason.
        bound = [cycle.cluster.pods.records[PodKey(found.pod)].shape for found in decisions if isinstance(found, Bind)]
        is_helped = bool(bound) and any(_counts_on_others(jobs[key]) for key in no_node)
        for job in jobs.values():
            message = no_node.get(job.key) or refused.get(job.key) or sharing.why(job.key)
            waits = self._park(cycle.queue, job, message, is_capped=job.key not in no_node)
            decisions += waits
            if waits and job.key not in refused and (self.settings.reclaims or self.settings.preempts):
                self.unplaced.append(job)
        self.unplaced.sort(key=lambda job: (-job.priority, job.created, job.key))
        for shape in bound if is_helped else ():
            cycle.queue.note(Change.POD_BOUND, shape)  # when it was bound, those that wait now were not set aside yet
        return decisions

    def _take_turn(self, cycle: Cycle, job: SharedJob, offer: Offer) -> tuple[list[Decision], str, dict[int, int]]:
        """Place what was offered: the members that make a gang whole, or one more.

        With why that was not possible, and of which roles how many find a node, if others may do instead.
        """
        entries = members_of_turn(cycle.cluster, job, offer.members)
        if not entries:
            return [], "its members are not there", {}
        if job.gang is None:
            made, message = self._grow(cycle, job, entries[0])
        else:
            made, message = self._start(cycle, job, job.gang, entries)
        if message and offer.has_others and job.waits(entries):
            return self._find_misfit(cycle, job, entries, message)
        return made, message, {}

    def _find_misfit(
        self, cycle: Cycle, job: SharedJob, entries: Sequence[Entry], message: str
    ) -> tuple[list[Decision], str, dict[int, int]]:
        """Of which roles how many find a node, of those who were refused together."""
        turn: Turn = entries[0] if job.gang is None else job.gang
        misfit: dict[int, int] = {}
        with cycle.attempt(turn) as attempt:
            misfit = first_misfit(cycle.cluster, job, entries, self._placer.batches)
            attempt.keep()
        if attempt.error is None:
            return [], message, misfit
        self._set_aside(job, turn)
        return [], str(attempt.error), {}

    def _set_aside(self, job: SharedJob, turn: Turn) -> None:
        """Somebody in whose turn something raised waits elsewhere now."""
        if isinstance(turn, GangEntry):
            job.gang = None
        else:
            job.spares.remove(turn)

    def _backfill(self, cycle: Cycle, job: SharedJob, sharing: Sharing) -> tuple[list[Decision], str]:
        """Place the members that ask for nothing: a gang that needs no others, then one by one."""
        waiting = [entry for entry in job.waiting if job.is_best_effort(entry.record)]
        if not waiting or sharing.is_closed(job.queue) or not sharing.is_let_in(job.key):
            return [], ""
        decisions: list[Decision] = []
        if job.gang is not None:
            needed = members_of_turn(cycle.cluster, job, (0,) * len(job.members))
            if not needed or not all(job.is_best_effort(entry.record) for entry in needed):
                return [], ""
            decisions, message = self._start(cycle, job, job.gang, needed)
            if message:
                return [], message
        messages: list[str] = []
        for entry in [entry for entry in job.spares if job.is_best_effort(entry.record)]:
            made, message = self._grow(cycle, job, entry)
            decisions += made
            messages += [message] if message else []
        return decisions, next(iter(messages), "")

    def _start(
        self, cycle: Cycle, job: SharedJob, gang: GangEntry, needed: Sequence[Entry]
    ) -> tuple[list[Decision], str]:
        outcome = GangOutcome()
        held: list[Decision] = []
        with cycle.attempt(gang) as attempt:
            outcome = self._placer.place_members(cycle.cluster, gang, needed)
            if outcome.hold is not None:
                held = hold_room(cycle, outcome.hold, gang.root.key)
            attempt.keep()
        if attempt.error is not None:
            self._set_aside(job, gang)
            return [], str(attempt.error)
        if outcome.message and outcome.hold is None:
            return [], f"gang {gang.name}: {outcome.message}"
        job.gang = None
        if outcome.hold is not None:
            return held, ""
        made = bind_all(cycle.cluster, cycle.queue, gang, needed)
        job.spares += _spares(cycle.queue, job)
        return made, ""

    def _grow(self, cycle: Cycle, job: SharedJob, entry: Entry) -> tuple[list[Decision], str]:
        outcome, message = Outcome([], [], []), ""
        with cycle.attempt(entry) as attempt:
            outcome = self._placer.batches.place(cycle.cluster, [entry])
            if not outcome.placed and outcome.hold is None:
                verdicts = [reason for _, verdict in outcome.rejected for reason in verdict.reasons]
                message = "; ".join(verdicts) or self._why_no_node(cycle.cluster, entry)
            attempt.keep()
        if attempt.error is not None:
            self._set_aside(job, entry)
            return [], str(attempt.error)
        if outcome.hold is not None:
            job.spares.remove(entry)
            return hold_room(cycle, outcome.hold), ""
        if not outcome.placed:
            return [], message
        job.spares.remove(entry)
        cycle.queue.remove(entry.record.key)
        cycle.queue.note(Change.POD_BOUND, entry.record.shape)
        return [decision_to_bind(cycle.cluster, entry.record)], ""

    def _why_no_node(self, cluster: Cluster, entry: Entry) -> str:
        """What the nodes say to a pod, in kube-scheduler's words: once a cycle for all that are alike."""
        alike = (entry.profile.name, entry.record.shape.id)
        if alike not in self._reasons:
            self._reasons[alike] = evaluate(entry.profile, cluster, entry.record.shape).message()
        return self._reasons[alike]

    def _park(self, queue: Queue, job: SharedJob, message: str, *, is_capped: bool) -> list[Decision]:
        """Let what is left of a job wait; say why."""
        waits: list[Decision] = []
        plugin, preempts = self.family.name, self.settings.preempts_like_others
        message = message or "it waits for the next turn of its queue"
        if job.gang is not None:
            waits += [Wait(key, message, (plugin,)) for key in job.gang.entries]
            queue.park_gang(job.gang, message, is_capped=is_capped, preempts=preempts)
        for entry in job.spares:
            if entry.record.row == UNBOUND:
                waits.append(Wait(entry.record.key, message, (plugin,)))
                verdict = Verdict(plugin, Rejection((message,)))
                queue.park_alone(entry, verdict, is_capped=is_capped, preempts=preempts)
        return waits


def _counts_on_others(job: SharedJob) -> bool:
    """Whether members that wait might go where other pods have gone: near these, or spread evenly with them."""
    shapes = {entry.record.shape.id: entry.record.shape for entry in job.waiting}.values()
    wants_near = any(shape.affinity is not None and shape.affinity.pod_affinity is not None for shape in shapes)
    return wants_near or any(shape.spec.topology_spread_constraints for shape in shapes)


def _members(cluster: Cluster, job: SharedJob, made: Iterable[Decision]) -> Members:
    """How many members of each role have their place: all that were bound, or are let wait in it."""
    pods = (cluster.pods.records[PodKey(found.pod)] for found in made if isinstance(found, Bind | Wait))
    bound = Counter(role_key(cluster, record) for record in pods)
    return tuple(bound[role] for role in job.members)


def _split(members: Members, job: SharedJob) -> tuple[Members, Members]:
    """Those that ask for something, and those that do not."""
    are_best_effort = [job.is_best_effort(records[0]) for records in job.members.values()]
    pairs = list(zip(members, are_best_effort, strict=True))
    return tuple(0 if best else count for count, best in pairs), tuple(count if best else 0 for count, best in pairs)


def _spares(queue: Queue, job: SharedJob) -> list[Entry]:
    """The members that a gang can grow by, which wait by themselves since it started."""
    found = [turn for turn in queue.shared.values() if isinstance(turn, Entry)]
    assert job.root is not None
    members = {record.key for group in job.members.values() for record in group}
    mine = [entry for entry in found if entry.record.key in members]
    for entry in mine:
        del queue.shared[entry.arrival]
    return in_turn(mine, job.root)
