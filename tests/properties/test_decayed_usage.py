"""Past usage: closed forms against sums over little steps, and shares that even out over time."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.actions.admit.cycle.policies.decayed import DecayedAverages
from mooring.actions.admit.cycle.policies.own_rules import OwnRules
from mooring.config.queueing import PodsReady, QueueingSettings
from mooring.config.tenant_policy import TenantPolicy
from mooring.model.api.kueue import ANY, ClusterQueue
from mooring.model.decisions import Admit
from mooring.state.undo import UndoLog
from mooring.state.workloads import WorkloadTable
from mooring.testing.queueing_builders import (
    hold,
    make_admission,
    make_cohort,
    make_group,
    make_queue,
    make_quota,
    make_workload,
)
from mooring.testing.tenant_builders import TenantWorld, make_job

HALF_LIFE = 100.0
FAIR = QueueingSettings(fair_sharing=True, pods_ready=PodsReady(timeout_seconds=1e9))

Change = tuple[float, float]
"""So many seconds after the change before it, the amount becomes this."""

changes = st.lists(st.tuples(st.sampled_from((0.0, 0.5, 7.0, 60.0, 300.0)), st.integers(0, 50).map(float)), max_size=8)


def sum_of_steps(history: list[Change], end: float) -> float:
    """The weighted integral of the definition, by the midpoints of little steps."""
    times, now = [], 0.0
    for passed, amount in history:
        now += passed
        times.append((now, amount))
    total = 0.0
    for (start, amount), (stop, _) in pairwise([*times, (end, 0.0)]):
        steps = max(1, math.ceil((stop - start) * 4))
        width = (stop - start) / steps
        for step in range(steps):
            middle = start + (step + 0.5) * width
            total += amount * width * 0.5 ** ((end - middle) / HALF_LIFE)
    return total * math.log(2) / HALF_LIFE


@given(changes, st.sampled_from((0.0, 1.0, 90.0, 700.0)))
def test_an_average_is_the_integral_over_all_that_was(history: list[Change], passed: float) -> None:
    averages: DecayedAverages[str] = DecayedAverages(HALF_LIFE)
    now = 0.0
    for seconds, amount in history:
        now += seconds
        averages.set("queue", {"cpu": amount}, now)

    end = now + passed

    expected = sum_of_steps(history, end)
    assert math.isclose(averages.at("queue", end).get("cpu", 0.0), expected, rel_tol=1e-4, abs_tol=1e-6)


@given(changes, st.lists(st.tuples(st.floats(0, 1000), st.booleans()), max_size=5))
def test_asking_and_saying_the_same_again_change_nothing(
    history: list[Change], looks: list[tuple[float, bool]]
) -> None:
    plain: DecayedAverages[str] = DecayedAverages(HALF_LIFE)
    asked: DecayedAverages[str] = DecayedAverages(HALF_LIFE)
    now, events = 0.0, []
    for seconds, amount in history:
        now += seconds
        events.append((now, amount))
    for moment, amount in events:
        plain.set("queue", {"cpu": amount}, moment)
    amount = 0.0
    for moment, given_amount, says_again in sorted(
        [(moment, given_amount, None) for moment, given_amount in events]
        + [(moment, 0.0, says_again) for moment, says_again in looks if moment < now],
        key=lambda event: event[0],
    ):
        if says_again is None:
            amount = given_amount
        asked.at("queue", moment)
        if says_again is not False:
            asked.set("queue", {"cpu": amount}, moment)

    first, second = plain.at("queue", now + 10).get("cpu", 0.0), asked.at("queue", now + 10).get("cpu", 0.0)
    assert math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-9)


@given(st.lists(st.tuples(st.sampled_from((0.0, 5.0, 80.0)), st.integers(0, 3), st.integers(1, 6)), max_size=10))
def test_what_queues_and_cohorts_borrowed_is_followed_through_every_change(
    story: list[tuple[float, int, int]],
) -> None:
    """Workloads come and go in a tree of two levels; what each node borrowed is summed up the plain way."""
    cohorts = [make_cohort("top", make_group(default=make_quota(20))), make_cohort("team", parent="top")]
    queues = [
        make_queue("left", make_group(default=make_quota(1)), cohort="team"),
        make_queue("right", make_group(default=make_quota(2)), cohort="top"),
    ]
    own = OwnRules(WorkloadTable(UndoLog()), usage_half_life_seconds=HALF_LIFE)
    admission = make_admission(queues, cohorts=cohorts, fair_sharing=True, own=own)
    past = own.past
    assert past is not None
    tree = admission.structure.tree
    watched = [admission.structure.queues["left"].node, admission.structure.queues["right"].node]
    watched.append(admission.structure.cohort_node["team"])
    histories: dict[int, list[Change]] = {node: [(0.0, 0.0)] for node in watched}
    for number, (passed, kind, size) in enumerate(story):
        past.now += passed
        admitted_workloads = sorted(admitted.pending.key for admitted in admission.ledger.admitted_workloads())
        if kind == 0 and admitted_workloads:
            admission.finish([admitted_workloads[size % len(admitted_workloads)]])
        else:
            queue = "left" if kind < 2 else "right"
            admission.add(hold(make_workload(f"w{number}", queue=queue, cpu=size), queue, usage={"cpu": size}))
        for node in watched:
            borrowed = max(0, tree.usage_of(node, 0) - tree.subtree_of(node, 0))
            histories[node].append((passed, float(borrowed)))

    past.now += 30.0

    for node in watched:
        expected = sum_of_steps(histories[node], past.now)
        assert math.isclose(past.averages(node).get("cpu", 0.0), expected, rel_tol=1e-4, abs_tol=1e-4)


# Shares over time.


def lone_slot(weights: tuple[int, ...], reclaim: str = "Never") -> list[ClusterQueue]:
    """Queues that own nothing, and a lender with quota for one workload at a time."""
    nothing = make_group(default=make_quota(0))
    queues = [
        make_queue(f"queue-{number}", nothing, cohort="all", weight=weight, reclaim=reclaim)
        for number, weight in enumerate(weights)
    ]
    return [make_queue("lender", make_group(default=make_quota(4)), cohort="all"), *queues]


def run_jobs(weights: tuple[int, ...], seconds: list[int], policy: TenantPolicy, rounds: int) -> list[float]:
    """Run jobs that each take all there is, one after another; how long each queue ran in all."""
    world = TenantWorld(lone_slot(weights), settings=FAIR, policy=policy)
    for number in range(len(weights)):
        for index in range(2):
            world.submit(make_job(f"job-{number}-{index}", queue=f"queue-{number}", cpu=4, second=number))
    ran = [0.0] * len(weights)
    count = 2
    passed = 0.0
    for turn in range(rounds):
        (started,) = [found.workload for found in world.cycle(passed) if isinstance(found, Admit)]
        number = int(started.split("-")[1])
        passed = float(seconds[(turn * 7 + number) % len(seconds)])
        ran[number] += passed
        world.succeed(f"{started}-0")
        world.submit(make_job(f"job-{number}-{count}", queue=f"queue-{number}", cpu=4, second=number))
        count += 1
    return ran


@examples(15)
@given(
    weights=st.sampled_from(((1, 1), (2, 1), (3, 1, 2))),
    seconds=st.lists(st.integers(20, 60), min_size=1, max_size=4),
)
def test_over_time_everybody_has_a_share_by_weight_though_only_one_can_run(
    weights: tuple[int, ...], seconds: list[int]
) -> None:
    ran = run_jobs(weights, seconds, TenantPolicy(usage_half_life_seconds=1000), rounds=150)

    for weight, found in zip(weights, ran, strict=True):
        assert abs(found / sum(ran) - weight / sum(weights)) < 0.08, ran


def test_without_a_memory_the_heavier_queue_runs_for_ever() -> None:
    ran = run_jobs((2, 1), [40], TenantPolicy(), rounds=30)

    assert ran[1] == 0


@pytest.mark.parametrize("weights", [(1, 1), (2, 1), (1, 3)])
def test_workloads_that_never_end_take_turns_by_weight(weights: tuple[int, int]) -> None:
    policy = TenantPolicy(usage_half_life_seconds=1000)
    world = TenantWorld(lone_slot(weights, reclaim=ANY), settings=FAIR, policy=policy)
    for number in range(2):
        world.submit(make_job(f"job-{number}", queue=f"queue-{number}", cpu=4, second=number))
    world.settle()
    ran, turns, last = [0.0, 0.0], 0, ""

    for _ in range(1200):
        (running,) = world.running()
        ran[int(running.split("-")[1])] += 20.0
        turns, last = turns + (running != last), running
        world.now += 20.0
        world.settle()

    assert abs(ran[0] / sum(ran) - weights[0] / sum(weights)) < 0.08, ran
    assert 5 < turns < 120, turns  # in 1200 looks: a turn lasts a good part of a half-life
