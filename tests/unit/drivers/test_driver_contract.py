"""Every kind of decision that fails has an answer."""

from typing import get_args

import pytest

from mooring.drivers.driver import Driver
from mooring.engine.action import Fault
from mooring.engine.cycle import Scheduler
from mooring.model.decisions import (
    Admit,
    Bind,
    Decision,
    Defer,
    Enqueue,
    Evict,
    KeepOut,
    Launch,
    Notice,
    Partition,
    Resize,
    Suspend,
    Terminate,
    Wait,
)
from mooring.model.events import Event, Failed
from mooring.model.node_offer import NodeOffer
from mooring.testing.builders import make_node, make_scheduler

DECISIONS: list[Decision] = [
    Bind("a/p", "n"),
    Evict("a/p", "n", "a/q", "reason"),
    Admit("a/w", "queue", (), "message"),
    Suspend("a/w", "reason", "message"),
    Wait("a/p", "message"),
    Notice("a/w", "message", 0.0),
    Defer("a/w", "reason", "message"),
    Enqueue("PodGroup.group/a/g"),
    KeepOut("PodGroup.group/a/g", "message"),
    Partition("node", 0, ()),
    Launch("node", NodeOffer(make_node("node"))),
    Terminate("node", "reason"),
    Resize("a/p", ()),
]


class Refusing(Driver):
    """A world that refuses everything."""

    def __init__(self, scheduler: Scheduler, decision: Decision) -> None:
        super().__init__(scheduler, 0.0)
        self.told: list[Event] = []
        scheduler.cycle = lambda now, *, at_most=0: [decision]  # type: ignore[method-assign]
        scheduler.handle = lambda *events: self.told.extend(events)  # type: ignore[method-assign]

    def carry_out(self, decision: Decision) -> str:
        return "why"

    def take_faults(self, faults: list[Fault]) -> None:
        raise AssertionError(faults)


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decision_that_failed_comes_back_as_an_event(decision: Decision) -> None:
    driver = Refusing(make_scheduler(), decision)
    driver.run_cycle(1)
    assert driver.told == [Failed(decision, "why")]


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("retry_after", [0.0, 5.0])
def test_a_scheduler_takes_back_any_decision_also_of_objects_that_are_gone(
    decision: Decision, retry_after: float
) -> None:
    scheduler = make_scheduler()
    scheduler.handle(Failed(decision, "why", retry_after))
    assert scheduler.cycle(0.0) == [] == scheduler.cycle(10.0)
    assert scheduler.take_faults() == []


def test_no_kind_of_decision_is_forgotten() -> None:
    assert {type(decision) for decision in DECISIONS} == set(get_args(Decision))
