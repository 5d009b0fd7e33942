"""An action that has nothing to do is not run, one with a cadence of its own no more often than that, and none for
longer than the driver lets it."""

import pytest

from mooring.engine.action import Action, Cycle, Deadline
from mooring.model.decisions import Decision
from mooring.model.events import PodSeen
from mooring.testing.builders import make_node, make_pod, make_scheduler


class Counting(Action):
    """Counts its runs."""

    def __init__(self) -> None:
        self.ran_at: list[float] = []

    def run(self, cycle: Cycle) -> list[Decision]:
        self.ran_at.append(cycle.now)
        return []


class Slow(Counting):
    every_seconds = 60.0


class Idle(Counting):
    def is_idle(self, cycle: Cycle) -> bool:
        return cycle.now < 2


def test_an_action_with_a_cadence_runs_when_its_time_has_come_and_wakes_the_scheduler() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")])
    slow = Slow()
    scheduler.actions = (slow,)

    for now in (0.0, 1.0, 59.0, 60.0, 61.0, 130.0):
        scheduler.cycle(now)

    assert slow.ran_at == [0.0, 60.0, 130.0]
    assert scheduler.next_wake(130.0) == 190.0


def test_an_idle_action_is_not_run() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")])
    idle = Idle()
    scheduler.actions = (idle,)

    scheduler.cycle(1.0)
    scheduler.cycle(2.0)

    assert idle.ran_at == [2.0]


def test_a_quiet_cycle_opens_no_attempt_for_what_places_pods() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")])
    scheduler.handle(PodSeen(make_pod("one")))
    scheduler.cycle(1.0)
    cycle = Cycle(scheduler.cluster, scheduler.queue, 2.0)

    idle = {type(action).__name__ for action in scheduler.actions if action.is_idle(cycle)}

    assert {"Place", "KeepWhole", "PartitionGpus"} <= idle


class Stepwise(Counting):
    """Takes steps until it is told to come to an end."""

    steps = 0

    def run(self, cycle: Cycle) -> list[Decision]:
        while self.steps < 100 and not cycle.is_over():
            self.steps += 1
        return []


def after_steps(most: int) -> Deadline:
    steps = iter(range(most))
    return lambda: next(steps, None) is None


@pytest.mark.parametrize(
    ("most", "steps"), [pytest.param(None, 100, id="all the time"), pytest.param(3, 6, id="steps")]
)
def test_an_action_goes_on_in_the_next_cycle_when_its_time_is_over(most: int | None, steps: int) -> None:
    scheduler = make_scheduler(nodes=[make_node("a")])
    scheduler.actions = (found := Stepwise(),)
    if most is not None:
        scheduler.new_deadline = lambda: after_steps(most)

    scheduler.cycle(0.0)
    scheduler.cycle(1.0)

    assert found.steps == steps
