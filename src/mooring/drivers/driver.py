"""What a driver is: it brings events in, carries decisions out, and answers for every decision that failed.

The scheduler assumes what it decides. Whatever the world refuses must come back as `Failed`, for every kind of
decision, or the scheduler would go on as if it had happened.
"""

from abc import ABC, abstractmethod

from mooring.engine.action import Fault
from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Admit, Bind, Decision
from mooring.model.events import Failed
from mooring.model.keys import PodKey

NOT_ADMITTED = "its workload was not admitted"


class Driver(ABC):
    """The world as one scheduler sees it: whoever writes one says how a decision is carried out."""

    def __init__(self, scheduler: Scheduler, now: float) -> None:
        self.scheduler = scheduler
        self.now = now
        """Seconds since 1970."""

    @abstractmethod
    def carry_out(self, decision: Decision) -> str:
        """Do to the world what was decided; return why that failed, or nothing."""

    @abstractmethod
    def take_faults(self, faults: list[Fault]) -> None:
        """Something raised in the turns of some pods: they come again later; say so to whoever can mend it."""

    def run_cycle(self, at_most: int) -> list[Decision]:
        """Let the scheduler decide, for at most so many pods, and carry out what it does; failures go back to it."""
        decisions = self.scheduler.cycle(self.now, at_most=at_most)
        faults = self.scheduler.take_faults()
        if faults:
            self.take_faults(faults)
        not_admitted: set[str] = set()
        for decision in decisions:
            message = NOT_ADMITTED if self._is_of(decision, not_admitted) else self.carry_out(decision)
            if message:
                self.scheduler.handle(Failed(decision, message))
                if isinstance(decision, Admit):
                    not_admitted.add(decision.workload)
        return decisions

    def _is_of(self, decision: Decision, workloads: set[str]) -> bool:
        """Whether a pod is to be bound whose workload may not start: that was decided in one go."""
        if not workloads or not isinstance(decision, Bind):
            return False
        return self.scheduler.cluster.tenants.workload_of.get(PodKey(decision.pod)) in workloads
