"""Members of one job that are not alike: who is offered a place, in which order, and who instead."""

from mooring.actions.shares.demands import JobDemand, Role
from mooring.actions.shares.jobs import Job
from mooring.actions.shares.resources import ResourceTable
from mooring.actions.shares.sharing import Sharing
from mooring.testing.share_builders import amounts, fill, make_share_queue, make_sharing

LARGE, SMALL, NONE = amounts(gpu=4), amounts(gpu=1), amounts()


def sharing_of(*roles: Role, turns: tuple[int, ...], minimum: int = 1, gpus: int = 8) -> Sharing:
    """One job in a queue that may have so many GPUs."""
    queue = make_share_queue("q", capability=amounts(gpu=gpus))
    job = JobDemand("job", "q", roles, min_members=minimum, turns=turns)
    return make_sharing([queue], [job], total=amounts(gpu=64), capacity=True)


def offers(sharing: Sharing) -> list[tuple[int, ...]]:
    return [offer.members for offer in fill(sharing)]


def test_members_are_offered_places_in_their_order() -> None:
    sharing = sharing_of(Role(LARGE, 1), Role(SMALL, 3), turns=(1, 0, 1, 1), minimum=3)

    assert offers(sharing) == [(1, 2), (0, 1)]


def test_whoever_the_queue_may_not_have_is_passed_over() -> None:
    sharing = sharing_of(Role(LARGE, 2), Role(SMALL, 3), turns=(0, 0, 1, 1, 1), minimum=3, gpus=6)

    assert offers(sharing) == [(1, 2)]


def test_those_without_requests_count_though_they_have_no_place_yet() -> None:
    sharing = sharing_of(Role(NONE, 3), Role(LARGE, 1), Role(SMALL, 2), turns=(1, 2, 2), minimum=4)

    assert offers(sharing) == [(0, 1, 0), (0, 0, 1), (0, 0, 1)]


def test_a_role_that_finds_no_node_makes_way_for_the_others_until_the_next_cycle() -> None:
    sharing = sharing_of(Role(LARGE, 2), Role(SMALL, 2), turns=(0, 1, 0, 1), minimum=2)

    offer = sharing.next_job()
    assert offer is not None
    assert (offer.members, offer.has_others) == ((1, 1), True)
    sharing.refuse("job", "no node for the large ones", {0: 0})
    assert offers(sharing) == [(0, 2)]
    assert sharing.next_job() is None

    sharing.start_cycle(1.0)
    assert offers(sharing) == [(1, 0)]


def test_a_job_that_is_not_whole_without_those_that_find_no_node_waits() -> None:
    sharing = sharing_of(Role(LARGE, 2), Role(SMALL, 2), turns=(0, 1, 0, 1), minimum=3)

    assert sharing.next_job() is not None
    sharing.refuse("job", "no node for the large ones", {0: 0})

    assert sharing.next_job() is None
    assert sharing.why("job") == "no node for the large ones"


def test_roles_of_one_kind_have_their_minimum_together() -> None:
    roles = (Role(SMALL, 2, minimum=2, kind="a"), Role(NONE, 2, minimum=1, kind="a"), Role(SMALL, 1, kind="b"))
    job = Job(JobDemand("job", "q", roles, min_members=3), 1, ResourceTable(["nvidia.com/gpu"]))

    assert job.wanted == (1, 0, 0)
    assert job.surplus([2, 2, 1]) == [(0, 0, 1), (0, 1, 0)]
    assert job.surplus([1, 2, 1]) == [(0, 0, 1)]
