"""Turns: which queue, which of its jobs, and how much of it at once."""

import pytest
from share_loads import capacity_settings, make_share_load

from mooring.actions.shares.demands import JobDemand, QueueSpec, Role
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.sharing import Offer
from mooring.actions.shares.volcano.division import PROPORTION
from mooring.errors import ConfigError, InvariantBroken
from mooring.testing.share_builders import amounts, fill, make_share_job, make_share_queue, make_sharing

GPU = "nvidia.com/gpu"
TOTAL = amounts(gpu=16)


def test_the_queue_with_the_smaller_part_of_its_share_comes_first() -> None:
    queues = [make_share_queue("a", deserved=amounts(gpu=8)), make_share_queue("b", deserved=amounts(gpu=2))]
    jobs = [make_share_job(name, name, members=4) for name in ("a", "b")]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    # 0/8 and 0/2 are a tie, decided by name; then 1/8 < 0/2 fails, 1/8 < 1/2 holds until 4/8 would pass it.
    assert [offer.queue for offer in fill(sharing)] == ["a", "b", "a", "a", "a", "b", "b", "b"]


def test_queue_priority_comes_before_shares() -> None:
    queues = [
        make_share_queue("usual", deserved=amounts(gpu=8)),
        make_share_queue("urgent", priority=1, deserved=amounts(gpu=1)),
    ]
    jobs = [make_share_job(name, name, members=3) for name in ("usual", "urgent")]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    assert [offer.queue for offer in fill(sharing)] == ["urgent"] * 3 + ["usual"] * 3


def test_a_queue_that_deserves_nothing_comes_after_those_below_their_share() -> None:
    queues = [make_share_queue("guest"), make_share_queue("owner", deserved=amounts(gpu=2))]
    jobs = [make_share_job(name, name, members=3) for name in ("guest", "owner")]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    # At its share the owner stands where the guest does, at 1, and goes first; beyond it comes after.
    assert [offer.queue for offer in fill(sharing)] == ["owner", "owner", "owner", "guest", "guest", "guest"]


def test_in_a_tree_shares_are_compared_where_the_ways_part() -> None:
    """A team with nothing waits if its department has more than the other, as its sibling took it."""
    queues = [
        make_share_queue("research", deserved=amounts(gpu=4)),
        make_share_queue("vision", parent="research", deserved=amounts(gpu=2)),
        make_share_queue("language", parent="research", deserved=amounts(gpu=2)),
        make_share_queue("production", deserved=amounts(gpu=4)),
    ]
    jobs = [
        make_share_job("vision", "vision", members=4, held=3),
        make_share_job("language", "language", members=2),
        make_share_job("production", "production", members=4, held=2),
    ]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    # 2/4 of production against 3/4 of research; a tie at 3/4 goes by the name of the team; then 3/4 against 4/4.
    assert [offer.queue for offer in fill(sharing, most=3)] == ["production", "language", "production"]


def test_jobs_of_a_queue_come_by_priority_then_share_then_age() -> None:
    jobs = [
        make_share_job("young", "all", members=2, created=2.0),
        make_share_job("old", "all", members=2, created=1.0),
        make_share_job("urgent", "all", members=2, created=3.0, priority=9),
    ]
    sharing = make_sharing([make_share_queue("all")], jobs, total=TOTAL)

    assert [offer.job for offer in fill(sharing)] == ["urgent", "urgent", "old", "young", "old", "young"]


def test_without_shares_jobs_come_one_after_another() -> None:
    jobs = [make_share_job(name, "all", members=3, created=float(age)) for age, name in enumerate(("old", "young"))]
    settings = ShareSettings(PROPORTION, orders_jobs_by_share=False)
    sharing = make_sharing([make_share_queue("all")], jobs, total=TOTAL, settings=settings)

    # A job that is not whole yet still comes before one that only grows.
    assert [offer.job for offer in fill(sharing)] == ["old", "young", "old", "old", "young", "young"]


def test_a_gang_gets_its_minimum_at_once_and_then_one_member_at_a_time() -> None:
    gang = make_share_job("gang", "all", members=6, min_members=4)
    sharing = make_sharing([make_share_queue("all")], [gang], total=TOTAL)

    assert [offer.members for offer in fill(sharing)] == [(4,), (1,), (1,)]


def test_a_gang_of_roles_needs_each_roles_minimum_and_enough_in_all() -> None:
    roles = (Role(amounts(cpu=1), 1, minimum=1), Role(amounts(gpu=1), 8, minimum=2))
    gang = JobDemand("gang", "all", roles, min_members=5)
    sharing = make_sharing([make_share_queue("all")], [gang], total=amounts(cpu=4, gpu=8))

    assert [offer.members for offer in fill(sharing)] == [(1, 4), (0, 1), (0, 1), (0, 1), (0, 1)]


def test_a_gang_waits_rather_than_start_in_part() -> None:
    jobs = [make_share_job("gang", "all", members=4, min_members=4), make_share_job("single", "all", created=1.0)]
    sharing = make_sharing([make_share_queue("all")], jobs, total=amounts(gpu=3))

    assert [offer.job for offer in fill(sharing)] == ["single"]
    assert sharing.why("gang") == "queue all deserves 3 nvidia.com/gpu and holds 0; 4 more asked for"


def test_with_room_to_spare_a_queue_may_be_let_beyond_its_share() -> None:
    queues = [make_share_queue("gang"), make_share_queue("other")]
    jobs = [
        make_share_job("gang", "gang", members=6, min_members=6),
        make_share_job("other", "other", members=2, min_members=2),
        make_share_job("never", "other", members=20, min_members=20, priority=-1),
    ]
    strict = make_sharing(queues, jobs, total=amounts(gpu=8))
    loose = make_sharing(
        queues, jobs, total=amounts(gpu=8), settings=ShareSettings(PROPORTION, stays_within_deserved=False)
    )

    assert [offer.job for offer in fill(strict)] == ["other"]
    assert [offer.job for offer in fill(loose)] == ["gang", "other"]


def test_an_offer_that_no_node_takes_is_not_made_again_in_the_same_cycle() -> None:
    jobs = [make_share_job("first", "all", members=2), make_share_job("second", "all", created=1.0)]
    sharing = make_sharing([make_share_queue("all")], jobs, total=TOTAL)

    assert sharing.next_job() == Offer("first", "all", (1,))
    sharing.refuse("first", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    assert sharing.next_job() == Offer("second", "all", (1,))
    assert sharing.why("first") == "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    sharing.allocate("second")
    assert sharing.next_job() is None

    sharing.start_cycle(1.0)
    assert sharing.next_job() == Offer("first", "all", (1,))


def test_what_was_released_waits_for_the_next_cycle() -> None:
    sharing = make_sharing([make_share_queue("all")], [make_share_job("job", "all", members=2)], total=TOTAL)
    fill(sharing)

    sharing.release("job", (1,))
    assert sharing.report("all").allocated == {GPU: 1}
    assert sharing.next_job() is None

    sharing.start_cycle(1.0)
    assert sharing.next_job() == Offer("job", "all", (1,))


def test_a_job_that_is_done_leaves_nothing_behind() -> None:
    sharing = make_sharing([make_share_queue("all")], [make_share_job("job", "all", members=3)], total=TOTAL)
    fill(sharing)

    sharing.remove("job")
    sharing.start_cycle(1.0)

    report = sharing.report("all")
    assert (report.allocated, report.demand, report.share) == ({GPU: 0}, {GPU: 0}, 0.0)
    assert sharing.next_job() is None


def test_what_cannot_be_is_a_fault() -> None:
    sharing = make_sharing([make_share_queue("all")], [make_share_job("job", "all", members=2)], total=TOTAL)

    with pytest.raises(InvariantBroken, match="job job is there already"):
        sharing.add(make_share_job("job", "all"))
    with pytest.raises(InvariantBroken, match="cannot place"):
        sharing.allocate("job", (3,))
    with pytest.raises(InvariantBroken, match="cannot release"):
        sharing.release("job", (1,))
    with pytest.raises(InvariantBroken, match="job other is not known"):
        sharing.remove("other")
    with pytest.raises(InvariantBroken, match="a role of 1 members"):
        JobDemand("x", "all", (Role({GPU: 1}, 1, held=2),))
    with pytest.raises(InvariantBroken, match="negative"):
        JobDemand("x", "all", (Role({GPU: -1}),))


@pytest.mark.parametrize(
    ("field", "value"),
    [("half_life_seconds", 0.0), ("k_value", -1.0), ("minimum_runtime_seconds", float("inf"))],
)
def test_settings_that_make_no_sense_are_refused(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"share settings: {field}: expected a number"):
        ShareSettings(PROPORTION, **{field: value})  # type: ignore[arg-type]


def test_a_weight_of_a_resource_is_not_negative() -> None:
    with pytest.raises(ConfigError, match=r"resource_weights\.cpu: expected a number of at least 0, found -1"):
        ShareSettings(PROPORTION, resource_weights={"cpu": -1.0})


@pytest.mark.parametrize("departments", [0, 3])
@pytest.mark.parametrize(
    "settings",
    [None, capacity_settings(), capacity_settings(is_hierarchical=True)],
    ids=["proportion", "capacity", "hierarchical"],
)
def test_a_load_ends_with_nobody_in_line_whom_anything_could_be_given(
    departments: int, settings: ShareSettings | None
) -> None:
    sharing = make_share_load(12, 200, departments=departments, settings=settings)
    sharing.start_cycle(0.0)

    taken = fill(sharing)

    assert len(taken) > 100
    checks = sharing.cache.checks
    for job in sharing.cache.jobs.values():
        if job.wants_more:
            assert sharing.why(job.key)
            assert checks.overused(job.leaf) or checks.allocatable(job.leaf, job.amount(job.wanted))


def test_a_spec_may_be_given_for_the_root() -> None:
    sharing = make_sharing([QueueSpec("root"), make_share_queue("all")], [make_share_job("job", "all")], total=TOTAL)

    assert sharing.next_job() == Offer("job", "all", (1,))
