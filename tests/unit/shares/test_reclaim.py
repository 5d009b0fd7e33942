"""Reclaim: who gives back what exceeds their share, for whom, and in which order."""

from collections.abc import Sequence

import numpy as np
import pytest

from mooring.actions.shares.checks import Refusal
from mooring.actions.shares.demands import JobDemand, Role
from mooring.actions.shares.division import BY_SPEC
from mooring.actions.shares.reclaim_victims import Reclamation, Victim
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.sharing import Sharing
from mooring.testing.share_builders import amounts, make_share_job, make_share_queue, make_sharing

GPU = "nvidia.com/gpu"
TOTAL = amounts(gpu=8)
HALF = amounts(gpu=4)


def make_world(
    *jobs: JobDemand, capacity: bool = True, minimum_runtime: float | None = None, reclaimable: bool = True
) -> Sharing:
    """Two queues that deserve half of 8 GPUs each; what others hold is in `greedy`."""
    queues = [
        make_share_queue("starving", deserved=HALF),
        make_share_queue("greedy", deserved=HALF, minimum_runtime=minimum_runtime, reclaimable=reclaimable),
    ]
    return make_sharing(queues, jobs, total=TOTAL, capacity=capacity)


def singles(queue: str, count: int, *, priority: int = 0, started: float | None = None) -> list[JobDemand]:
    return [
        make_share_job(f"{queue}-{number}", queue, held=1, created=float(number), priority=priority, started=started)
        for number in range(count)
    ]


def victims(sharing: Sharing, job: str = "wants", now: float = 1000.0) -> list[tuple[str, tuple[int, ...]]]:
    found = sharing.find_victims(job, now)
    assert isinstance(found, Reclamation), found
    return [(victim.job, victim.members) for victim in found.victims]


def refusal(sharing: Sharing, job: str = "wants", now: float = 1000.0) -> str:
    found = sharing.find_victims(job, now)
    assert isinstance(found, Refusal), found
    return str(found)


@pytest.mark.parametrize("capacity", [True, False], ids=["by spec", "by weight"])
def test_a_queue_within_its_share_gets_it_back_from_one_beyond_its_own(capacity: bool) -> None:
    wants = make_share_job("wants", "starving", members=2, min_members=2)
    sharing = make_world(wants, *singles("greedy", 8), capacity=capacity)

    found = sharing.find_victims("wants", 1000.0)

    # The youngest of equal jobs go first, and no more of them than are needed.
    expected = (Victim("greedy-7", "greedy", (1,), True), Victim("greedy-6", "greedy", (1,), True))
    assert found == Reclamation("wants", "starving", (2,), expected)


def test_carried_out_it_makes_room_for_the_job_and_for_nobody_else() -> None:
    wants = make_share_job("wants", "starving", members=2, min_members=2)
    sharing = make_world(wants, *singles("greedy", 8))
    found = sharing.find_victims("wants", 1000.0)
    assert isinstance(found, Reclamation)

    for victim in found.victims:
        sharing.release(victim.job, victim.members)
    sharing.allocate(found.job, found.members)

    assert sharing.report("starving").allocated == {GPU: 2}
    assert sharing.report("greedy").allocated == {GPU: 6}
    assert sharing.next_job() is None


def test_nothing_changes_while_victims_are_looked_for() -> None:
    wants = make_share_job("wants", "starving", members=2, min_members=2)
    sharing = make_world(wants, *singles("greedy", 8))
    ledger, shares = sharing.cache.ledger, sharing.cache.shares
    before = ledger.allocated.copy(), ledger.claimed.copy(), shares.shares.copy()

    victims(sharing)

    assert all(map(np.array_equal, before, (ledger.allocated, ledger.claimed, shares.shares)))


def test_whoever_is_within_their_share_gives_nothing() -> None:
    sharing = make_world(
        make_share_job("wants", "starving", members=5, min_members=5),
        *singles("greedy", 4),
        make_share_job("mine", "starving", held=0),
    )

    # It would need 5 of 4 free: beyond what it deserves.
    expected = "queue starving deserves 4 nvidia.com/gpu and holds 0; 5 more asked for"
    assert refusal(sharing) == expected


def test_priority_does_not_matter_between_queues() -> None:
    wants = make_share_job("wants", "starving", priority=-100)
    sharing = make_world(wants, *singles("greedy", 8, priority=1000))

    assert victims(sharing) == [("greedy-7", (1,))]


def test_within_a_queue_the_lowest_priority_goes_first() -> None:
    jobs = [
        make_share_job(f"job-{level}", "greedy", held=2, members=2, min_members=2, priority=level)
        for level in (3, 1, 2)
    ]
    last = make_share_job("last", "greedy", members=2, min_members=2, held=2, priority=9)
    sharing = make_world(make_share_job("wants", "starving", members=2, min_members=2), *jobs, last)

    assert victims(sharing) == [("job-1", (2,))]


def test_a_gang_gives_what_it_can_do_without_before_any_gang_goes_as_a_whole() -> None:
    elastic = make_share_job("elastic", "greedy", members=5, min_members=2, held=5, priority=5)
    rigid = make_share_job("rigid", "greedy", members=3, min_members=3, held=3)
    wants = make_share_job("wants", "starving", members=3, min_members=3)
    sharing = make_world(wants, elastic, rigid)

    found = sharing.find_victims("wants", 1000.0)

    assert isinstance(found, Reclamation)
    assert found.victims == (Victim("elastic", "greedy", (3,), False),)


def test_a_gang_that_has_to_go_goes_as_a_whole_and_spares_the_others() -> None:
    """Four are needed: the surplus of one gang is not enough, and with the other gang gone it is not needed."""
    elastic = make_share_job("elastic", "greedy", members=4, min_members=3, held=4, priority=5)
    rigid = make_share_job("rigid", "greedy", members=4, min_members=4, held=4)
    wants = make_share_job("wants", "starving", members=4, min_members=4)
    sharing = make_world(wants, elastic, rigid)

    found = sharing.find_victims("wants", 1000.0)

    assert isinstance(found, Reclamation)
    assert found.victims == (Victim("rigid", "greedy", (4,), True),)


def test_surplus_and_a_gang_together() -> None:
    elastic = make_share_job("elastic", "greedy", members=5, min_members=4, held=5, priority=5)
    rigid = make_share_job("rigid", "greedy", members=3, min_members=3, held=3)
    wants = make_share_job("wants", "starving", members=4, min_members=4)
    sharing = make_world(wants, elastic, rigid)

    assert victims(sharing) == [("elastic", (1,)), ("rigid", (3,))]


def test_of_two_gangs_the_one_goes_that_wastes_less() -> None:
    queues = [
        make_share_queue("starving", deserved=amounts(gpu=2)),
        make_share_queue("greedy", deserved=amounts(gpu=1)),
    ]
    jobs = [
        make_share_job("large", "greedy", members=6, min_members=6, held=6, created=9.0),
        make_share_job("small", "greedy", members=2, min_members=2, held=2, created=1.0),
        make_share_job("wants", "starving", members=2, min_members=2),
    ]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    assert victims(sharing) == [("small", (2,))]


def test_roles_that_are_needed_stay_and_the_last_role_gives_first() -> None:
    roles = (Role(amounts(gpu=1), 2, minimum=1, held=2), Role(amounts(gpu=1), 6, minimum=2, held=6))
    gang = JobDemand("gang", "greedy", roles, min_members=3)
    sharing = make_world(make_share_job("wants", "starving", members=4, min_members=4), gang)

    assert victims(sharing) == [("gang", (0, 4))]


def test_a_guarantee_is_kept_even_above_the_deserved_share_of_another() -> None:
    queues = [
        make_share_queue("starving", deserved=amounts(gpu=4)),
        make_share_queue("kept", guarantee=amounts(gpu=3), deserved=amounts(gpu=3)),
        make_share_queue("greedy", deserved=amounts(gpu=1)),
    ]
    jobs = [
        make_share_job("gang", "kept", members=4, min_members=4, held=4),
        *singles("greedy", 4),
        make_share_job("wants", "starving", members=4, min_members=4),
    ]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    # The gang of four could only go as a whole, which would leave its queue without what it is guaranteed.
    assert refusal(sharing) == "what others hold beyond their shares is not enough for job wants"


def test_a_queue_that_is_not_reclaimable_gives_nothing() -> None:
    sharing = make_world(make_share_job("wants", "starving"), *singles("greedy", 8), reclaimable=False)

    assert refusal(sharing) == "what others hold beyond their shares is not enough for job wants"


def test_a_queue_that_is_not_reclaimable_protects_those_below_it_from_outside_only() -> None:
    queues = [
        make_share_queue("outside", deserved=amounts(gpu=2)),
        make_share_queue("protected", deserved=amounts(gpu=4), reclaimable=False),
        make_share_queue("a", parent="protected", deserved=amounts(gpu=2)),
        make_share_queue("b", parent="protected", deserved=amounts(gpu=2)),
    ]
    jobs = [*singles("a", 8), make_share_job("outside", "outside"), make_share_job("sibling", "b")]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    assert refusal(sharing, "outside") == "what others hold beyond their shares is not enough for job outside"
    assert victims(sharing, "sibling") == [("a-7", (1,))]


def test_jobs_that_may_not_be_preempted_stay() -> None:
    jobs = [
        make_share_job(f"job-{number}", "greedy", held=1, created=float(number), preemptible=number < 2)
        for number in range(8)
    ]
    sharing = make_world(make_share_job("wants", "starving", members=2, min_members=2), *jobs)

    assert victims(sharing) == [("job-1", (1,)), ("job-0", (1,))]


def test_a_job_runs_for_the_minimum_runtime_before_anything_is_taken_from_it() -> None:
    jobs = [*singles("greedy", 7, started=100.0), make_share_job("older", "greedy", held=1, started=50.0)]
    sharing = make_world(make_share_job("wants", "starving"), *jobs, minimum_runtime=60.0)

    assert refusal(sharing, now=109.0) == "what could be taken for it has not run for long enough yet"
    assert victims(sharing, now=110.0) == [("older", (1,))]
    assert victims(sharing, now=160.0) == [("greedy-6", (1,))]


def test_the_minimum_runtime_is_that_of_the_queue_where_the_ways_part() -> None:
    queues = [
        make_share_queue("starving", deserved=HALF),
        make_share_queue("department", minimum_runtime=60.0),
        make_share_queue("slow", parent="department", deserved=amounts(gpu=1)),
        make_share_queue("quick", parent="department", deserved=amounts(gpu=1), minimum_runtime=0.0),
        make_share_queue("small", parent="department", deserved=amounts(gpu=2)),
    ]
    jobs = [
        *singles("slow", 4, started=100.0),
        *singles("quick", 4, started=100.0),
        make_share_job("wants", "starving", members=2),
        make_share_job("inside", "small", members=2),
    ]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    # Seen from outside it is the department's, whatever its teams say; among the teams their own counts.
    refused = sharing.find_victims("wants", 120.0)
    assert isinstance(refused, Refusal)
    assert refused.again_at == 160.0
    assert victims(sharing, now=160.0) == [("quick-3", (1,))]
    assert victims(sharing, "inside", now=120.0) == [("quick-3", (1,))]


def test_the_nearest_queue_in_the_tree_gives_first() -> None:
    queues = [
        make_share_queue("research", deserved=amounts(gpu=3)),
        make_share_queue("vision", parent="research", deserved=amounts(gpu=1)),
        make_share_queue("language", parent="research", deserved=amounts(gpu=2)),
        make_share_queue("production", deserved=amounts(gpu=2)),
    ]
    jobs = [*singles("vision", 2), *singles("production", 6), make_share_job("wants", "language", members=2)]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    # Production is further beyond its share, but vision is a sibling.
    assert victims(sharing) == [("vision-1", (1,))]
    sharing.release("vision-1")
    sharing.allocate("wants")
    assert victims(sharing) == [("production-5", (1,))]


def test_a_department_beyond_its_share_settles_it_among_its_own() -> None:
    """The team is within its share, but its department is not: the other department owes it nothing."""
    queues = [
        make_share_queue("research", deserved=amounts(gpu=4)),
        make_share_queue("vision", parent="research", deserved=amounts(gpu=2), reclaimable=False),
        make_share_queue("language", parent="research", deserved=amounts(gpu=2)),
        make_share_queue("production", deserved=amounts(gpu=2)),
    ]
    jobs = [*singles("vision", 5), *singles("production", 3), make_share_job("wants", "language")]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    assert refusal(sharing) == "what others hold beyond their shares is not enough for job wants"


def test_the_queue_that_is_furthest_beyond_its_share_gives_first_and_then_the_next() -> None:
    queues = [make_share_queue("starving", deserved=amounts(gpu=6))]
    queues += [make_share_queue(name, deserved=amounts(gpu=1)) for name in ("a", "b")]
    jobs = [*singles("a", 5), *singles("b", 3), make_share_job("wants", "starving", members=4, min_members=4)]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    # 5 and 3 of 1 each: two from a, then in turns.
    assert victims(sharing) == [("a-4", (1,)), ("a-3", (1,)), ("a-2", (1,)), ("b-2", (1,))]


def test_only_what_is_short_has_to_be_within_the_share() -> None:
    """There is CPU for everybody; that the queue holds more of it than it deserves is nobody's loss."""
    queues = [
        make_share_queue("starving", deserved=amounts(cpu=1, gpu=4)),
        make_share_queue("greedy", deserved=amounts(cpu=1, gpu=4)),
    ]
    request = amounts(cpu=2, gpu=1)
    jobs = [
        make_share_job("wants", "starving", request=request),
        make_share_job("holds", "greedy", members=8, held=8, request=request),
    ]
    sharing = make_sharing(queues, jobs, total=amounts(cpu=100, gpu=8), capacity=True)

    assert victims(sharing) == [("holds", (1,))]


def test_what_is_short_and_beyond_the_share_is_not_taken_from_others() -> None:
    queues = [
        make_share_queue("starving", deserved=amounts(cpu=1, gpu=4)),
        make_share_queue("greedy", deserved=amounts(cpu=1, gpu=4)),
    ]
    request = amounts(cpu=2, gpu=1)
    jobs = [
        make_share_job("wants", "starving", request=request),
        make_share_job("holds", "greedy", members=8, held=8, request=request),
    ]
    sharing = make_sharing(queues, jobs, total=amounts(cpu=16, gpu=8), capacity=True)

    assert refusal(sharing) == "queue starving deserves 1 cpu and holds 0; 2 more asked for"


def test_shares_that_name_gpus_only_let_the_cpus_come_along() -> None:
    queues = [make_share_queue(name, deserved=HALF) for name in ("starving", "greedy")]
    request = amounts(cpu=2, gpu=1)
    jobs = [
        make_share_job("wants", "starving", request=request),
        make_share_job("cpus", "greedy", held=1, request=amounts(cpu=2), created=5.0),
        make_share_job("holds", "greedy", members=7, held=7, request=request),
    ]
    sharing = make_sharing(queues, jobs, total=amounts(cpu=16, gpu=7), capacity=True)

    assert victims(sharing) == [("holds", (1,))]


def test_what_a_share_does_not_name_is_nobodys_by_right_on_its_own() -> None:
    """GPUs there are enough; only CPUs are short, and these the queue does not deserve."""
    queues = [make_share_queue(name, deserved=HALF) for name in ("starving", "greedy")]
    request = amounts(cpu=2, gpu=1)
    jobs = [
        make_share_job("wants", "starving", request=request),
        make_share_job("holds", "greedy", members=6, held=6, request=request),
    ]
    sharing = make_sharing(queues, jobs, total=amounts(cpu=12, gpu=8), capacity=True)

    assert refusal(sharing) == "queue starving deserves 0 cpu and holds 0; 2 more asked for"


def test_a_full_department_is_relieved_by_its_own() -> None:
    """The cluster has room, the department's capability has not: only its own teams can give."""
    queues = [
        make_share_queue("research", capability=amounts(gpu=4), deserved=amounts(gpu=4)),
        make_share_queue("vision", parent="research", deserved=amounts(gpu=2)),
        make_share_queue("language", parent="research", deserved=amounts(gpu=2)),
        make_share_queue("production", deserved=amounts(gpu=1)),
    ]
    jobs = [*singles("vision", 4), *singles("production", 3), make_share_job("wants", "language")]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    assert victims(sharing) == [("vision-3", (1,))]


def test_where_there_is_room_nobody_has_to_give() -> None:
    sharing = make_world(make_share_job("wants", "starving"), *singles("greedy", 6))

    assert victims(sharing) == []


def test_amounts_are_not_places() -> None:
    """The driver knows that only one job's node would do, though any of them would free enough."""
    sharing = make_world(make_share_job("wants", "starving"), *singles("greedy", 8))
    asked: list[tuple[str, ...]] = []

    def fits(gone: Sequence[Victim]) -> bool:
        asked.append(tuple(victim.job for victim in gone))
        return "greedy-5" in asked[-1]

    found = sharing.find_victims("wants", 1000.0, fits)

    assert isinstance(found, Reclamation)
    assert [victim.job for victim in found.victims] == ["greedy-5"]
    assert ("greedy-7", "greedy-6", "greedy-5") in asked


def test_who_cannot_have_more_cannot_reclaim() -> None:
    queues = [
        make_share_queue("starving", capability=amounts(gpu=1), deserved=amounts(gpu=1)),
        make_share_queue("greedy", deserved=HALF),
    ]
    jobs = [
        make_share_job("wants", "starving", members=2, held=1),
        make_share_job("done", "starving", members=0, min_members=0),
        *singles("greedy", 7),
    ]
    sharing = make_sharing(queues, jobs, total=TOTAL, capacity=True)

    assert refusal(sharing) == "queue starving may hold 1 nvidia.com/gpu, 1 of it held; 1 more asked for"
    assert refusal(sharing, "done") == "job done has all its members"


def test_with_hierarchical_shares_victims_are_those_who_stand_behind_after_the_move() -> None:
    settings = ShareSettings(division=BY_SPEC, is_hierarchical=True)
    queues = [make_share_queue("starving"), make_share_queue("greedy")]
    wants = make_share_job("wants", "starving", members=8, min_members=3)
    more = make_share_job("more", "starving", members=2, min_members=2)
    sharing = make_sharing(queues, [wants, more, *singles("greedy", 8)], total=TOTAL, settings=settings)

    shares = sharing.cache.hierarchical
    assert shares is not None
    before = [shares.standings(leaf) for leaf in sharing.cache.tree.leaves]

    # 3 of 8 against 5 of 8.
    assert victims(sharing) == [("greedy-7", (1,)), ("greedy-6", (1,)), ("greedy-5", (1,))]
    assert [shares.standings(leaf) for leaf in sharing.cache.tree.leaves] == before
    for job in ("greedy-7", "greedy-6", "greedy-5"):
        sharing.release(job)
    sharing.allocate("wants")
    # 5 of 8 against 3 of 8 would be the other way round.
    assert refusal(sharing, "more") == "what others hold beyond their shares is not enough for job more"


def test_with_hierarchical_shares_nobody_takes_from_one_who_holds_less() -> None:
    """The large queue wants GPUs, which there are, and so stands before the small one, which has all it asks for."""
    settings = ShareSettings(division=BY_SPEC, is_hierarchical=True)
    queues = [make_share_queue("large", capability=amounts(gpu=1)), make_share_queue("small")]
    jobs = [
        make_share_job("never", "large", request=amounts(gpu=2)),
        make_share_job("wants", "large", members=7, held=6, request=amounts(cpu=1)),
        make_share_job("done", "small", members=2, held=2, request=amounts(cpu=1)),
    ]
    sharing = make_sharing(queues, jobs, total=amounts(cpu=8, gpu=8), settings=settings)
    large, small = (sharing.cache.tree.row_of[name] for name in ("large", "small"))

    assert sharing.cache.hierarchical is not None
    assert sharing.cache.hierarchical.comes_first(large, small)
    assert refusal(sharing) == "what others hold beyond their shares is not enough for job wants"
