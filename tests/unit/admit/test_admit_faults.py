"""What raises in admission itself costs a turn or a cycle: nobody is lost, and nobody holds quota unsaid."""

from collections.abc import Callable
from typing import Any

import pytest

from mooring.actions.admit.cycle.nominate import Nominator
from mooring.actions.admit.cycle.turns import Turns
from mooring.actions.admit.lifecycle.lifecycle import Lifecycle
from mooring.actions.admit.lifecycle.pods import WorkloadPods
from mooring.actions.admit.lifecycle.stages import Stage
from mooring.actions.admit.quota.ledger import Ledger
from mooring.model.api.kueue import LOWER_PRIORITY
from mooring.testing.queueing_builders import make_queue
from mooring.testing.tenant_builders import TenantWorld, admitted, make_job, suspended, waits

pytestmark = pytest.mark.faults


def raise_once(patch: pytest.MonkeyPatch, owner: type, name: str, *, at: int = 1) -> None:
    """Let a method raise when it is called for the so manieth time, and never again."""
    whole: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def broken(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise ZeroDivisionError(f"in {name}")
        return whole(*arguments, **options)

    patch.setattr(owner, name, broken)


def full_queue() -> TenantWorld:
    """One workload runs; three more come, of which the urgent one preempts it, and two fit besides."""
    world = TenantWorld([make_queue(within_queue=LOWER_PRIORITY)], [make_job("runs", cpu=8, second=1)])
    world.settle()
    for job in (
        make_job("urgent", cpu=6, priority=9, second=2),
        make_job("small", cpu=2, second=3),
        make_job("tiny", cpu=1, second=4),
    ):
        world.submit(job)
    return world


POINTS = [
    (Nominator, "nominate"),
    (Turns, "take"),
    (Ledger, "reserve"),
    (Ledger, "release"),
    (Ledger, "mark_evicted"),
    (Lifecycle, "reserve"),
    (Lifecycle, "preempt"),
    (Lifecycle, "follow_checks"),
    (Lifecycle, "complete_evictions"),
    (Lifecycle, "take_in"),
    (WorkloadPods, "bring_in_line"),
]


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(("owner", "name"), [pytest.param(*point, id=point[1]) for point in POINTS])
def test_after_a_fault_in_admission_everybody_ends_where_they_would_have(
    owner: type, name: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = full_queue()
    raise_once(monkeypatch, owner, name, at=at)

    for _ in range(8):
        world.settle()
        world.succeed()  # nothing happens, and yet whoever was set aside comes again

    assert world.in_stage(Stage.ADMITTED) == ["small", "tiny", "urgent"]
    assert world.running() == ["small-0", "tiny-0", "urgent-0"]
    assert world.in_stage(Stage.WAITING) == ["runs"]
    (column,) = range(len(world.admission.structure.tree.columns))
    node = world.admission.structure.queues["queue"].node
    assert world.admission.structure.tree.usage_of(node, column) == 9_000
    assert world.scheduler.cluster.log.depth == 0


def test_a_fault_in_one_workloads_turn_is_reported_and_costs_nobody_else_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = TenantWorld(
        [make_queue("left"), make_queue("right")],
        [make_job("first", queue="left", cpu=1, second=1), make_job("second", queue="right", cpu=1, second=2)],
    )
    raise_once(monkeypatch, Nominator, "nominate")

    decisions = world.cycle()

    assert admitted(decisions) == ["second"]
    assert waits(decisions) == {"first-0": "error: ZeroDivisionError: in nominate"}
    assert [(fault.turn, str(fault.error)) for fault in world.scheduler.take_faults()] == [
        ("default/first", "in nominate")
    ]


def test_what_a_run_that_raised_had_admitted_is_admitted_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    world = TenantWorld([make_queue()], [make_job("first", cpu=4, second=1), make_job("second", cpu=4, second=2)])
    raise_once(monkeypatch, WorkloadPods, "bring_in_line", at=2)

    assert world.cycle() == []
    assert [fault.turn for fault in world.scheduler.take_faults()] == ["Admit"]
    assert world.in_stage(Stage.WAITING) == ["first", "second"]

    decisions = world.cycle()
    assert (admitted(decisions), suspended(decisions)) == (["first", "second"], [])
    assert world.running() == ["first-0", "second-0"]
