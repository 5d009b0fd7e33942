"""Applications: pods that belong together, stand in line together and are counted as one, as YuniKorn has them."""

from collections import Counter
from collections.abc import Iterable

from mooring.actions.volcano.jobs import Job
from mooring.actions.volcano.ledger import Ledger
from mooring.actions.volcano.resources import Amount
from mooring.actions.yunikorn.fair_order import application_key

Name = tuple[int, str]
"""A leaf queue, and the application's own name."""


class Applications:
    """All applications, with the jobs that they consist of and what these hold."""

    def __init__(self, ledger: Ledger) -> None:
        self._tree = ledger.tree
        self._jobs: dict[Name, dict[str, Job]] = {}
        self._held: dict[Name, Counter[int]] = {}
        self._created: dict[Name, float] = {}
        self._running: dict[int, set[Name]] = {}
        """By queue, also those above: the applications that hold anything."""

    def join(self, job: Job) -> None:
        name = (job.leaf, job.demand.application)
        if not job.demand.application:
            return
        self._jobs.setdefault(name, {})[job.key] = job
        self._created[name] = min(job.demand.created, self._created.get(name, job.demand.created))
        self.change(job, job.held_amount, 1)

    def leave(self, job: Job) -> None:
        """A job is gone that holds nothing any more."""
        name = (job.leaf, job.demand.application)
        members = self._jobs.get(name, {})
        members.pop(job.key, None)
        if job.demand.application and not members:
            for found in (self._jobs, self._held, self._created):
                found.pop(name, None)

    def change(self, job: Job, amount: Amount, sign: int) -> None:
        """A job got so much, or lost it."""
        if not job.demand.application:
            return
        name = (job.leaf, job.demand.application)
        held = self._held.setdefault(name, Counter())
        for column, value in amount.items():
            held[column] += sign * value
        for row in self._tree.paths[job.leaf]:
            running = self._running.setdefault(row, set())
            (running.add if any(held.values()) else running.discard)(name)

    def others(self, job: Job) -> Iterable[Job]:
        """The jobs of the same application, which move in line with it."""
        if not job.demand.application:
            return ()
        return [found for found in self._jobs[job.leaf, job.demand.application].values() if found is not job]

    def standing(self, job: Job) -> tuple[object, ...]:
        """What the application is ordered by in its queue: what it holds, if that counts; then its age and name."""
        name = (job.leaf, job.demand.application)
        fair: tuple[float, ...] = ()
        if self._tree.specs[job.leaf].sorts_fairly:
            names = self._tree.resources.names
            total = dict(zip(names, self._tree.total.tolist(), strict=False))
            fair = application_key({names[column]: value for column, value in self._held[name].items()}, total)
        return (fair, self._created[name], job.demand.application)

    def too_many_in(self, job: Job) -> str:
        """The queue, of the job's own and those above it, that takes no further application; empty if all do."""
        name = (job.leaf, job.demand.application)
        for row in self._tree.paths[job.leaf] if job.demand.application else ():
            most, running = self._tree.specs[row].max_applications, self._running.get(row, set())
            if most and name not in running and len(running) >= most:
                return self._tree.name(row)
        return ""
