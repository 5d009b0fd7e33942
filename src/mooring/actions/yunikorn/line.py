"""Who is next in a queue of YuniKorn's: its best application, and of that the most important job, then the oldest."""

from collections.abc import Mapping
from heapq import heappop, heappush, heapreplace

from mooring.actions.volcano.jobs import Job
from mooring.actions.volcano.order import JobKey, Line
from mooring.actions.yunikorn.applications import Applications, Name, name_of


class ApplicationLine(Line):
    """The applications of one queue that want a turn, each with a line of its own. What is out of date goes when it
    comes to the top."""

    def __init__(self, jobs: Mapping[str, Job], applications: Applications) -> None:
        super().__init__(jobs)
        self._applications = applications
        self._lines: dict[Name, Line] = {}
        self._standings: list[tuple[tuple[object, ...], Name]] = []

    def put(self, job: Job, key: JobKey) -> None:
        super().put(job, key)
        name = name_of(job)
        self._lines.setdefault(name, Line(self._jobs)).put(job, key)
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
                return self._lines[name].head()
            # It can only have become worse: whatever makes it better is told to `moved`.
            if standing is None:
                heappop(self._standings)
            else:
                heapreplace(self._standings, (standing, name))
        return None

    @property
    def priority(self) -> int | None:
        """The highest of all that want a turn."""
        job = super().head()
        return None if job is None else job.demand.priority

    def _standing(self, name: Name) -> tuple[object, ...] | None:
        line = self._lines.get(name)
        job = None if line is None else line.head()
        return None if job is None else self._applications.standing(name, job.demand.priority)
