"""What holds of every division by weight, and of dominant shares while a cluster fills up."""

from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from share_stories import AGING, LOOSE, PROPORTION, TOTAL, Story, stories

from mooring.actions.shares.by_weight import Past, divide
from mooring.testing.share_builders import make_share_job, make_share_queue, make_sharing


class Case(NamedTuple):
    """One resource to divide."""

    amount: int
    weights: list[int]
    low: list[int]
    high: list[int]

    def divided(self, past: Past | None = None) -> list[int]:
        low, high = (np.array(values).reshape(-1, 1) for values in (self.low, self.high))
        weights = np.array(self.weights, dtype=np.float64)
        found: list[int] = divide(np.array([self.amount]), weights, low, high, past).ravel().tolist()
        return found


@st.composite
def cases(draw: st.DrawFn, *, guarantees_fit: bool = True) -> Case:
    count = draw(st.integers(1, 8))
    several = st.lists(st.integers(0, 12), min_size=count, max_size=count)
    low = draw(several)
    high = [least + more for least, more in zip(low, draw(several), strict=True)]
    least = sum(low) if guarantees_fit else 0
    amount = draw(st.integers(least, least + 60))
    weights = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    return Case(amount, weights, low, high)


def level_shares(case: Case) -> list[float]:
    """The definition: weight times the level, kept within bounds, at the level that uses up the amount."""

    def at(level: float) -> list[float]:
        return [
            min(max(weight * level, low), high)
            for weight, low, high in zip(case.weights, case.low, case.high, strict=True)
        ]

    below, above = 0.0, 1000.0
    for _ in range(200):
        middle = (below + above) / 2
        below, above = (middle, above) if sum(at(middle)) <= case.amount else (below, middle)
    return at(below)


@given(cases())
def test_shares_are_those_of_one_level_for_all_up_to_rounding(case: Case) -> None:
    for found, exact in zip(case.divided(), level_shares(case), strict=True):
        assert abs(found - exact) < 1 + 1e-6


@given(cases(guarantees_fit=False))
def test_never_more_is_given_than_there_is_nor_than_anybody_may_have(case: Case) -> None:
    found = case.divided()

    assert sum(found) <= case.amount
    assert all(0 <= share <= high for share, high in zip(found, case.high, strict=True))


@given(cases())
def test_guarantees_are_kept_and_nothing_is_left_that_somebody_with_weight_wants(case: Case) -> None:
    found = case.divided()

    assert all(share >= low for share, low in zip(found, case.low, strict=True))
    if any(share < high and weight for share, high, weight in zip(found, case.high, case.weights, strict=True)):
        assert sum(found) == case.amount


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_queues_decides_single_units_at_most(case: Case, random: Random) -> None:
    order = list(range(len(case.weights)))
    random.shuffle(order)
    shuffled = Case(case.amount, *([values[index] for index in order] for values in case[1:]))

    found = dict(zip(order, shuffled.divided(), strict=True))

    assert all(abs(share - found[index]) <= 1 for index, share in enumerate(case.divided()))


@given(cases(), st.floats(0, 4), st.lists(st.floats(0, 1), min_size=8, max_size=8))
def test_past_use_moves_shares_within_the_same_bounds(case: Case, k_value: float, used: list[float]) -> None:
    past = Past(np.array(used[: len(case.weights)]).reshape(-1, 1), k_value)

    found = case.divided(past)

    assert sum(found) <= case.amount
    assert all(low <= share <= high for share, low, high in zip(found, case.low, case.high, strict=True))


@given(st.integers(2, 60), st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 4))
def test_of_two_equals_the_one_with_less_past_use_gets_no_less(amount: int, one: float, two: float, k: float) -> None:
    case = Case(amount, [1, 1], [0, 0], [60, 60])

    first, second = case.divided(Past(np.array([[one], [two]]), k))

    # If both had far too much, the past tells them apart no longer, and an odd unit goes by order.
    if one < two:
        assert first >= second - 1
    if two < one:
        assert second >= first - 1


@given(stories(PROPORTION, LOOSE, AGING))
def test_in_a_tree_siblings_deserve_no_more_than_their_parent(story: Story) -> None:
    sharing = story.sharing()

    for now in story.play(sharing):
        sharing.start_cycle(now)
        tree, deserved = sharing.cache.tree, sharing.cache.shares.deserved
        demand, guarantee = sharing.cache.ledger.demand, tree.guarantee
        assert (deserved[0] <= tree.total).all()
        for row in range(len(tree)):
            children = slice(tree.children[row].start, tree.children[row].stop)
            assert (deserved[children].sum(axis=0) <= deserved[row]).all()
        most = np.maximum(guarantee, np.minimum(demand, tree.real_capability))
        assert (deserved[1:] <= most[1:]).all()
        if (guarantee[0] <= tree.total).all():
            assert (deserved[1:] >= guarantee[1:]).all()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=5))
def test_while_a_cluster_fills_up_whoever_has_least_of_those_that_fit_is_next(tasks: list[tuple[int, int]]) -> None:
    """Progressive filling: each step goes to a smallest dominant share, so at the end nobody is far ahead."""
    requests = {f"user-{index}": {"cpu": cpu + 1, "nvidia.com/gpu": gpu} for index, (cpu, gpu) in enumerate(tasks)}
    jobs = [make_share_job(name, "all", members=30, min_members=0, request=found) for name, found in requests.items()]
    sharing = make_sharing([make_share_queue("all")], jobs, total=TOTAL)
    cache = sharing.cache

    while (offer := sharing.next_job()) is not None:
        free = cache.ledger.free()
        shares = {
            job.key: job.share
            for job in cache.jobs.values()
            if all(value <= free[column] for column, value in job.amount((1,)).items())
        }
        assert shares[offer.job] == min(shares.values())
        sharing.allocate(offer.job, offer.members)

    # Nobody is ahead of somebody who could still have been served by more than their own last task.
    for job in cache.jobs.values():
        step = cache.dominant.share(job.amount((1,)))
        for other in cache.jobs.values():
            fits = all(value <= cache.ledger.free()[column] for column, value in other.amount((1,)).items())
            assert not fits or job.share - step <= other.share
