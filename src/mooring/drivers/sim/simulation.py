"""One simulation: virtual time, in which things happen and the scheduler decides.

All that falls on one moment is handed to the scheduler before one cycle; what it decides is carried out at once. The
same arguments give the same decisions, bit for bit.
"""

import math
from collections.abc import Callable, Iterator

from mooring.drivers.driver import Driver
from mooring.drivers.rounds import Rounds
from mooring.drivers.sim.provider import SimulatedProvider
from mooring.drivers.sim.recorder import Recorder
from mooring.drivers.sim.settings import SimulationSettings
from mooring.drivers.sim.world import Coming, World
from mooring.engine.action import Fault
from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind, Decision, Evict, Launch, Resize, Suspend, Terminate
from mooring.observe.progress import Progress

MOST_ROUNDS, IDLE_ROUNDS = 20, 10
"""Cycles at one moment, before those that evict each other have to wait for the next second; how many of the last that
decide nothing new show that they lead nowhere."""
AGAIN_SECONDS = 1.0
MOST_RESTLESS = 10
"""Such moments in a row at which nothing new was decided, before the simulation ends with an error."""
ROUNDING = 1e-6
"""Moments that are nearer to each other are the same one: seconds since 1970 have no more digits."""
PROGRESS_STEPS = 1000
EVERYBODY = 2**31


class Simulation(Driver):
    """The world in virtual time, and the scheduler that decides in it."""

    def __init__(self, scheduler: Scheduler, settings: SimulationSettings, recorder: Recorder) -> None:
        super().__init__(scheduler, settings.start)
        self.world = World(scheduler, settings, recorder)
        self.watch: Callable[[float, list[Decision]], None] | None = None
        """Told what every cycle decided, and when."""
        catalogue = settings.catalogue
        self._provider = None if catalogue is None else SimulatedProvider(self.world, catalogue)
        self._settings, self._recorder = settings, recorder
        self._end = settings.start + settings.horizon
        self._wake = settings.start
        """When to decide next, if nothing else happens."""
        self._samples = 0
        self._rounds = Rounds()
        self._restless = 0
        """At how many moments in a row decisions did not come to rest, and led nowhere."""

    def run(self, arrivals: Iterator[Coming], progress: Progress) -> None:
        """Let time pass from the start to the horizon; work arrives in the order of its times."""
        world, agenda = self.world, self.world.agenda
        coming = next(arrivals, None)
        progress.phase("simulating", PROGRESS_STEPS)
        while True:
            at = min(agenda.next, self._wake, math.inf if coming is None else coming.at)
            if at > self._end:
                break
            self._move_to(max(at, self.now))
            agenda.let_happen(self.now)
            while coming is not None and coming.at <= self.now:
                for work in coming.come():
                    world.submit(work)
                coming = next(arrivals, None)
            if world.has_changed or self._wake <= self.now:
                self._decide_in_time()
            progress.reached(int(PROGRESS_STEPS * (self.now - self._settings.start) / self._settings.horizon))
        self._move_to(self._end)
        self._recorder.sample(self._settings.horizon)

    def _move_to(self, at: float) -> None:
        """Time passes: nothing changes meanwhile, so that samples in between are of what is now."""
        self._sample_until(at)
        self.now = self.world.now = at

    def _sample_until(self, at: float) -> None:
        """Take the samples of all moments of the grid before then."""
        settings = self._settings
        while (elapsed := self._samples * settings.sample_every) < at - settings.start:
            self._recorder.sample(elapsed)
            self._samples += 1

    def _decide_in_time(self) -> None:
        """Decide now, or at the next moment of the interval."""
        interval, start = self._settings.interval, self._settings.start
        if interval:
            on_time = start + math.ceil((self.now - start) / interval - ROUNDING) * interval
            if on_time > self.now + ROUNDING:
                self._wake = on_time
                return
        self._decide()
        wake = self.scheduler.next_wake(self.now)
        if wake is not None:
            self._wake = min(self._wake, max(wake, self.now))

    def _decide(self) -> None:
        """Run cycles until nothing is left to be decided now."""
        world = self.world
        self._wake = math.inf
        for _ in range(MOST_ROUNDS):
            world.has_changed = False
            decisions = self.run_cycle(EVERYBODY)
            self._recorder.cycles += 1
            self._recorder.decisions += len(decisions)
            if self.watch is not None:
                self.watch(self.now, decisions)
            is_more = any(self._may_lead_to_more(found) for found in decisions)
            if not (is_more or world.has_changed or len(self.scheduler.queue)):
                self._restless = 0
                return
            self._rounds.note(self.now, decisions, len(self.scheduler.queue))
        self._restless = self._restless + 1 if self._rounds.idle >= IDLE_ROUNDS else 0
        if self._restless >= MOST_RESTLESS:
            raise self._rounds.fault()
        self._wake = self.now + AGAIN_SECONDS
        world.has_changed = False

    def _may_lead_to_more(self, decision: Decision) -> bool:
        """Whether somebody may be decided on because of it: who waits may wait for a pod to be seen on its node."""
        return isinstance(decision, Evict | Suspend | Resize) or (
            isinstance(decision, Bind) and self._recorder.pods_waiting > 0
        )

    def carry_out(self, decision: Decision) -> str:
        match decision:
            case Bind():
                return self.world.bind(decision)
            case Evict(pod):
                if decision.preemptor:
                    self._recorder.preemptions += 1
                return self.world.evict(pod)
            case Launch(node, offer):
                if offer.claim is not None and self._provider is not None:
                    return self._provider.launch(decision)
                return self.world.launch(offer.node_named(node), offer.slices_named(node))
            case Terminate(node):
                return (self._provider or self.world).terminate(node)
            case Resize(pod):
                return self.world.resize(pod)
        return ""

    def take_faults(self, faults: list[Fault]) -> None:
        """A mistake in a plugin ends the simulation: what came after would mean nothing."""
        raise faults[0].error
