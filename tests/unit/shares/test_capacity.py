"""Shares by spec in a tree of queues: what each may reach, and where on the way up a no comes from."""

import pytest

from mooring.actions.shares.demands import JobDemand, QueueSpec, Role
from mooring.actions.shares.division import BY_SPEC
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.sharing import Sharing
from mooring.errors import InvariantBroken
from mooring.state.undo import UndoLog
from mooring.testing.share_builders import amounts, fill, make_share_job, make_share_queue, make_sharing

GPU = "nvidia.com/gpu"


def make_tree(total: int = 16, **changes: dict[str, int]) -> Sharing:
    """A department of two teams beside another department; amounts of GPUs by what is to be set."""

    def spec(name: str, parent: str = "") -> QueueSpec:
        given = {part: amounts(gpu=value) for part, value in changes.get(name, {}).items()}
        return make_share_queue(name, parent=parent, **given)  # type: ignore[arg-type]

    queues = [spec("research"), spec("vision", "research"), spec("language", "research"), spec("production")]
    return make_sharing(queues, total=amounts(gpu=total), capacity=True)


def reach(sharing: Sharing, name: str) -> int:
    return sharing.report(name).real_capability[GPU]


def test_without_limits_everybody_can_reach_everything() -> None:
    sharing = make_tree()

    assert [reach(sharing, name) for name in ("root", "research", "vision", "production")] == [16, 16, 16, 16]


def test_what_is_guaranteed_to_others_is_out_of_reach_at_every_level() -> None:
    sharing = make_tree(vision={"guarantee": 3}, production={"guarantee": 4})

    # The department keeps what its team is guaranteed.
    assert sharing.report("research").guarantee == {GPU: 3}
    assert reach(sharing, "research") == 12
    assert reach(sharing, "production") == 13
    assert reach(sharing, "vision") == 12
    assert reach(sharing, "language") == 9


def test_a_parents_capability_is_its_childrens_where_they_name_none() -> None:
    sharing = make_tree(research={"capability": 6}, vision={"capability": 4})

    assert [reach(sharing, name) for name in ("research", "vision", "language")] == [6, 4, 6]


def test_the_root_can_be_limited_like_any_queue() -> None:
    queues = [QueueSpec("root", capability=amounts(gpu=5)), make_share_queue("all")]
    sharing = make_sharing(queues, [make_share_job("job", "all", members=9)], total=amounts(gpu=8), capacity=True)

    fill(sharing)

    assert sharing.report("root").allocated == {GPU: 5}
    assert sharing.why("job") == "queue root may hold 5 nvidia.com/gpu, 5 of it held; 1 more asked for"


def test_deserved_shares_lie_between_guarantee_and_reach() -> None:
    queues = [
        make_share_queue("vision", deserved=amounts(gpu=2), guarantee=amounts(gpu=3)),
        make_share_queue("language", deserved=amounts(gpu=9), capability=amounts(gpu=5)),
        make_share_queue("production", deserved=amounts(gpu=6)),
    ]
    sharing = make_sharing(queues, [], total=amounts(gpu=16), capacity=True)

    found = {name: sharing.report(name).deserved[GPU] for name in ("vision", "language", "production")}
    assert found == {"vision": 3, "language": 5, "production": 6}
    assert sharing.report("root").deserved == {GPU: 14}


def test_in_a_tree_what_is_written_is_deserved_though_a_parent_may_hold_less() -> None:
    sharing = make_tree(research={"capability": 5}, language={"deserved": 9}, vision={"deserved": 2, "guarantee": 3})

    assert [sharing.report(name).deserved[GPU] for name in ("language", "vision", "research")] == [9, 3, 12]


def test_a_no_names_the_queue_the_resource_and_the_amounts() -> None:
    deserved = {"deserved": 3}
    sharing = make_tree(research={"capability": 6}, vision=deserved, language=deserved, production={"guarantee": 8})
    for queue, members in (("vision", 5), ("language", 9), ("production", 9)):
        sharing.add(make_share_job(queue, queue, members=members))
    sharing.start_cycle(1.0)

    fill(sharing)

    assert {name: sharing.report(name).allocated[GPU] for name in ("vision", "language", "production")} == {
        "vision": 3,
        "language": 3,
        "production": 9,
    }
    expected = "queue research may hold 6 nvidia.com/gpu, 6 of it held; 1 more asked for"
    assert sharing.why("vision") == sharing.why("language") == expected
    assert sharing.why("production") == ""


def test_a_guarantee_stays_free_whoever_else_is_busy() -> None:
    """Two queues that together could take everything leave what a third is guaranteed, though each alone may."""
    queues = [make_share_queue("kept", guarantee=amounts(gpu=4)), make_share_queue("b"), make_share_queue("c")]
    jobs = [make_share_job(name, name, members=10) for name in ("b", "c")]
    sharing = make_sharing(queues, jobs, total=amounts(gpu=10), capacity=True)

    fill(sharing)
    assert sharing.report("root").allocated == {GPU: 6}
    expected = "the cluster has 10 nvidia.com/gpu, 6 of it held; 1 more asked for, and 4 kept for guarantees"
    assert sharing.why("b") == expected

    sharing.add(make_share_job("kept", "kept", members=5))
    sharing.start_cycle(1.0)
    fill(sharing)

    assert sharing.report("kept").allocated == {GPU: 4}


def test_in_a_cluster_that_has_shrunk_a_guarantee_goes_as_far_as_there_is_anything() -> None:
    queues = [make_share_queue("kept", guarantee=amounts(gpu=4)), make_share_queue("busy")]
    sharing = make_sharing(
        queues, [make_share_job("busy", "busy", members=6, held=6)], total=amounts(gpu=10), capacity=True
    )

    sharing.set_total(amounts(gpu=8))
    sharing.add(make_share_job("kept", "kept", members=5))
    sharing.add(make_share_job("more", "busy"))
    sharing.start_cycle(1.0)
    fill(sharing)

    assert sharing.report("kept").allocated == {GPU: 2}
    assert sharing.report("busy").allocated == {GPU: 6}
    assert sharing.why("kept") == "the cluster has 8 nvidia.com/gpu, 8 of it held; 1 more asked for"


def test_a_job_is_let_in_if_its_minimum_fits_beside_those_of_the_others() -> None:
    queues = [make_share_queue("research", capability=amounts(gpu=8)), make_share_queue("vision", parent="research")]
    jobs = [
        make_share_job("elastic", "vision", members=8, min_members=2, held=8),
        make_share_job("fits", "vision", members=4, min_members=4, created=1.0, enqueued=False),
        make_share_job("too-much", "vision", members=4, min_members=3, created=2.0, enqueued=False),
        make_share_job("small", "vision", members=4, min_members=2, created=3.0, enqueued=False),
    ]
    sharing = make_sharing(queues, jobs, total=amounts(gpu=16), capacity=True)

    assert sharing.next_job() is None
    assert sharing.enqueue_waiting() == ["fits", "small"]
    expected = (
        "queue vision can have 8 nvidia.com/gpu; jobs that were let in need 6, and this one 3"  # 2 + 4, not 8 + 4
    )
    assert sharing.why("too-much") == expected


def test_letting_in_follows_the_order_of_queues_and_jobs() -> None:
    queues = [make_share_queue("low"), make_share_queue("high", priority=5)]
    jobs = [
        make_share_job("low-old", "low", created=1.0, enqueued=False),
        make_share_job("high-late", "high", created=9.0, enqueued=False),
        make_share_job("high-urgent", "high", created=9.5, priority=3, enqueued=False),
    ]
    sharing = make_sharing(queues, jobs, total=amounts(gpu=8), capacity=True)

    assert sharing.enqueue_waiting() == ["high-urgent", "high-late", "low-old"]
    assert [offer.job for offer in fill(sharing)] == ["high-urgent", "high-late", "low-old"]


def test_nothing_is_let_into_a_closed_queue_or_below_one() -> None:
    queues = [QueueSpec("research", is_open=False), make_share_queue("vision", parent="research")]
    jobs = [make_share_job("new", "vision", enqueued=False), make_share_job("old", "vision")]
    sharing = make_sharing(queues, jobs, total=amounts(gpu=8), capacity=True)

    refusal = sharing.enqueueable("new")

    assert refusal is not None and (refusal.queue, str(refusal)) == ("research", "queue research is not open")
    assert sharing.next_job() is None
    assert sharing.why("old") == "queue research is not open"


def test_jobs_wait_in_queues_that_exist_and_have_none_below_them() -> None:
    sharing = make_tree()

    assert sharing.add(make_share_job("a", "nowhere")) == "queue nowhere does not exist"
    assert sharing.add(make_share_job("b", "research")) == "queue research has queues below it, and jobs wait in those"
    assert sharing.add(make_share_job("c", "vision", members=2, min_members=3)) == (
        "3 members must start together, and it has 2"
    )
    huge = JobDemand("d", "vision", (Role({GPU: 2**60}, 9),))
    assert sharing.add(huge) == "its members ask for more nvidia.com/gpu than can be counted"


def test_a_resource_that_nobody_has_heard_of_gets_a_column_of_its_own() -> None:
    sharing = make_tree()
    sharing.add(make_share_job("old", "vision", members=4, held=2))

    assert sharing.add(make_share_job("new", "vision", request={"example.com/fpga": 1})) == ""
    sharing.start_cycle(1.0)
    fill(sharing)

    assert sharing.why("new") == "the cluster has 0 example.com/fpga, 0 of it held; 1 more asked for"
    assert sharing.report("vision").allocated == {GPU: 4, "example.com/fpga": 0}
    sharing.set_total(amounts(gpu=16) | {"example.com/fpga": 2})
    sharing.start_cycle(2.0)
    fill(sharing)
    assert sharing.report("vision").allocated == {GPU: 4, "example.com/fpga": 1}


def test_two_queues_of_one_name_are_a_fault() -> None:
    with pytest.raises(InvariantBroken, match="there are two queues named a"):
        Sharing([QueueSpec("a"), QueueSpec("a")], amounts(gpu=1), ShareSettings(BY_SPEC), log=UndoLog())


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        pytest.param(["a/b"], {"a": "queue a is not used: a is below b, which does not exist"}, id="unknown parent"),
        pytest.param(
            ["a/b", "b/c"],
            {
                "a": "queue a is not used: a is below b is below c, which does not exist",
                "b": "queue b is not used: b is below c, which does not exist",
            },
            id="unknown above the parent",
        ),
        pytest.param(
            ["a/b", "b/a", "c/b"],
            {
                "a": "queue a is not used: a is below b is below a",
                "b": "queue b is not used: b is below a is below b",
                "c": "queue c is not used: b is below a is below b",
            },
            id="cycle",
        ),
        pytest.param(["a/a"], {"a": "queue a is not used: a is below a"}, id="itself"),
    ],
)
def test_queues_that_no_path_leads_to_are_left_out_and_their_jobs_told_why(
    queues: list[str], expected: dict[str, str]
) -> None:
    specs = [QueueSpec(name, parent=parent) for name, parent in (queue.split("/") for queue in queues)]
    sharing = Sharing([*specs, QueueSpec("good")], amounts(gpu=4), ShareSettings(BY_SPEC), log=UndoLog())

    refused = {name: sharing.add(JobDemand(f"job of {name}", name, (Role(amounts(gpu=1)),))) for name in expected}
    assert refused == expected
    assert sharing.add(JobDemand("other", "good", (Role(amounts(gpu=1)),))) == ""
    sharing.start_cycle(1.0)
    offer = sharing.next_job()
    assert offer is not None and offer.job == "other"
