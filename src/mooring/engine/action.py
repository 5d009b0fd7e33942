"""What a cycle may do, and what it is given to do it: the contract of actions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import ClassVar, TypeAlias

from mooring.engine.queue.entries import Entry
from mooring.engine.queue.parked import Turn
from mooring.engine.queue.queue import Queue
from mooring.engine.queue.shared import QueueFamily
from mooring.engine.verdict import Rejection, Verdict
from mooring.errors import PluginError
from mooring.model.decisions import Decision, Wait
from mooring.model.memory import Memory
from mooring.state.cluster import Cluster
from mooring.state.undo import Trial

NOBODY_ELSE = "Mooring"
"""Who is named where something raised, and it was no plugin."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something raised in the middle of a cycle: a plugin, or a mistake of ours. All that it had touched is undone."""

    turn: str
    """Whose turn it was: the key of a pod or of a gang, or the name of an action."""
    error: Exception

    @property
    def plugin(self) -> str:
        return self.error.plugin if isinstance(self.error, PluginError) else NOBODY_ELSE

    @property
    def message(self) -> str:
        if isinstance(self.error, PluginError):
            return f"error: {self.error}"
        return f"error: {type(self.error).__name__}: {self.error}"


Deadline: TypeAlias = Callable[[], bool]
"""Tells whether an action has to come to an end. It is asked once a step, so that it may count steps."""


@dataclass
class Cycle:
    """One cycle of a scheduler, as actions see it: the state, who waits, and what time it is."""

    cluster: Cluster
    queue: Queue
    now: float
    at_most: int = 2**31
    """For how many pods decisions are wanted."""
    faults: list[Fault] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    """What is said of those who were set aside because something raised in their turn."""
    deadline: Deadline | None = None
    """Of the action that runs; without one it has all the time that it wants."""
    raises_faults: ClassVar[bool] = False
    """Raise what a plugin or an action raises instead of isolating it: for tests (`mooring.testing.faults`)."""

    def is_over(self) -> bool:
        """Whether the action that runs is to come to an end, and to go on in a later cycle. Ask once a step."""
        return self.deadline is not None and self.deadline()

    def attempt(self, *turns: Turn) -> "Attempt":
        """Try something for somebody: `with cycle.attempt(turn) as attempt: ...; attempt.keep()`.

        What is not kept is undone. What raises inside costs these turns and nobody else: all is undone, and they come
        again when their backoff is over.
        """
        return Attempt(self, turns)

    def report(self, name: str, error: Exception) -> None:
        """Something raised in the turn of somebody who is not in the queue, and was dealt with."""
        self.faults.append(Fault(name, error))
        self.fail((), error)

    def fail(self, turns: Sequence[Turn], error: Exception) -> None:
        """Set those aside in whose turn something raised."""
        if self.raises_faults:
            raise error
        for turn in turns:
            fault = Fault(turn.turn_name, error)
            self.faults.append(fault)
            self.queue.park_failed(turn, Verdict(fault.plugin, Rejection((fault.message,))))
            pods = [turn.record.key] if isinstance(turn, Entry) else list(turn.entries)
            self.waits += [Wait(pod, fault.message, (fault.plugin,)) for pod in pods]


class Attempt(Trial):
    """A trial that outlives what raises in it."""

    __slots__ = ("_cycle", "_turns", "error")

    def __init__(self, cycle: Cycle, turns: Sequence[Turn]) -> None:
        super().__init__(cycle.cluster.log)
        self._cycle = cycle
        self._turns = turns
        self.error: Exception | None = None
        """What was raised, once the block has ended."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            super().__exit__(kind, error, trace)
        except Exception as raised:  # while plugins gave back what they had reserved
            error = error or raised
        if error is None:
            return False
        if not isinstance(error, Exception):
            return False
        self.error = error
        self._cycle.fail(self._turns, error)
        return True


class Section:
    """What an action shows of itself to reports and metrics; each action that shows something has its own kind."""


class Action:
    """Something that a cycle may do: reads the state and the queue, returns decisions, and assumes them."""

    families: Sequence[QueueFamily] = ()
    """The queues by whose shares it gives turns: pods and gangs of these do not have theirs by priority."""

    every_seconds: float = 0.0
    """An action with a cadence of its own runs in the first cycle after so many seconds; 0: in every cycle."""

    @property
    def name(self) -> str:
        """What tells it from other actions."""
        return type(self).__name__

    def is_idle(self, cycle: Cycle) -> bool:
        """Whether there is certainly nothing to do: then the action is not run. It must not ask plugins."""
        return False

    def run(self, cycle: Cycle) -> list[Decision]:
        """Decide what can be decided now."""
        raise NotImplementedError

    def resume(self, cluster: Cluster, now: float) -> None:
        """Go on in the place of another one that was thrown away: derive from the state what `next_wake` looks at."""
        return

    def next_wake(self, cluster: Cluster, now: float) -> float | None:
        """The time at which there is something to do even if nothing happens; None if there is none."""
        return None

    def explain(self, cycle: Cycle, turn: Turn) -> str:
        """What this action would do for somebody who waits, as things stand; nothing is decided."""
        return ""

    def report(self, cycle: Cycle) -> Section | None:
        """Show what people may want to know of this action, to be read; nothing is decided."""
        return None

    def remember(self, memory: Memory) -> None:
        """Write down what must outlive a restart, and cannot be found out from the objects of a cluster."""
        return

    def recall(self, memory: Memory) -> None:
        """Go on from what was written down: to be called before the first cycle."""
        return
