"""Applications: pods that belong together, wait together and are counted as one, as YuniKorn has them."""

from collections import Counter
from collections.abc import Mapping
from heapq import heappop, heappush, heapreplace

from mooring.actions.shares.checks import Refusal
from mooring.actions.shares.grouping import Grouping
from mooring.actions.shares.jobs import Job
from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.order import JobHeap, JobKey
from mooring.actions.shares.resources import Amount
from mooring.actions.shares.yunikorn.fair_order import application_key
from mooring.actions.shares.yunikorn.priorities import may_be_evicted_for
from mooring.actions.shares.yunikorn.user_limits import UserLimits

Name = tuple[int, str]
"""A leaf queue, and the application's own name."""


class Applications(Grouping):
    """All applications, with the jobs that they consist of and what these hold."""

    def __init__(self, ledger: Ledger) -> None:
        self._tree = ledger.tree
        self._created: dict[Name, dict[str, float]] = {}
        """When each job of an application was created, by its key: the application is as old as the oldest of them."""
        self._age_of: dict[Name, float] = {}
        self._held: dict[Name, Counter[int]] = {}
        self._running: dict[int, set[Name]] = {}
        """By queue, also those above: the applications that hold anything."""
        self._limits = UserLimits(ledger)

    def join(self, job: Job) -> None:
        if not job.demand.application:
            return
        name = name_of(job)
        created = job.demand.created
        self._created.setdefault(name, {})[job.key] = created
        self._age_of[name] = min(created, self._age_of.get(name, created))
        self.change(job, job.held_amount, 1)

    def leave(self, job: Job) -> None:
        """A job is gone that holds nothing any more."""
        if not job.demand.application:
            return
        name = name_of(job)
        jobs = self._created[name]
        created = jobs.pop(job.key)
        if not jobs:
            for found in (self._created, self._age_of, self._held):
                found.pop(name, None)
        elif created == self._age_of[name]:
            self._age_of[name] = min(jobs.values())

    def change(self, job: Job, amount: Amount, sign: int) -> None:
        """A job got so much, or lost it."""
        if not job.demand.application:
            return
        name = name_of(job)
        held = self._held.setdefault(name, Counter())
        for column, value in amount.items():
            held[column] += sign * value
        is_running = any(held.values())
        for row in self._tree.paths[job.leaf]:
            running = self._running.setdefault(row, set())
            (running.add if is_running else running.discard)(name)
        self._limits.change(job, amount, sign, is_running=is_running)

    def standing(self, name: Name, priority: int) -> tuple[object, ...]:
        """What an application is ordered by in its queue, the smallest first, if what waits of it has this priority."""
        leaf, application = name
        rules = self._tree.specs[leaf].applications
        fair: tuple[float, ...] = ()
        if rules.sorts_fairly:
            names = self._tree.resources.names
            held = {names[column]: value for column, value in self._held[name].items()}
            fair = application_key(held, self._tree.specs[leaf].deserved)
        urgency = -priority if rules.sorts_by_priority else 0
        return (urgency, fair, self._age_of[name], -priority, application)

    def make_heap(self, jobs: Mapping[str, Job]) -> "ApplicationHeap":
        return ApplicationHeap(jobs, self)

    def may_take(self, reclaimer: Job, victim: Job) -> bool:
        return not victim.demand.application or may_be_evicted_for(self._tree, reclaimer, victim)

    def refuse(self, job: Job) -> Refusal | None:
        """Why an application gets nothing more for a job of it, by how many there may be and by its user's limits."""
        if not job.demand.application:
            return None
        name = name_of(job)
        for row in self._tree.paths[job.leaf]:
            most, running = self._tree.specs[row].applications.most, self._running.get(row, set())
            if most and name not in running and len(running) >= most:
                queue = self._tree.name(row)
                return Refusal(queue, "", f"queue {queue} runs as many applications as it may; {name[1]} waits")
        return self._limits.refuse(job)


def name_of(job: Job) -> Name:
    return (job.leaf, job.demand.application)


class ApplicationHeap(JobHeap):
    """The applications of one queue that want a turn, each with a heap of its own. What is out of date goes when it
    comes to the top."""

    def __init__(self, jobs: Mapping[str, Job], applications: Applications) -> None:
        super().__init__(jobs)
        self._applications = applications
        self._heaps: dict[Name, JobHeap] = {}
        self._standings: list[tuple[tuple[object, ...], Name]] = []

    def put(self, job: Job, key: JobKey) -> None:
        super().put(job, key)
        name = name_of(job)
        self._heaps.setdefault(name, JobHeap(self._jobs)).put(job, key)
        self.moved(job)

    def moved(self, job: Job) -> None:
        name = name_of(job)
        standing = self._standing(name)
        if standing is not None:
            heappush(self._standings, (standing, name))

    def head(self) -> Job | None:
        while self._standings:
            known, name = self._standings[0]
            standing = self._standing(name)
            if standing == known:
                return self._heaps[name].head()
            # It can only have become worse: whatever makes it better is told to `moved`.
            if standing is None:
                heappop(self._standings)
            else:
                heapreplace(self._standings, (standing, name))
        return None

    def _standing(self, name: Name) -> tuple[object, ...] | None:
        line = self._heaps.get(name)
        job = None if line is None else line.head()
        return None if job is None else self._applications.standing(name, job.demand.priority)
