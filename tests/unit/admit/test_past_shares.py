"""Shares that remember: effective shares, and what they mean for the order of turns and for preemption."""

import pytest

from mooring.actions.admit.cycle.policies.own_rules import LOOKS_PER_HALF_LIFE
from mooring.actions.admit.cycle.policies.past_shares import PAST_WEIGHT
from mooring.actions.admit.quota.fair_sharing import DominantShare
from mooring.config.queueing import QueueingSettings
from mooring.config.tenant_policy import TenantPolicy
from mooring.model.api.kueue import ANY
from mooring.testing.builders import written_down
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import TenantWorld, admitted, make_job, suspended

HALF_LIFE = 1000
FAIR = QueueingSettings(fair_sharing=True, pods_ready=None)
REMEMBERS = TenantPolicy(usage_half_life_seconds=HALF_LIFE)


def sharers(policy: TenantPolicy = REMEMBERS, quota: int = 4, reclaim: str = "Never", **weights: int) -> TenantWorld:
    """Queues without quota of their own, and one that lends."""
    nothing = make_group(default=make_quota(0))
    queues = [
        make_queue(name, nothing, cohort="all", weight=weight, reclaim=reclaim)
        for name, weight in (weights or {"a": 1, "b": 1}).items()
    ]
    lender = make_queue("lender", make_group(default=make_quota(quota)), cohort="all")
    return TenantWorld([lender, *queues], settings=FAIR, policy=policy)


def test_a_share_is_nine_parts_past_and_one_part_present() -> None:
    world = sharers(a=2, b=1)
    world.submit(make_job("job", queue="a", cpu=2))
    world.settle()
    assert world.admission.share("a") == pytest.approx((False, (1 - PAST_WEIGHT) * 250, 250))

    world.cycle(HALF_LIFE)
    assert world.admission.share("a") == pytest.approx((False, PAST_WEIGHT * 125 + (1 - PAST_WEIGHT) * 250, 250))
    world.succeed("default/job-0")
    world.settle()

    assert world.admission.share("a") == pytest.approx((False, PAST_WEIGHT * 125, 0))
    assert world.admission.share("a").is_zero
    assert world.admission.share("b") == DominantShare(False, 0, 0)


def test_without_a_half_life_shares_are_those_of_the_moment() -> None:
    world = sharers(TenantPolicy())
    world.submit(make_job("job", queue="a", cpu=2))
    world.settle()
    world.cycle(HALF_LIFE)

    assert world.admission.share("a") == DominantShare(False, 500, 500)


def test_who_had_less_goes_first_though_it_asks_for_more() -> None:
    for policy, first in ((TenantPolicy(), "a-1"), (REMEMBERS, "b-0")):
        world = sharers(policy)
        world.submit(make_job("a-0", queue="a", cpu=4, second=0))
        world.settle()
        world.cycle(HALF_LIFE)
        world.submit(make_job("a-1", queue="a", cpu=2, second=1))
        world.submit(make_job("b-0", queue="b", cpu=3, second=2))
        world.settle()

        world.succeed("default/a-0-0")

        assert admitted(world.settle()) == [first]


def test_what_is_ones_own_does_not_count_against_one() -> None:
    world = sharers()
    world.submit(make_job("own", queue="lender", cpu=4))
    world.settle()
    world.cycle(HALF_LIFE)

    assert world.admission.share("lender") == DominantShare(False, 0, 0)


def test_the_past_makes_a_workload_that_never_ends_give_way_and_it_is_not_taken_back_at_once() -> None:
    world = sharers(reclaim=ANY)
    world.submit(make_job("a-0", queue="a", cpu=4, second=0))
    world.settle()
    world.submit(make_job("b-0", queue="b", cpu=4, second=1))
    assert suspended(world.settle()) == []

    history = []
    for look in range(LOOKS_PER_HALF_LIFE):
        world.now += HALF_LIFE / LOOKS_PER_HALF_LIFE
        history += [(look, *found) for found in suspended(world.settle())]

    ((look, name, reason), *back) = history
    assert (name, reason) == ("a-0", "InCohortFairSharing")
    assert all(later - look > LOOKS_PER_HALF_LIFE // 8 for later, *_ in back)


def test_while_somebody_waits_shares_are_compared_now_and_then() -> None:
    world = sharers(reclaim=ANY)
    world.submit(make_job("a-0", queue="a", cpu=4, second=0))
    world.settle()
    assert world.action.next_wake(world.scheduler.cluster, world.now) is None

    world.submit(make_job("b-0", queue="b", cpu=4, second=1))
    world.settle()
    assert world.action.next_wake(world.scheduler.cluster, world.now) == world.now + HALF_LIFE / LOOKS_PER_HALF_LIFE


def test_the_past_outlasts_a_change_of_queues() -> None:
    world = sharers()
    world.submit(make_job("job", queue="a", cpu=4))
    world.settle()
    world.cycle(HALF_LIFE)
    before = world.admission.share("a")

    world.show(make_queue("c", make_group(default=make_quota(0)), cohort="all"))
    world.cycle()

    assert world.admission.share("a").value == pytest.approx(before.value)
    world.cycle(HALF_LIFE)
    assert world.admission.share("a").value == pytest.approx(PAST_WEIGHT * 750 + (1 - PAST_WEIGHT) * 1000)


def test_a_queue_of_weight_0_that_borrows_comes_after_all_others() -> None:
    world = sharers(a=0, b=1)
    world.submit(make_job("a-0", queue="a", cpu=1))
    world.submit(make_job("b-0", queue="b", cpu=3))
    world.settle()
    world.cycle(HALF_LIFE)

    assert world.admission.share("a").is_weightless
    assert world.admission.share("b") < world.admission.share("a")


def test_what_was_borrowed_counts_after_a_restart() -> None:
    before, after = sharers(), sharers()
    before.submit(make_job("a-0", queue="a", cpu=4))
    before.settle()
    before.cycle(HALF_LIFE)
    remembered = written_down(before.scheduler.remembered())
    assert list(remembered.borrowed) == ["ClusterQueue/a"]

    after.scheduler.recall(remembered)
    after.now = before.now + HALF_LIFE
    after.submit(make_job("a-1", queue="a", cpu=4, second=0))
    after.submit(make_job("b-0", queue="b", cpu=4, second=1))

    # What it held then it had all the time: half of a share of 1000, and half of the rest.
    assert admitted(after.settle()) == ["b-0"]
    assert after.admission.share("a").value == pytest.approx(PAST_WEIGHT * 750)
