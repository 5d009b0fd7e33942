"""Shares by weight: who deserves what, given everybody's weights, limits, guarantees and topology requests."""

import numpy as np
import pytest

from mooring.actions.shares.by_weight import Past, divide
from mooring.testing.share_builders import amounts, fill, make_share_job, make_share_queue, make_sharing

GPU = "nvidia.com/gpu"
MUCH = 1000


def divided(
    amount: int,
    weights: list[float],
    *,
    low: list[int] | None = None,
    high: list[int] | None = None,
    used: list[float] | None = None,
    k_value: float = 1.0,
) -> list[int]:
    count = len(weights)
    past = None if used is None else Past(np.array(used).reshape(-1, 1), k_value)
    bounds = [np.array(given).reshape(-1, 1) for given in (low or [0] * count, high or [MUCH] * count)]
    found: list[int] = divide(np.array([amount]), np.array(weights), bounds[0], bounds[1], past).ravel().tolist()
    return found


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        pytest.param([4, 8, 12], divided(24, [1, 2, 3]), id="by weight"),
        pytest.param([2, 11, 11], divided(24, [1, 1, 1], high=[2, MUCH, MUCH]), id="what one leaves is for the others"),
        pytest.param([1, 3, 4], divided(24, [1, 1, 1], high=[1, 3, 4]), id="nobody gets more than they ask for"),
        pytest.param([8, 1, 1], divided(10, [1, 1, 1], low=[8, 0, 0]), id="a guarantee comes first"),
        pytest.param([6, 2, 4], divided(12, [1, 1, 2], low=[6, 0, 0]), id="the others share the rest by weight"),
        pytest.param([6, 6], divided(12, [1, 1], low=[2, 3]), id="a guarantee within the share changes nothing"),
        pytest.param([5, 5, 2], divided(12, [1, 1, 1], low=[5, 5, 0]), id="several guarantees"),
        pytest.param([5, 3, 4], divided(12, [1, 1, 1], low=[5, 0, 0], high=[9, 3, 9]), id="both bounds at once"),
        pytest.param([4, 2], divided(6, [1, 1], low=[8, 4]), id="guarantees beyond what there is shrink alike"),
        pytest.param([0, 9], divided(9, [0, 1]), id="without weight nothing"),
        pytest.param([2, 7], divided(9, [0, 1], low=[2, 0]), id="without weight the guarantee"),
        pytest.param([0, 0], divided(9, [0, 0]), id="no weights at all"),
        pytest.param([3, 3, 2], divided(8, [1, 1, 1]), id="whole GPUs, none lost"),
        pytest.param([1, 1, 0], divided(2, [1, 1, 1]), id="fewer GPUs than queues"),
        pytest.param([0, 1, 7], divided(8, [1, 2, 17]), id="units that rounding leaves go to the largest remainders"),
        pytest.param([0, 0], divided(0, [1, 1]), id="nothing to divide"),
    ],
)
def test_division_of_one_resource(expected: list[int], found: list[int]) -> None:
    assert found == expected


def test_amounts_beyond_what_floats_hold_exactly_are_still_not_overspent() -> None:
    amount = 2**60 + 1

    found = divided(amount, [1, 1, 1], high=[2**60] * 3)

    assert sum(found) <= amount
    assert max(found) - min(found) <= 2**10


def test_whoever_had_more_of_the_past_deserves_less_now() -> None:
    # W = 1/2 each; U = 3/4 and 1/4: the weights become 1/4 and 3/4 for k = 1.
    assert divided(12, [1, 1], used=[0.75, 0.25]) == [3, 9]
    assert divided(12, [1, 1], used=[0.75, 0.25], k_value=0.0) == [6, 6]
    assert divided(12, [1, 1], used=[0.0, 0.0], k_value=5.0) == [6, 6]


def test_past_use_can_take_a_share_down_to_its_guarantee_and_no_further() -> None:
    assert divided(12, [1, 1], used=[1.0, 0.0], k_value=9.0) == [0, 12]
    assert divided(12, [1, 1], used=[1.0, 0.0], k_value=9.0, low=[4, 0]) == [4, 8]


def test_where_everybody_had_too_much_the_weights_alone_count() -> None:
    assert divided(12, [1, 2], used=[1.0, 1.0], k_value=9.0) == [4, 8]


def test_resources_are_divided_each_on_its_own() -> None:
    queues = [make_share_queue("cpus"), make_share_queue("gpus")]
    jobs = [
        make_share_job("cpus", "cpus", members=10, request=amounts(cpu=1)),
        make_share_job("gpus", "gpus", members=10, request=amounts(cpu=1, gpu=1)),
    ]

    sharing = make_sharing(queues, jobs, total=amounts(cpu=10, gpu=4))

    assert sharing.report("cpus").deserved == {"cpu": 5000, GPU: 0}
    assert sharing.report("gpus").deserved == {"cpu": 5000, GPU: 4}


def test_a_capability_limits_what_a_queue_deserves() -> None:
    queues = [make_share_queue("limited", capability=amounts(gpu=2)), make_share_queue("free")]
    jobs = [make_share_job(name, name, members=20) for name in ("limited", "free")]

    sharing = make_sharing(queues, jobs, total=amounts(gpu=10))

    assert sharing.report("limited").deserved == {GPU: 2}
    assert sharing.report("free").deserved == {GPU: 8}


def test_children_share_what_their_parent_deserves() -> None:
    queues = [
        make_share_queue("research", weight=3),
        make_share_queue("vision", parent="research", weight=1),
        make_share_queue("language", parent="research", weight=2),
        make_share_queue("production", weight=1),
    ]
    jobs = [make_share_job(name, name, members=99) for name in ("vision", "language", "production")]

    sharing = make_sharing(queues, jobs, total=amounts(gpu=16))

    found = {name: sharing.report(name).deserved[GPU] for name in ("research", "vision", "language", "production")}
    assert found == {"research": 12, "vision": 4, "language": 8, "production": 4}


def test_a_cycle_fills_every_queue_up_to_what_it_deserves() -> None:
    queues = [make_share_queue("one", weight=1), make_share_queue("two", weight=3)]
    jobs = [make_share_job(f"{name}-{number}", name) for name in ("one", "two") for number in range(20)]

    sharing = make_sharing(queues, jobs, total=amounts(gpu=16))
    taken = fill(sharing)

    assert len(taken) == 16
    assert sharing.report("one").allocated == {GPU: 4}
    assert sharing.report("two").allocated == {GPU: 12}
    assert sharing.why("one-19") == "queue one holds all that it deserves"


def test_demand_that_comes_later_is_heard_in_the_next_cycle() -> None:
    queues = [make_share_queue("early"), make_share_queue("late")]
    sharing = make_sharing(queues, [make_share_job("early", "early", members=8)], total=amounts(gpu=8))
    assert sharing.report("early").deserved == {GPU: 8}

    sharing.add(make_share_job("late", "late", members=8))
    sharing.start_cycle(1.0)

    assert sharing.report("early").deserved == {GPU: 4}
    assert sharing.report("late").deserved == {GPU: 4}
