"""A story of gangs, told to a scheduler and checked after every cycle."""

from typing import Any

from gang_checks import Watch
from gang_worlds import GangWorld, random_gang_world

from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Decision
from mooring.model.events import NodeSeen
from mooring.testing.builders import make_profile, make_scheduler
from mooring.testing.random_clusters import Choose, one_of

LONG = (1.0, 1.0, 20.0, 400.0)
"""How much time passes between cycles: less than a backoff, more than it, more than every timeout."""


def no_preemption(**args: Any) -> dict[str, Any]:
    """A profile in which gangs are placed and kept, and nobody makes room for them by force."""
    profile = make_profile(args=args)
    profile["plugins"] = {"postFilter": {"disabled": [{"name": "*"}]}}
    return profile


class GangStory:
    """A world and its scheduler."""

    def __init__(self, choose: Choose, nodes: int, profile: dict[str, Any], *, cached: bool = True) -> None:
        self.choose = choose
        self.world: GangWorld = self._new_world(choose, nodes)
        self.scheduler: Scheduler = make_scheduler(profile=profile, cached=cached)
        self.scheduler.handle(*map(NodeSeen, self.world.nodes.values()))
        self.now = 0.0
        self._watch = self._new_watch(self.world)

    def _new_world(self, choose: Choose, nodes: int) -> GangWorld:
        return random_gang_world(choose, nodes=nodes)

    def _new_watch(self, world: GangWorld) -> Watch:
        return Watch(world)

    def go_on(self, events: int) -> list[Decision]:
        """Let things happen, time pass and the scheduler decide; check and carry out what it decides."""
        self.scheduler.handle(*self.world.events(events))
        self.now += LONG[self.choose(len(LONG))]
        self._watch.before()
        decisions = self.scheduler.cycle(self.now, at_most=one_of(self.choose, (1000, 1000, 3)))
        gone = self.world.carry_out(decisions)
        self._watch.after(decisions, self.now)
        self.scheduler.handle(*gone)
        return decisions
