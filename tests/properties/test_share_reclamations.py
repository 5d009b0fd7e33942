"""What holds of every reclamation: only from those beyond their share, no more than needed, and never in circles."""

from collections.abc import Iterator

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st
from share_stories import (
    AGING,
    CAPACITY,
    EVERY,
    HIERARCHICAL,
    LOOSE,
    PROPORTION,
    Story,
    carry_out,
    crowds,
    stories,
)

from mooring.actions.shares.jobs import Job
from mooring.actions.shares.reclaim_victims import Reclamation, Victim
from mooring.actions.shares.sharing import Sharing
from mooring.testing.share_builders import amounts, fill, make_share_job, make_share_queue, make_sharing

BY_DESERVED = (PROPORTION, LOOSE, CAPACITY, AGING)


NOW = 101.0


def reclamations(sharing: Sharing) -> Iterator[Reclamation]:
    """Look for victims for everybody who waits, and carry out what is found."""
    steps = 0
    for key in list(sharing.cache.jobs):
        if sharing.cache.jobs[key].wants_more:
            answer = sharing.find_victims(key, NOW)
            if isinstance(answer, Reclamation):
                steps += bool(answer.victims)
                yield answer
                carry_out(sharing, key, NOW)
    event(f"{min(steps, 3)} reclamations")


def amount_of(sharing: Sharing, victim: Victim) -> dict[int, int]:
    return dict(sharing.cache.jobs[victim.job].amount(victim.members))


def is_enough(sharing: Sharing, answer: Reclamation, victims: tuple[Victim, ...]) -> bool:
    """Whether the job would fit without these victims."""
    ledger, job = sharing.cache.ledger, sharing.cache.jobs[answer.job]
    with ledger.what_if():
        for victim in victims:
            ledger.remove(sharing.cache.jobs[victim.job].leaf, amount_of(sharing, victim))
        return sharing.cache.checks.allocatable(job.leaf, job.amount(answer.members)) is None


@given(crowds(*BY_DESERVED))
def test_nothing_is_taken_from_a_queue_at_or_below_its_share(sharing: Sharing) -> None:
    """Victim by victim, in the order given: their queue, and each above it below where the ways meet, is beyond."""
    for answer in reclamations(sharing):
        cache = sharing.cache
        leaf = cache.tree.row_of[answer.queue]
        held, deserved = cache.ledger.allocated.copy(), cache.shares.deserved
        wanted = cache.jobs[answer.job].amount(answer.members)
        for victim in answer.victims:
            amount = amount_of(sharing, victim)
            _, theirs = cache.tree.ways_apart(leaf, cache.jobs[victim.job].leaf)
            assert any(
                column in amount and all(held[row, column] > deserved[row, column] for row in theirs)
                for column in wanted
            )
            for row in cache.tree.paths[cache.jobs[victim.job].leaf]:
                for column, value in amount.items():
                    held[row, column] -= value


@given(crowds(*BY_DESERVED))
def test_the_reclaimer_stays_within_its_share_of_something_it_was_short_of(sharing: Sharing) -> None:
    for answer in reclamations(sharing):
        cache = sharing.cache
        job = cache.jobs[answer.job]
        wanted = job.amount(answer.members)
        after = {column: int(cache.ledger.allocated[job.leaf, column]) + value for column, value in wanted.items()}
        if answer.victims:
            assert any(after[column] <= cache.shares.deserved[job.leaf, column] for column in wanted)


def is_by_right(sharing: Sharing, answer: Reclamation, victims: tuple[Victim, ...]) -> bool:
    """Whether with only these gone the reclaimer, and all above it up to the victims, would be within their shares."""
    cache = sharing.cache
    leaf, held = cache.tree.row_of[answer.queue], cache.ledger.allocated.copy()
    wanted = cache.jobs[answer.job].amount(answer.members)
    for victim in victims:
        for column, value in amount_of(sharing, victim).items():
            held[list(cache.tree.paths[cache.jobs[victim.job].leaf]), column] -= value
    ways = [cache.tree.ways_apart(leaf, cache.jobs[victim.job].leaf)[0] for victim in victims]
    return all(
        any(
            all(held[row, column] + value <= cache.shares.deserved[row, column] for row in way)
            for column, value in wanted.items()
        )
        for way in ways
    )


@given(crowds(*BY_DESERVED))
def test_victims_are_enough_and_no_one_of_them_is_too_many(sharing: Sharing) -> None:
    """Without any one of them, or one member of it, the others do not suffice, or would not be taken by right."""
    for answer in reclamations(sharing):
        assert is_enough(sharing, answer, answer.victims)
        for victim in answer.victims:
            others = tuple(other for other in answer.victims if other is not victim)
            plans = [others]
            if not victim.is_whole:
                for index in np.flatnonzero(victim.members):
                    fewer = [count - (position == index) for position, count in enumerate(victim.members)]
                    plans.append((*others, Victim(victim.job, victim.queue, tuple(fewer), False)))
            for plan in plans:
                assert not is_enough(sharing, answer, plan) or not is_by_right(sharing, answer, plan)


@given(crowds(*EVERY))
def test_side_by_side_no_victim_is_too_many_by_amounts_alone(sharing: Sharing) -> None:
    is_flat = all(sharing.cache.tree.parent[leaf] == 0 for leaf in sharing.cache.tree.leaves)
    for answer in reclamations(sharing) if is_flat else ():
        for victim in answer.victims:
            assert not is_enough(sharing, answer, tuple(other for other in answer.victims if other is not victim))


@given(crowds(*EVERY))
def test_only_those_give_who_may_have_to(sharing: Sharing) -> None:
    for answer in reclamations(sharing):
        tree = sharing.cache.tree
        leaf = tree.row_of[answer.queue]
        for victim in answer.victims:
            job = sharing.cache.jobs[victim.job]
            assert job.leaf != leaf
            assert job.demand.is_preemptible
            _, theirs = tree.ways_apart(leaf, job.leaf)
            assert all(tree.specs[row].is_reclaimable for row in theirs)
            minimum = sharing.settings.minimum_runtime_seconds
            assert job.started is None or NOW - job.started >= minimum


@given(crowds(*EVERY))
def test_gangs_lose_their_surplus_or_everything(sharing: Sharing) -> None:
    def is_whole(job: Job, held: list[int]) -> bool:
        enough = sum(held) >= job.demand.min_members
        return enough and all(count >= role.minimum for count, role in zip(held, job.demand.roles, strict=True))

    for answer in reclamations(sharing):
        for victim in answer.victims:
            job = sharing.cache.jobs[victim.job]
            left = [held - gone for held, gone in zip(job.held, victim.members, strict=True)]
            assert min(left) >= 0 and any(victim.members)
            assert not any(left) if victim.is_whole else is_whole(job, left)


@given(crowds(*EVERY))
def test_guarantees_are_kept_by_whoever_has_them(sharing: Sharing) -> None:
    for answer in reclamations(sharing):
        tree, held = sharing.cache.tree, sharing.cache.ledger.allocated.copy()
        leaf = tree.row_of[answer.queue]
        for victim in answer.victims:
            job = sharing.cache.jobs[victim.job]
            for column, value in amount_of(sharing, victim).items():
                for row in tree.paths[job.leaf]:
                    held[row, column] -= value
                for row in tree.ways_apart(leaf, job.leaf)[1]:
                    assert held[row, column] >= tree.guarantee[row, column]


@given(stories(*EVERY))
def test_looking_leaves_no_trace(story: Story) -> None:
    sharing = story.sharing()
    for now in story.play(sharing):
        sharing.report("root")  # what queues deserve is worked out when it is first asked for
        cache = sharing.cache
        before = [columns.copy() for columns in (cache.ledger.allocated, cache.ledger.claimed, cache.shares.shares)]
        standings = [cache.hierarchical.standings(leaf) for leaf in cache.tree.leaves] if cache.hierarchical else []
        for job in list(cache.jobs.values())[:3]:
            sharing.find_victims(job.key, now)
        after = (cache.ledger.allocated, cache.ledger.claimed, cache.shares.shares)
        assert all(map(np.array_equal, before, after))
        assert not cache.hierarchical or standings == [cache.hierarchical.standings(leaf) for leaf in cache.tree.leaves]


@given(stories(CAPACITY, PROPORTION, HIERARCHICAL))
def test_taking_from_one_another_comes_to_an_end(story: Story) -> None:
    """Everybody reclaims whatever they can, cycle after cycle: soon nobody can any more."""
    sharing = story.sharing()
    for job in story.jobs:
        sharing.add(job)
    moves = 0
    for cycle in range(40):
        sharing.start_cycle(float(cycle))
        fill(sharing)
        found = [carry_out(sharing, key, float(cycle)) for key in list(sharing.cache.jobs)]
        taken = [answer for answer in found if answer is not None and answer.victims]
        moves += len(taken)
        if not taken:
            return
    raise AssertionError(f"{moves} reclamations, and no end")


@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=5),
    st.integers(0, 4),
    st.integers(8, 24),
)
def test_whoever_held_everything_shares_reach_what_is_deserved(weights: list[int], first: int, total: int) -> None:
    """One queue has the whole cluster; the others come, and in the end each has exactly its share."""
    names = [f"queue-{index}" for index in range(len(weights))]
    queues = [make_share_queue(name, weight=weight) for name, weight in zip(names, weights, strict=True)]
    owner = names[first % len(names)]
    jobs = [make_share_job(f"{owner}/old-{number:02d}", owner, held=1, created=-1.0) for number in range(total)]
    sharing = make_sharing(queues, jobs, total=amounts(gpu=total))
    for name in names:
        for number in range(total):
            sharing.add(make_share_job(f"{name}/{number:02d}", name, created=float(number)))

    for cycle in range(1, 2 * total):
        sharing.start_cycle(float(cycle))
        fill(sharing)
        waiting = [job.key for job in sharing.cache.jobs.values() if job.wants_more]
        if not any(carry_out(sharing, key, float(cycle)) for key in waiting):
            break

    reports = {name: sharing.report(name) for name in names}
    assert all(report.allocated == report.deserved for report in reports.values())
    assert sum(report.allocated["nvidia.com/gpu"] for report in reports.values()) == total
