"""LocalQueues of one ClusterQueue take turns by what they used: Kueue's admission fair sharing."""

import math

import pytest

from mooring.config.queueing import QueueingSettings, UsageHistory
from mooring.model.api.kueue import LOWER_PRIORITY, AdmissionScope, ClusterQueue, FairSharing, LocalQueue
from mooring.model.memory import Memory
from mooring.testing.builders import written_down
from mooring.testing.queueing_builders import make_group, make_local_queue, make_queue, make_quota
from mooring.testing.tenant_builders import TenantWorld, admitted, make_job, suspended

HALF_LIFE = 1000.0
SAMPLING = 100.0
CHARGE = 1 - 0.5 ** (SAMPLING / HALF_LIFE)
HISTORY = UsageHistory(HALF_LIFE, SAMPLING, {})


def usage_queue(mode: str = "UsageBasedAdmissionFairSharing", **given: object) -> ClusterQueue:
    queue = make_queue("queue", make_group(default=make_quota(2)), **given)  # type: ignore[arg-type]
    queue.spec.admission_scope = AdmissionScope(admission_mode=mode)
    return queue


def local_queues(**weights: int) -> list[LocalQueue]:
    found = []
    for name, weight in weights.items():
        local = make_local_queue(name, cluster_queue="queue")
        local.spec.fair_sharing = FairSharing(weight=weight)
        found.append(local)
    return found


def world_of(queue: ClusterQueue | None = None, history: UsageHistory | None = HISTORY, **weights: int) -> TenantWorld:
    settings = QueueingSettings(pods_ready=None, usage_history=history)
    locals_ = local_queues(**(weights or {"ann": 1, "bob": 1}))
    return TenantWorld([queue or usage_queue()], local_queues=locals_, settings=settings)


def usage(world: TenantWorld, name: str) -> float:
    local = world.admission.own.local
    assert local is not None
    return local.usage(f"default/{name}")


def test_who_used_less_comes_first_whatever_its_age_and_priority() -> None:
    world = world_of()
    world.submit(make_job("ann-0", queue="ann", cpu=2, second=0))
    world.settle()
    world.now += 500
    world.submit(make_job("ann-1", queue="ann", cpu=2, second=1, priority=5))
    world.submit(make_job("bob-0", queue="bob", cpu=2, second=2))
    world.settle()

    world.succeed("default/ann-0-0")

    assert admitted(world.settle()) == ["bob-0"]


@pytest.mark.parametrize("mode", ["NoAdmissionFairSharing", ""])
def test_queues_that_do_not_ask_for_it_go_by_priority_and_age(mode: str) -> None:
    world = world_of(usage_queue(mode))
    world.submit(make_job("ann-0", queue="ann", cpu=2, second=0))
    world.settle()
    world.now += 500
    world.submit(make_job("ann-1", queue="ann", cpu=2, second=1))
    world.submit(make_job("bob-0", queue="bob", cpu=2, second=2))
    world.settle()

    world.succeed("default/ann-0-0")

    assert admitted(world.settle()) == ["ann-1"]


def test_usage_is_charged_at_once_grows_while_it_lasts_and_fades_afterwards() -> None:
    world = world_of()
    world.submit(make_job("ann-0", queue="ann", cpu=2))
    world.settle()
    assert usage(world, "ann") == pytest.approx(CHARGE * 2)

    world.cycle(HALF_LIFE)
    assert usage(world, "ann") == pytest.approx(CHARGE * 2 / 2 + 1)
    world.succeed("default/ann-0-0")
    world.settle()
    world.cycle(2 * HALF_LIFE)

    assert usage(world, "ann") == pytest.approx((CHARGE + 1) / 4)
    assert usage(world, "bob") == 0


def test_at_one_moment_local_queues_alternate_by_weight() -> None:
    """Nothing was used yet: the charge for what was just admitted keeps one from taking everything."""
    queue = make_queue("queue", make_group(default=make_quota(6)))
    queue.spec.admission_scope = AdmissionScope(admission_mode="UsageBasedAdmissionFairSharing")
    world = world_of(queue, ann=2, bob=1)
    for number in range(6):
        world.submit(make_job(f"ann-{number}", queue="ann", second=number))
        world.submit(make_job(f"bob-{number}", queue="bob", second=10 + number))

    names = [name.split("-")[0] for name in admitted(world.settle())]

    assert (names.count("ann"), names.count("bob")) == (4, 2)


def test_a_local_queue_of_weight_0_comes_last() -> None:
    world = world_of(ann=0, bob=1)
    world.submit(make_job("ann-0", queue="ann", cpu=2, second=0))
    world.submit(make_job("bob-0", queue="bob", cpu=2, second=1))
    world.settle()

    assert world.running() == ["bob-0-0"]
    assert usage(world, "ann") == math.inf


def test_weights_say_what_resources_count_for_and_cpus_count_in_cores() -> None:
    world = world_of(history=UsageHistory(HALF_LIFE, SAMPLING, {"cpu": 3.0}))
    world.submit(make_job("ann-0", queue="ann", cpu="500m"))
    world.settle()

    assert usage(world, "ann") == pytest.approx(CHARGE * 0.5 * 3)


def test_without_a_half_life_nothing_is_remembered() -> None:
    world = world_of(history=UsageHistory(0.0, SAMPLING, {}))
    world.submit(make_job("ann-0", queue="ann", cpu=2))
    world.settle()
    world.now += 100

    assert usage(world, "ann") == 0


def test_a_change_of_queues_does_not_wipe_out_the_past() -> None:
    world = world_of()
    world.submit(make_job("ann-0", queue="ann", cpu=2))
    world.settle()
    world.cycle(HALF_LIFE)
    before = usage(world, "ann")

    world.show(usage_queue(strategy="StrictFIFO"))
    world.cycle()

    assert usage(world, "ann") == pytest.approx(before)
    world.cycle(HALF_LIFE)
    assert usage(world, "ann") == pytest.approx(before / 2 + 1)


def test_in_its_own_queue_a_preemptor_takes_from_who_used_most() -> None:
    world = world_of(usage_queue(within_queue=LOWER_PRIORITY))
    world.submit(make_job("ann-0", queue="ann", second=0))
    world.settle()
    world.now += 500
    world.submit(make_job("bob-0", queue="bob", second=1))
    world.settle()

    world.submit(make_job("urgent", queue="bob", priority=1, second=2))

    # By age alone the younger one, bob's, would go.
    assert suspended(world.settle())[0] == ("ann-0", "InClusterQueue")


def test_who_used_less_comes_first_after_a_restart_too() -> None:
    first = {True: "bob-0", False: "ann-1"}
    for is_recalled, expected in first.items():
        before = world_of()
        before.submit(make_job("ann-0", queue="ann", cpu=2))
        before.settle()
        before.cycle(500)
        remembered = written_down(before.scheduler.remembered())
        assert list(remembered.local_queues) == ["default/ann"]

        after = world_of()
        after.now = before.now
        if is_recalled:
            after.scheduler.recall(remembered)
        after.settle()
        assert after.scheduler.remembered() == (remembered if is_recalled else Memory())  # before anything queues
        after.submit(make_job("ann-1", queue="ann", cpu=2, second=1))
        after.submit(make_job("bob-0", queue="bob", cpu=2, second=2))
        admitted_first = admitted(after.settle())

        assert admitted_first == [expected]
        if is_recalled:
            assert usage(after, "ann") == pytest.approx(usage(before, "ann"))
