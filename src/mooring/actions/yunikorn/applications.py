"""Applications: pods that belong together, stand in line together and are counted as one, as YuniKorn has them."""

from collections import Counter

from mooring.actions.volcano.checks import Refusal
from mooring.actions.volcano.jobs import Job
from mooring.actions.volcano.ledger import Ledger
from mooring.actions.volcano.resources import Amount
from mooring.actions.yunikorn.fair_order import application_key
from mooring.actions.yunikorn.user_limits import UserLimits

Name = tuple[int, str]
"""A leaf queue, and the application's own name."""


class Applications:
    """All applications, with the jobs that they consist of and what these hold."""

    def __init__(self, ledger: Ledger) -> None:
        self._tree = ledger.tree
        self._members: Counter[Name] = Counter()
        self._held: dict[Name, Counter[int]] = {}
        self._created: dict[Name, float] = {}
        self._running: dict[int, set[Name]] = {}
        """By queue, also those above: the applications that hold anything."""
        self._limits = UserLimits(ledger)

    def join(self, job: Job) -> None:
        if not job.demand.application:
            return
        name = name_of(job)
        self._members[name] += 1
        self._created[name] = min(job.demand.created, self._created.get(name, job.demand.created))
        self.change(job, job.held_amount, 1)

    def leave(self, job: Job) -> None:
        """A job is gone that holds nothing any more."""
        if not job.demand.application:
            return
        name = name_of(job)
        self._members[name] -= 1
        if not self._members[name]:
            for found in (self._members, self._held, self._created):
                found.pop(name, None)

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
        return (urgency, fair, self._created[name], -priority, application)

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
