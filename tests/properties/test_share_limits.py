"""What holds for shares whatever the queues and jobs: limits, guarantees, and that nothing drifts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from share_stories import CAPACITY, HIERARCHICAL, LOOSE, PROPORTION, TOTAL, WEIGHTED, Story, stories

from mooring.actions.shares.order import job_key
from mooring.actions.shares.sharing import Offer, Sharing
from mooring.actions.shares.tree import ROOT_ROW
from mooring.testing.share_builders import fill


@given(stories())
def test_no_capability_is_exceeded_anywhere_in_the_tree(story: Story) -> None:
    sharing = story.sharing()

    for _ in story.play(sharing):
        cache = sharing.cache
        assert (cache.ledger.allocated <= cache.tree.capability).all()
        assert (cache.ledger.allocated <= cache.tree.real_capability).all()
        assert (cache.ledger.free() >= 0).all()
        assert (cache.ledger.claimed <= np.maximum(cache.tree.capability, cache.tree.guarantee)).all()


@given(stories())
def test_what_is_guaranteed_is_there_for_its_queue_at_any_time(story: Story) -> None:
    sharing = story.sharing()

    for _ in story.play(sharing):
        tree, ledger, checks = sharing.cache.tree, sharing.cache.ledger, sharing.cache.checks
        for leaf in tree.leaves:
            missing = tree.guarantee[leaf] - ledger.allocated[leaf]
            amount = {column: int(value) for column, value in enumerate(missing) if value > 0}
            assert not checks.shortages(leaf, amount)
            assert all(value <= ledger.free()[column] for column, value in amount.items())


@given(stories())
def test_columns_are_what_a_recount_of_the_jobs_gives(story: Story) -> None:
    sharing = story.sharing()

    for _ in story.play(sharing):
        cache = sharing.cache
        tree, ledger = cache.tree, cache.ledger
        held, demand, minimums = (np.zeros_like(ledger.allocated) for _ in range(3))
        for job in cache.jobs.values():
            parts = ((held, job.held_amount), (demand, job.asked), (minimums, job.minimum_amount))
            for columns, amount in parts:
                for column, value in amount.items():
                    columns[list(tree.paths[job.leaf]), column] += value
        claimed = np.maximum(tree.guarantee, held)
        for row in reversed(range(len(tree))):
            if tree.children[row]:
                below = claimed[tree.children[row].start : tree.children[row].stop].sum(axis=0)
                claimed[row] = np.maximum(tree.guarantee[row], below)
        assert np.array_equal(ledger.allocated, held)
        assert np.array_equal(ledger.demand, demand)
        assert np.array_equal(ledger.minimums, minimums)
        assert np.array_equal(ledger.claimed, claimed)
        assert not ledger.log.depth and not len(ledger.log)


@given(stories())
def test_shares_that_follow_each_change_are_those_computed_from_nothing(story: Story) -> None:
    sharing = story.sharing()

    for _ in story.play(sharing):
        cache = sharing.cache
        assert np.array_equal(cache.shares.shares, cache.shares.compute())
        for job in cache.jobs.values():
            assert job.share == cache.dominant.share(job.held_amount)
        for leaf, holders in cache.holders.items():
            assert set(holders) == {job.key for job in cache.jobs.values() if job.leaf == leaf and job.held_members}


@given(stories(HIERARCHICAL))
def test_hierarchical_shares_that_follow_each_change_are_those_computed_from_nothing(story: Story) -> None:
    sharing = story.sharing()

    for _ in story.play(sharing):
        cache = sharing.cache
        shares = cache.hierarchical
        assert shares is not None
        fresh = cache.make_hierarchical_shares(cache.dominant)
        for job in sorted(cache.jobs.values(), key=lambda job: job.key, reverse=True):
            fresh.put_job(job.key, job.leaf, job.held_amount, job.asked)
        for leaf in cache.tree.leaves:
            assert shares.standings(leaf) == fresh.standings(leaf)


@given(stories())
def test_the_next_queue_is_the_first_of_all_that_take_part(story: Story) -> None:
    """The heaps against a plain search: at each level the best child, all keys computed from nothing."""
    sharing = story.sharing()

    for _ in story.play(sharing):
        cache = sharing.cache
        taking_part = [leaf for leaf in cache.tree.leaves if cache.takes_part(leaf)]
        best = cache.order.best()
        if not taking_part:
            assert best is None
            continue
        assert best == _plain_best(sharing, taking_part)
        line = [
            job for job in cache.jobs.values() if job.leaf == best and job.wants_more and not cache.is_parked(job.key)
        ]
        head = cache.heaps[best].head()
        assert head is min(line, key=lambda job: job_key(job, sharing.settings))


def _plain_best(sharing: Sharing, leaves: list[int]) -> int:
    tree, shares = sharing.cache.tree, sharing.cache.shares
    if sharing.cache.hierarchical is not None:
        standings = sharing.cache.hierarchical.standings
        return min(leaves, key=lambda leaf: (standings(leaf), tree.specs[leaf].created, tree.name(leaf)))
    urgency = max(tree.specs[leaf].priority for leaf in leaves)
    left = [leaf for leaf in leaves if tree.specs[leaf].priority == urgency]

    def best_below(row: int) -> int | None:
        """Of the best of each child the one whose child comes first; ties go by its own age and name."""
        if row in left:
            return row
        found = [(child, best) for child in tree.children[row] if (best := best_below(child)) is not None]
        if not found:
            return None

        def key(each: tuple[int, int]) -> tuple[float, bool, float, str]:
            child, leaf = each
            return (shares[child], not shares.has_deserved[child], tree.specs[leaf].created, tree.name(leaf))

        return min(found, key=key)[1]

    best = best_below(ROOT_ROW)
    assert best is not None
    return best


@given(stories(PROPORTION, LOOSE, CAPACITY, HIERARCHICAL, WEIGHTED))
def test_starting_anew_from_what_is_there_goes_on_the_same_way(story: Story) -> None:
    """Stop at any time, write everything down, read it again: the same offers follow."""
    sharing, again = story.sharing(), story.sharing()
    for _ in story.play(sharing):
        pass
    for demand in reversed(sharing.demands()):
        again.add(demand)

    for found in (sharing, again):
        found.start_cycle(10.0)

    assert fill(sharing) == fill(again)


@given(stories())
def test_the_same_jobs_in_whatever_order_get_the_same_offers(story: Story) -> None:
    def offers(is_reversed: bool) -> list[Offer]:
        sharing = story.sharing()
        for job in story.jobs[::-1] if is_reversed else story.jobs:
            sharing.add(job)
        sharing.start_cycle(0.0)
        return fill(sharing)

    assert offers(False) == offers(True)


@given(stories(CAPACITY), st.integers(0, 24), st.integers(0, 16))
def test_a_cluster_that_shrinks_and_grows_back_gives_the_same_again(story: Story, cpu: int, gpu: int) -> None:
    sharing, other = story.sharing(), story.sharing()
    for found in (sharing, other):
        for job in story.jobs:
            found.add(job)

    sharing.set_total({"cpu": cpu, "nvidia.com/gpu": gpu})
    sharing.start_cycle(0.0)
    fill(sharing)
    assert (sharing.cache.ledger.free() >= 0).all()
    for key in list(sharing.cache.jobs):
        sharing.release(key)
    sharing.set_total(TOTAL)
    for found in (sharing, other):
        found.start_cycle(1.0)

    assert fill(sharing) == fill(other)
