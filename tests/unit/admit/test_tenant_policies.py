"""Our own policies beside Kueue's: room that preemption freed is held, and works start only where nodes have room."""

from collections.abc import Sequence

import pytest

from mooring.actions.admit.action import Admit as AdmitAction
from mooring.config.tenant_policy import CHECK_PLACEMENT, TenantPolicy
from mooring.model.api.kueue import LOWER_PRIORITY, STRICT_FIFO
from mooring.model.api.pods import Pod
from mooring.model.decisions import Admit, Wait
from mooring.state.cluster import Cluster
from mooring.state.workloads import Stage
from mooring.testing.builders import make_node
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import Job, TenantWorld, admitted, make_job, suspended, waits

ASKS = {CHECK_PLACEMENT: "true"}
HOLDING = TenantPolicy(hold_freed_room=True)


def small_nodes(*jobs: Job, policy: TenantPolicy | None = None, strategy: str = "") -> TenantWorld:
    """Two nodes with 4 CPU each; quota for 20."""
    queue = make_queue("queue", make_group(default=make_quota(20)), strategy=strategy)
    return TenantWorld([queue], jobs, nodes=[make_node("a", cpu=4), make_node("b", cpu=4)], policy=policy)


@pytest.mark.parametrize(
    ("check", "annotations", "starts"),
    [
        pytest.param("Never", ASKS, True, id="never, though it asks"),
        pytest.param("OnRequest", None, True, id="on request, and it does not ask"),
        pytest.param("OnRequest", ASKS, False, id="on request"),
        pytest.param("Always", None, False, id="always"),
    ],
)
def test_whose_placement_is_checked(check: str, annotations: dict[str, str] | None, starts: bool) -> None:
    job = make_job("wide", pods=3, cpu=3, annotations=annotations)

    decisions = small_nodes(job, policy=TenantPolicy(check_placement=check)).cycle()

    assert bool(admitted(decisions)) is starts


def test_a_work_that_finds_no_room_is_told_so_and_starts_when_there_is() -> None:
    first, wide = make_job("first", cpu=4, second=1), make_job("wide", pods=2, cpu=4, annotations=ASKS, second=2)
    world = small_nodes(first, wide)

    decisions = world.cycle()

    said = "pod default/wide-1 cannot be placed: 0/2 nodes are available: 2 Insufficient cpu."
    assert waits(decisions)["wide-0"] == said
    assert [found.reason for found in decisions if isinstance(found, Wait)] == ["WaitingForPlacement"] * 2
    assert "default/wide" not in world.admission.ledger
    assert world.cycle() == []

    world.succeed("default/first-0")
    assert admitted(world.cycle()) == ["wide"]


def test_those_admitted_together_do_not_count_on_the_same_room() -> None:
    jobs = [make_job(f"job-{number}", cpu=3, second=number) for number in range(3)]
    world = small_nodes(*jobs, policy=TenantPolicy(check_placement="Always"))

    assert admitted(world.settle()) == ["job-0", "job-1"]
    assert world.in_stage(Stage.WAITING) == ["job-2"]
    assert world.running() == ["job-0-0", "job-1-0"]


def test_smaller_works_pass_one_without_room_except_in_a_strict_queue() -> None:
    for strategy, expected in (("", ["small"]), (STRICT_FIFO, [])):
        jobs = [make_job("wide", pods=3, cpu=4, second=1), make_job("small", second=2)]
        world = small_nodes(*jobs, policy=TenantPolicy(check_placement="Always"), strategy=strategy)

        assert admitted(world.settle()) == expected


def test_no_workload_is_preempted_for_one_that_could_not_be_placed_even_so() -> None:
    """The victims would be admitted again, and preempted again, without end."""
    queue = make_queue("queue", make_group(default=make_quota(8)), within_queue=LOWER_PRIORITY)
    nodes = [make_node("a", cpu=4), make_node("b", cpu=4)]
    world = TenantWorld([queue], nodes=nodes, policy=TenantPolicy(check_placement="Always"))
    world.submit(make_job("low", pods=2, cpu=2))
    world.settle()
    world.submit(make_job("large", cpu=6, priority=10, second=1))

    decisions = world.settle()

    assert suspended(decisions) == []
    assert (
        waits(decisions)["large-0"]
        == "pod default/large-0 cannot be placed: 0/2 nodes are available: 2 Insufficient cpu."
    )

    world.submit(make_job("fitting", pods=2, cpu=4, priority=10, second=2))
    assert [name for name, _ in suspended(world.settle())] == ["low"]
    assert world.running() == ["fitting-0", "fitting-1"]


def test_a_check_leaves_the_cluster_as_it_was() -> None:
    world = small_nodes(make_job("wide", pods=3, cpu=3, annotations=ASKS))
    world.cycle()

    assert world.running() == []
    assert world.scheduler.cluster.nodes.requested("cpu").tolist()[:2] == [0, 0]


def test_the_way_of_checking_can_be_replaced() -> None:
    asked: list[list[str]] = []

    def rehearse(cluster: Cluster, pods: Sequence[Pod]) -> str | None:
        asked.append([pod.metadata.name for pod in pods])
        return "not on a Sunday"

    world = small_nodes(make_job("job", pods=2))
    scheduler = world.scheduler
    action = AdmitAction(scheduler.profiles, policy=TenantPolicy(check_placement="Always"), rehearse=rehearse)
    scheduler.actions = [action, *scheduler.actions[1:]]

    assert waits(world.cycle()) == dict.fromkeys(("job-0", "job-1"), "not on a Sunday")
    assert asked == [["job-0", "job-1"]]


# Freed room.


def borrowers(policy: TenantPolicy | None, quota: int = 10) -> TenantWorld:
    """Three queues borrow from a fourth; for an urgent job in one of them, that of another has just been told to go."""
    nothing = make_group(default=make_quota(0))
    queues = [
        make_queue("lender", make_group(default=make_quota(quota)), cohort="all"),
        make_queue("left", nothing, cohort="all", reclaim=LOWER_PRIORITY, borrow_policy=LOWER_PRIORITY),
        make_queue("middle", nothing, cohort="all"),
        make_queue("right", nothing, cohort="all"),
    ]
    world = TenantWorld(queues, [make_job("victim", queue="middle", cpu=10, second=1)], policy=policy)
    world.settle()
    world.finishes_evictions = False
    world.submit(make_job("preemptor", queue="left", cpu=10, priority=1, second=2))
    assert suspended(world.cycle()) == [("victim", "InCohortReclaimWhileBorrowing")]
    world.submit(make_job("newcomer", queue="right", cpu=2, priority=9, second=3))
    return world


def test_in_kueue_whoever_comes_first_takes_the_room_that_was_freed_for_another() -> None:
    world = borrowers(None)
    world.let_go()

    assert admitted(world.cycle()) == ["newcomer"]


def test_held_room_is_nobody_elses() -> None:
    world = borrowers(HOLDING)
    world.let_go()

    decisions = world.cycle()

    assert admitted(decisions) == ["preemptor"]
    assert waits(decisions)["newcomer-0"] == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 2 more needed"
    )


def test_whoever_would_take_held_room_is_told_for_whom_it_is_held() -> None:
    world = borrowers(HOLDING, quota=12)
    world.submit(make_job("another", queue="right", cpu=2, priority=8, second=4))

    decisions = world.cycle()

    assert admitted(decisions) == ["newcomer"]
    assert world.in_stage(Stage.WAITING) == ["another", "preemptor"]
    world.let_go()
    decisions = world.cycle()
    assert admitted(decisions) == ["preemptor"]


def test_held_room_is_free_again_when_the_one_it_is_held_for_is_withdrawn() -> None:
    world = borrowers(HOLDING)
    world.let_go()
    world.delete(make_job("preemptor", queue="left", cpu=10))

    assert admitted(world.cycle()) == ["newcomer"]


def test_of_two_who_make_room_at_the_same_time_both_get_theirs() -> None:
    queue = make_queue("queue", make_group(default=make_quota(10)), within_queue=LOWER_PRIORITY)
    lows = [make_job(f"low-{number}", cpu=5, second=number) for number in range(2)]
    world = TenantWorld([queue], lows, policy=HOLDING)
    world.settle()
    world.finishes_evictions = False
    world.submit(make_job("first", cpu=5, priority=1, second=10))
    world.cycle()
    world.submit(make_job("second", cpu=5, priority=2, second=11))
    world.cycle()
    world.let_go()
    world.finishes_evictions = True

    assert admitted(world.settle()) == ["first", "second"]


def test_the_head_of_a_strict_queue_is_not_passed_by_one_for_whom_room_is_held() -> None:
    queue = make_queue(strategy=STRICT_FIFO, within_queue=LOWER_PRIORITY)
    world = TenantWorld([queue], [make_job("low", cpu=10, second=1)], policy=HOLDING)
    world.settle()
    world.finishes_evictions = False
    world.submit(make_job("middle", cpu=10, priority=1, second=2))
    world.cycle()

    world.submit(make_job("high", cpu=10, priority=2, second=3))
    world.cycle()
    world.let_go()

    assert admitted(world.settle()) == ["high"]


def test_works_that_take_each_others_quota_do_not_keep_the_cycle_busy_for_ever() -> None:
    jobs = [make_job("low", cpu=10, second=1), make_job("high", cpu=10, priority=1, second=2)]
    world = TenantWorld([make_queue(within_queue=LOWER_PRIORITY)], jobs, nodes=[])

    decisions = world.settle()

    assert [found.workload for found in decisions if isinstance(found, Admit)] == ["default/high"]
