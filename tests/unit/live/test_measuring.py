"""What is counted of a scheduler at work: steps of its cycles, and answers that were kept."""

from mooring.actions.place.action import Place
from mooring.drivers.live.measuring import StepClock
from mooring.model.events import PodSeen
from mooring.testing.builders import make_node, make_pod, make_scheduler


def test_steps_are_told_as_they_begin_and_actions_of_one_kind_are_one() -> None:
    times = iter([0.0, 1.0, 3.0, 6.0, 10.0, 15.0])
    clock = StepClock(lambda: next(times))
    for name in ("CatchUp", "Share", "Share", "KeepWhole", ""):
        clock.begin(name)
    assert clock.take() == {"catch-up": 1.0, "share": 5.0, "keep-whole": 4.0}
    clock.begin("CatchUp")
    assert clock.take() == {}


def test_a_cycle_tells_every_step_in_order() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")])
    told: list[str] = []
    scheduler.on_step = told.append
    scheduler.cycle(1.0)
    assert told == ["CatchUp", "FollowUp", *(type(action).__name__ for action in scheduler.actions), ""]


def test_answers_that_are_kept_are_hits_and_those_asked_for_anew_are_misses() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")], pods=[make_pod("first", cpu=1)])
    kept = next(action.batches.kept for action in scheduler.actions if isinstance(action, Place))
    scheduler.cycle(1.0)
    assert (kept.hits, kept.misses) == (0, 1)
    scheduler.handle(PodSeen(make_pod("second", cpu=1)))
    scheduler.cycle(2.0)
    assert (kept.hits, kept.misses) == (1, 1)
    scheduler.handle(PodSeen(make_pod("other", cpu=2)))
    scheduler.cycle(3.0)
    assert (kept.hits, kept.misses) == (1, 2)
