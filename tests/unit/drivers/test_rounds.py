"""Cycles at one moment that lead nowhere are counted, and end a command; those that get somewhere are not."""

import math
from collections.abc import Sequence

import pytest

from mooring.assembly import assemble
from mooring.drivers.offline.driver import Offline
from mooring.drivers.rounds import MOST_IDLE_ROUNDS, Rounds
from mooring.drivers.sim.recorder import Recorder
from mooring.drivers.sim.settings import SimulationSettings
from mooring.drivers.sim.simulation import MOST_RESTLESS, Simulation
from mooring.engine.cycle import Scheduler
from mooring.errors import NoProgress
from mooring.model.decisions import Bind, Decision, Evict, Wait
from mooring.model.loading.catalog import Catalog
from mooring.observe.progress import Progress
from mooring.testing.builders import make_node, make_pod

FLAPPING: Sequence[Decision] = (Bind("default/a", "n"), Evict("default/a", "n", "default/b", "preempted"))


def test_the_same_decisions_at_one_moment_lead_nowhere() -> None:
    rounds = Rounds()
    for _ in range(MOST_IDLE_ROUNDS + 1):
        rounds.check()
        rounds.note(60.0, FLAPPING, 1)

    with pytest.raises(NoProgress, match=r"at 1970-01-01T00:01:00Z: evicted again and again: default/a \(21 times\)$"):
        rounds.check()


def test_another_moment_or_a_new_decision_or_a_shorter_queue_is_progress() -> None:
    rounds = Rounds()
    for number in range(10 * MOST_IDLE_ROUNDS):
        rounds.note(float(number), FLAPPING, 1)
        assert rounds.idle == 0
    for number in range(10 * MOST_IDLE_ROUNDS):
        rounds.note(-1.0, [*FLAPPING, Bind(f"default/{number}", "n")], 1)
        assert rounds.idle == 0
    for number in range(10 * MOST_IDLE_ROUNDS):
        rounds.note(-2.0, [Wait("default/a", "no")], 1000 - number)
        assert rounds.idle == 0


def test_pods_that_are_tried_in_vain_without_end_are_named() -> None:
    rounds = Rounds()
    for _ in range(MOST_IDLE_ROUNDS + 1):
        rounds.note(0.0, [Wait(f"default/{number:02}", "no") for number in range(10)], 10)

    with pytest.raises(NoProgress, match=r"tried again and again: default/00, .*, default/07 and 2 more$"):
        rounds.check()


class Restless(Scheduler):
    """Decides the same whenever it is asked."""

    def cycle(self, now: float, at_most: int = 0) -> list[Decision]:
        super().cycle(now, at_most=0)
        return [Bind("default/a", "n"), Evict("default/a", "n", "default/b", "preempted")]


def restless() -> Scheduler:
    scheduler = assemble().new_scheduler()
    scheduler.__class__ = Restless
    return scheduler


def test_a_story_ends_where_decisions_lead_nowhere() -> None:
    catalog, scheduler = Catalog(), restless()
    picture = catalog.picture()
    picture.nodes.append(make_node("n"))
    picture.pods.extend([make_pod("a"), make_pod("b")])
    scheduler.load(picture, 0.0)

    with pytest.raises(NoProgress, match="default/a"):
        Offline(scheduler, 0.0, picture).decide(Progress())


def test_a_simulation_ends_where_decisions_lead_nowhere() -> None:
    simulation = Simulation(restless(), SimulationSettings(horizon=math.inf), Recorder(lambda: 0.0))

    with pytest.raises(NoProgress, match="default/a"):
        simulation.run(iter(()), Progress())
    assert simulation.now <= 2 * MOST_RESTLESS
