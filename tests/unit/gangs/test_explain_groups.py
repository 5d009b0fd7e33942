"""What is said of a gang that waits: what it wants, how many members fit where, what each level has to hold."""

from gang_builders import (
    BLOCK,
    RACK,
    make_gang,
    make_members,
    make_part,
    make_part_members,
    make_role,
    make_whole,
    rack_nodes,
    start,
)

from mooring.actions.gangs.explain import GangExplanation, explain_gang
from mooring.actions.gangs.explain_groups import GroupRoom
from mooring.actions.place.action import Place
from mooring.engine.cycle import Scheduler
from mooring.model.gangs.gang import Role
from mooring.model.gangs.membership import VOLCANO_KIND
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.builders import HOSTNAME, make_affinity, make_node, make_pod_term
from mooring.testing.random_clusters import with_node

IN_RACK, IN_BLOCK = TopologyRequest(required=RACK), TopologyRequest(required=BLOCK)


def explained(scheduler: Scheduler) -> GangExplanation:
    scheduler.cycle(1.0)
    (gang,) = scheduler.queue.gangs
    (place,) = [action for action in scheduler.actions if isinstance(action, Place)]
    return explain_gang(scheduler.cluster, scheduler.queue, gang, place.gangs)


def levels(group: GroupRoom) -> list[tuple[str, int, str, int, int | None]]:
    return [(found.title, found.domains, found.domain, found.holds, found.needed) for found in group.levels]


def test_a_slice_needs_no_more_than_its_size_at_its_level() -> None:
    gang = make_gang(minimum=6, topology_request=TopologyRequest(required=BLOCK, slice_size=2, slice_level=RACK))

    found = explained(start(gang, nodes=rack_nodes({"a1": 1, "a2": 1}), pods=make_members(6, gpu=1)))

    assert found.message == "gang default/train: largest block holds 4 of 6 members in slices of 2"
    assert levels(found.groups[0]) == [("topology", 1, "", 4, 6), ("block", 1, "a", 4, 6), ("rack", 2, "a/a1", 2, 2)]


def test_what_a_role_asks_for_is_told_and_counted() -> None:
    gang = make_gang(minimum=4, kind=VOLCANO_KIND, roles=(Role("ps", 1), Role("worker", 3, IN_RACK)))
    pods = [*make_role("ps", 1, gpu=2), *make_role("worker", 3, gpu=1)]

    found = explained(start(gang, nodes=rack_nodes({"a1": 1, "a2": 1}), pods=pods))

    assert found.wants == "worker all in one example.com/rack"
    assert found.message == "gang default/train: largest rack holds 2 of 3 worker members, of 4 in all"
    assert {group.role: levels(group) for group in found.groups} == {
        "ps": [],
        "worker": [("topology", 1, "", 4, 3), ("rack", 2, "a1", 2, 3)],
    }


def test_of_many_roles_that_ask_for_the_same_some_are_named() -> None:
    roles = [f"role-{index}" for index in range(5)]
    gang = make_gang(minimum=5, kind=VOLCANO_KIND, roles=tuple(Role(role, 1, IN_RACK) for role in roles))
    pods = [pod for role in roles for pod in make_role(role, 1, gpu=2)]

    found = explained(start(gang, nodes=rack_nodes({"a1": 1}), pods=pods))

    assert found.wants == "role-0, role-1, role-2 and 2 more each all in one example.com/rack"


def test_groups_that_ask_for_the_same_need_the_common_place_together() -> None:
    gangs = [
        make_whole(minimum=2, topology_request=IN_BLOCK),
        make_part("x", 2, topology_request=IN_RACK),
        make_part("y", 2, topology_request=IN_RACK),
    ]
    pods = [*make_part_members("x", 2, gpu=1), *make_part_members("y", 2, gpu=1)]

    found = explained(start(*gangs, nodes=rack_nodes({"a1": 1, "b1": 1}), pods=pods))

    assert found.wants == "all in one example.com/block, default/x, default/y each all in one example.com/rack"
    assert found.message == "gang default/all: largest block holds 2 of 4 members"
    needed = [("topology", 1, "", 4, 4), ("block", 2, "a", 2, 4), ("rack", 2, "a/a1", 2, 2)]
    assert [levels(group) for group in found.groups] == [needed, needed]


def test_only_the_domain_counts_in_which_members_run() -> None:
    members = make_members(3, gpu=1)
    pods = [with_node(members[0], "b1-0"), with_node(members[1], "b1-0"), members[2]]

    found = explained(
        start(make_gang(minimum=2, topology_request=IN_RACK), nodes=rack_nodes({"a1": 1, "b1": 1}), pods=pods)
    )

    group = found.groups[0]
    assert (group.fitting, group.nodes) == (0, ())
    assert levels(group) == [("topology", 1, "", 0, 1), ("rack", 1, "b1", 0, 1)]


def test_members_that_keep_one_another_off_a_node_are_counted_one_by_one() -> None:
    apart = make_affinity(away=[make_pod_term(HOSTNAME, labels={"job": "train"})])
    pods = make_members(4, gpu=1, labels={"job": "train"}, affinity=apart)
    scheduler = start(make_gang(minimum=4), nodes=[make_node(f"n{i}", gpu=4) for i in range(3)], pods=pods)

    found = explained(scheduler)

    assert found.message == "gang default/train: room for 3 of 4 members"
    assert (found.groups[0].fitting, found.groups[0].nodes) == (3, (("n0", 1), ("n1", 1), ("n2", 1)))
    assert not scheduler.cycle(2.0), "nothing is left behind"


def test_what_starts_after_a_gang_says_whose_place_it_shares() -> None:
    base = make_gang(minimum=1, kind=VOLCANO_KIND, topology_request=IN_BLOCK, name="base")
    scaled = make_gang(minimum=2, kind=VOLCANO_KIND, topology_request=IN_RACK, name="scaled", after=base.key)
    router = with_node(make_role("router", 1, "base", gpu=1)[0], "b1-0")
    pods = [router, *make_role("worker", 2, "scaled", gpu=2)]

    found = explained(start(base, scaled, nodes=rack_nodes({"a1": 2, "b1": 1}), pods=pods))

    assert found.wants == "all in one example.com/rack, all in one example.com/block with gang default/base"
    assert levels(found.groups[0]) == [("topology", 1, "", 0, 2), ("block", 1, "b", 0, 2), ("rack", 1, "b/b1", 0, 2)]
