"""What raises in admission itself costs a turn or a cycle: nobody is lost, and nobody holds quota unsaid."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mooring.actions.admit.cycle.entry_processing import EntryProcessing
from mooring.actions.admit.cycle.nominate import Nominator
from mooring.actions.admit.lifecycle.lifecycle import Lifecycle
from mooring.actions.admit.lifecycle.pods import WorkloadPods
from mooring.actions.admit.quota.ledger import Ledger
from mooring.actions.admit.quota.structure import Structure
from mooring.actions.admit.quota.workload_info import Intake
from mooring.assembly import assemble
from mooring.config.settings import Settings
from mooring.config.tenant_policy import ALWAYS, TenantPolicy
from mooring.engine.plugin import Depends, Filter
from mooring.model.api.kueue import (
    BEST_EFFORT_FIFO,
    LOWER_PRIORITY,
    STRICT_FIFO,
    PodSetAssignment,
    QuotaAdmission,
    WorkloadStatus,
)
from mooring.model.events import NodeSeen
from mooring.state.workloads import Stage
from mooring.testing.builders import make_node
from mooring.testing.queueing_builders import make_flavor, make_group, make_local_queue, make_queue, make_quota
from mooring.testing.tenant_builders import (
    TenantWorld,
    admitted,
    make_job,
    replace_workload,
    suspended,
    waits,
)

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


def raise_for(patch: pytest.MonkeyPatch, owner: type, name: str, key: str) -> None:
    """Let a method raise whenever it is called for this workload."""
    whole: Callable[..., Any] = getattr(owner, name)

    def broken(self: Any, found: Any, *arguments: Any, **options: Any) -> Any:
        if getattr(found, "pending", found).key == key:
            raise ZeroDivisionError(f"in {name}")
        return whole(self, found, *arguments, **options)

    patch.setattr(owner, name, broken)


def usage(world: TenantWorld, queue: str = "queue") -> int:
    (column,) = range(len(world.admission.structure.tree.columns))
    return world.admission.structure.tree.usage_of(world.admission.structure.queues[queue].node, column)


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
    (EntryProcessing, "take"),
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
        world.now += 10.0  # nothing happens, and yet whoever was set aside comes again

    assert world.in_stage(Stage.ADMITTED) == ["small", "tiny", "urgent"]
    assert world.running() == ["small-0", "tiny-0", "urgent-0"]
    assert world.in_stage(Stage.WAITING) == ["runs"]
    assert usage(world) == 9_000
    assert world.scheduler.cluster.log.depth == 0


def test_runs_that_raise_one_after_another_are_each_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = full_queue()
    raise_once(monkeypatch, Lifecycle, "take_decisions")
    raise_once(monkeypatch, Lifecycle, "take_decisions", at=2)

    for _ in range(2):
        assert world.cycle(1.0) == []
        assert (world.in_stage(Stage.ADMITTED), usage(world)) == (["runs"], 8_000)
    assert [name for name, _ in suspended(world.cycle(1.0))] == ["runs"]


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
    assert [fault.turn for fault in world.scheduler.take_faults()] == ["default/second"]
    assert world.lifecycle.workloads == {}
    assert world.scheduler.next_wake(world.now) == world.now + 1.0

    decisions = world.cycle()
    assert (admitted(decisions), suspended(decisions)) == (["first"], [])
    decisions = world.cycle(1.0)
    assert (admitted(decisions), suspended(decisions)) == (["second"], [])
    assert world.running() == ["first-0", "second-0"]


def test_who_is_deleted_while_its_queue_changes_is_forgotten_and_the_others_go_on() -> None:
    world = TenantWorld([make_queue("queue", make_group(default=make_quota(6)))], [make_job("runs", cpu=6, second=1)])
    deleted, waiting = make_job("deleted", cpu=6, second=2), make_job("waiting", cpu=6, second=3)
    world.submit(deleted)
    world.submit(waiting)
    world.settle()
    world.delete(deleted)
    world.show(make_queue("queue", make_group(default=make_quota(12))))

    assert admitted(world.cycle(1.0)) == ["waiting"]
    assert world.scheduler.take_faults() == []
    assert world.running() == ["runs-0", "waiting-0"]


@pytest.mark.parametrize(
    ("owner", "name"),
    [(WorkloadPods, "is_done"), (WorkloadPods, "is_ready"), (Lifecycle, "take_in"), (Structure, "_compile")],
)
def test_who_runs_keeps_its_quota_when_something_raises(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = TenantWorld([make_queue()], [make_job("first", cpu=8, second=1)])
    world.cycle()
    world.submit(make_job("late", cpu=8, priority=5, second=2))
    world.show(make_queue("queue", make_group(default=make_quota(11))))
    raise_once(monkeypatch, owner, name)

    for _ in range(4):
        assert suspended(world.cycle(1.0)) == []
        assert (world.in_stage(Stage.ADMITTED), usage(world), world.running()) == (["first"], 8_000, ["first-0"])
    assert world.in_stage(Stage.WAITING) == ["late"]


def test_who_has_quota_as_the_world_says_holds_it_though_something_raised_when_it_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = TenantWorld([make_queue()])
    running = make_job("runs", cpu=8, second=1)
    assignment = PodSetAssignment(name="main", count=1, flavors={"cpu": "default"}, resource_usage={"cpu": "8"})
    status = WorkloadStatus(admission=QuotaAdmission(cluster_queue="queue", pod_set_assignments=[assignment]))
    world.submit(running._replace(queued=replace_workload(running.queued, status=status)))
    world.submit(make_job("late", cpu=8, second=2))
    raise_once(monkeypatch, WorkloadPods, "is_done")

    for _ in range(4):
        assert "late" not in admitted(world.cycle(0.25))
    assert (usage(world), world.in_stage(Stage.WAITING)) == (8_000, ["late"])


TURNS = [
    (Nominator, "nominate"),
    (EntryProcessing, "take"),
    (WorkloadPods, "bring_in_line"),
    (WorkloadPods, "is_done"),
    (Intake, "make_pending"),
    (Lifecycle, "reserve"),
]


@pytest.mark.parametrize("strategy", [BEST_EFFORT_FIFO, STRICT_FIFO])
@pytest.mark.parametrize(("owner", "name"), [pytest.param(*point, id=point[1]) for point in TURNS])
def test_a_workload_in_whose_turn_something_always_raises_is_parked_and_nobody_waits_for_it(
    owner: type, name: str, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = TenantWorld([make_queue("one", strategy=strategy), make_queue("two")])
    world.submit(make_job("bad", queue="one", cpu=1, second=1))
    world.submit(make_job("good", queue="two", cpu=1, second=2))
    world.submit(make_job("behind", queue="one", cpu=1, second=3))
    raise_for(monkeypatch, owner, name, "default/bad")

    said: dict[str, str] = {}
    for _ in range(40):
        said |= waits(world.cycle())
        wake = world.scheduler.next_wake(world.now)
        if wake is None or wake > world.now + 60.0:
            break
        world.now = wake

    assert [fault.turn for fault in world.scheduler.take_faults()] == ["default/bad"] * 5
    assert world.running() == ["behind-0", "good-0"]
    assert said["bad-0"] == f"error: ZeroDivisionError: in {name}"
    world.scheduler.handle(NodeSeen(make_node("another")))
    world.cycle()
    assert [fault.turn for fault in world.scheduler.take_faults()] == ["default/bad"]
    monkeypatch.undo()
    world.scheduler.handle(NodeSeen(make_node("another", cpu=2)))
    assert admitted(world.cycle()) == ["bad"]


class NotThree(Filter):
    """Raises for pods of three CPUs."""

    depends_on = Depends.NODE_USAGE

    def filter(self, pod: Any, nodes: Any) -> Any:
        if pod.request("cpu") == 3000:
            raise ZeroDivisionError("three")
        return np.ones(len(nodes), np.bool_)


def test_a_plugin_that_raises_where_placement_is_checked_costs_that_workload_alone() -> None:
    policy = TenantPolicy(check_placement=ALWAYS)
    world = TenantWorld([])
    world.scheduler = assemble(Settings(tenants=policy), extra_plugins=[NotThree]).new_scheduler()
    queues = [make_queue("one"), make_queue("two")]
    world.show(make_flavor("default"), *queues, make_local_queue("one"), make_local_queue("two"))
    world.scheduler.handle(NodeSeen(make_node("node", cpu=100)))
    world.submit(make_job("bad", queue="one", cpu=3, second=1))
    world.submit(make_job("good", queue="two", cpu=1, second=2))

    assert admitted(world.cycle()) == ["good"]
    assert [(fault.turn, fault.plugin) for fault in world.scheduler.take_faults()] == [("default/bad", "NotThree")]
    assert world.scheduler.next_wake(world.now) == world.now + 1.0
