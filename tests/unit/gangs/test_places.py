"""Where members of gangs go that want a place, or want to be near or apart; also those that come later."""

from gang_builders import (
    BLOCK,
    RACK,
    bound,
    make_gang,
    make_members,
    make_part,
    make_part_members,
    make_role,
    make_whole,
    rack_nodes,
    start,
    waiting,
)

from mooring.model.api.pods import Pod
from mooring.model.events import GangSeen, NodeSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Role, RoleGroup
from mooring.model.gangs.membership import VOLCANO_KIND
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.builders import HOSTNAME, ZONE, make_affinity, make_node, make_pod, make_pod_term
from mooring.testing.random_clusters import with_node

IN_RACK, IN_BLOCK = TopologyRequest(required=RACK), TopologyRequest(required=BLOCK)


def racks(placed: dict[str, str], prefix: str = "") -> set[str]:
    return {node.partition("-")[0] for pod, node in placed.items() if pod.startswith(prefix)}


def running(pods: list[Pod], *nodes: str) -> list[Pod]:
    return [with_node(pod, node) for pod, node in zip(pods, nodes, strict=True)]


# Places inside places.


def test_a_role_gets_a_rack_inside_the_block_of_its_gang_without_anybody_describing_the_topology() -> None:
    gang = make_gang(
        minimum=4, kind=VOLCANO_KIND, topology_request=IN_BLOCK, roles=(Role("ps", 1), Role("worker", 3, IN_RACK))
    )
    pods = [*make_role("ps", 1, gpu=2), *make_role("worker", 3, gpu=2)]
    nodes = rack_nodes({"a1": 2, "a2": 2, "b1": 1, "b2": 3})

    placed = bound(start(gang, nodes=nodes, pods=pods).cycle(1.0))

    assert racks(placed, "worker") == {"b2"}
    assert racks(placed, "ps") == {"b1"}


def test_members_of_one_role_share_its_rack_whatever_they_ask_for() -> None:
    gang = make_gang(minimum=4, kind=VOLCANO_KIND, roles=(Role("worker", 4, IN_RACK),))
    large = [make_pod(f"large-{i}", gpu=2, annotations=make_role("worker", 1)[0].metadata.annotations) for i in (0, 1)]
    pods = [*make_role("worker", 2, gpu=1), *large]

    assert not bound(start(gang, nodes=rack_nodes({"a1": 2, "a2": 2}), pods=pods).cycle(1.0))
    placed = bound(start(gang, nodes=rack_nodes({"a1": 2, "a2": 3}), pods=pods).cycle(1.0))
    assert racks(placed) == {"a2"}


def test_roles_of_one_group_share_a_rack_apart_from_others() -> None:
    together = RoleGroup(("ps", "worker"), IN_RACK)
    roles = (Role("ps", 1), Role("worker", 2), Role("router", 2))
    gang = make_gang(minimum=5, kind=VOLCANO_KIND, roles=roles, role_groups=(together,))
    pods = [*make_role("ps", 1, gpu=2), *make_role("worker", 2, gpu=2), *make_role("router", 2, gpu=2)]

    placed = bound(start(gang, nodes=rack_nodes({"a1": 3, "a2": 2}), pods=pods).cycle(1.0))

    assert racks(placed, "ps") == racks(placed, "worker") == {"a1"}
    assert racks(placed, "router") == {"a2"}


def test_gangs_inside_a_gang_get_racks_of_their_own_in_one_block() -> None:
    gangs = [
        make_whole(minimum=2, topology_request=IN_BLOCK),
        make_part("x", 2, topology_request=IN_RACK),
        make_part("y", 2, topology_request=IN_RACK),
    ]
    pods = [*make_part_members("x", 2, gpu=2), *make_part_members("y", 2, gpu=2)]

    placed = bound(start(*gangs, nodes=rack_nodes({"a1": 3, "b1": 2, "b2": 2}), pods=pods).cycle(1.0))

    assert {*racks(placed, "x"), *racks(placed, "y")} == {"b1", "b2"}
    assert len(racks(placed, "x")) == len(racks(placed, "y")) == 1


def test_slices_of_a_role_hold_though_its_members_ask_for_different_things() -> None:
    """Three GPUs in every rack: a slice of two large ones and one of two small ones do not fit into one."""
    pairs = TopologyRequest(slice_size=2, slice_level=RACK)
    gang = make_gang(minimum=4, kind=VOLCANO_KIND, roles=(Role("worker", 4, pairs),))
    small, large = make_role("worker", 4, gpu=1)[:2], make_role("worker", 4, gpu=2)[2:]
    nodes = [make_node(f"{rack}-{i}", gpu=gpu, labels={RACK: rack}) for rack in "abc" for i, gpu in enumerate((1, 2))]

    assert not bound(start(gang, nodes=nodes, pods=[*small, *large]).cycle(1.0))
    placed = bound(start(gang, nodes=[*nodes, *rack_nodes({"d1": 2})], pods=[*small, *large]).cycle(1.0))
    assert racks({pod: node for pod, node in placed.items() if pod in ("worker-2", "worker-3")}) == {"d1"}
    assert len(racks({pod: node for pod, node in placed.items() if pod in ("worker-0", "worker-1")})) == 1


# Members that come later.


def test_members_that_have_to_join_others_say_where() -> None:
    gang = make_gang(minimum=2, topology_request=IN_RACK)
    pods = running(make_members(2, gpu=1), "a1-0", "a1-0") + make_members(1, first=2, gpu=1)

    decisions = start(gang, nodes=rack_nodes({"a1": 1, "b1": 2}), pods=pods).cycle(1.0)

    message = "gang default/train: members run in rack a1, which holds 0 of 1 more members"
    assert waiting(decisions) == {"train-2": message}


def test_members_of_a_role_that_have_to_join_others_of_it_say_where() -> None:
    gang = make_gang(minimum=3, kind=VOLCANO_KIND, roles=(Role("ps", 1), Role("worker", 2, IN_RACK)))
    workers = make_role("worker", 2, gpu=1)
    pods = [*make_role("ps", 1, gpu=1), *running(workers[:1], "a1-0"), workers[1]]
    other = make_pod("other", gpu=1, node="a1-0")

    decisions = start(gang, nodes=rack_nodes({"a1": 1, "b1": 2}), pods=[*pods, other]).cycle(1.0)

    message = "gang default/train: members run in rack a1, which holds 0 of 1 more worker members, of 2 in all"
    assert set(waiting(decisions).values()) == {message}


def test_what_starts_after_a_gang_shares_its_place_and_has_its_own_inside() -> None:
    base = make_gang(minimum=1, kind=VOLCANO_KIND, topology_request=IN_BLOCK, name="base")
    scaled = make_gang(minimum=2, kind=VOLCANO_KIND, topology_request=IN_RACK, name="scaled", after=base.key)
    pods = [*running(make_role("router", 1, "base", gpu=1), "b1-0"), *make_role("worker", 2, "scaled", gpu=2)]

    apart = start(base, scaled, nodes=rack_nodes({"a1": 2, "b1": 1, "b2": 1, "b3": 1}), pods=pods).cycle(1.0)
    assert set(waiting(apart)) == {"worker-0", "worker-1"}

    placed = bound(start(base, scaled, nodes=rack_nodes({"a1": 2, "b1": 2, "b2": 3}), pods=pods).cycle(1.0))
    assert racks(placed, "worker") == {"b2"}


def test_a_gang_that_comes_back_joins_what_started_after_it() -> None:
    base = make_gang(minimum=1, kind=VOLCANO_KIND, topology_request=IN_BLOCK, name="base")
    scaled = make_gang(minimum=1, kind=VOLCANO_KIND, topology_request=IN_RACK, name="scaled", after=base.key)
    pods = [*running(make_role("worker", 1, "scaled", gpu=1), "b1-0"), *make_role("router", 1, "base", gpu=1)]

    placed = bound(start(base, scaled, nodes=rack_nodes({"a1": 1, "b1": 2, "b2": 2}, gpu=2), pods=pods).cycle(1.0))

    assert {node[0] for node in placed.values()} == {"b"}


def test_a_member_that_comes_back_goes_to_the_rack_of_its_role() -> None:
    gang = make_gang(minimum=3, kind=VOLCANO_KIND, roles=(Role("ps", 1), Role("worker", 2, IN_RACK)))
    pods = running(make_role("ps", 1, gpu=1), "a1-0") + running(make_role("worker", 2, gpu=1), "b1-0", "b1-0")
    scheduler = start(gang, nodes=rack_nodes({"a1": 1, "b1": 2}), pods=pods)
    scheduler.cycle(1.0)

    scheduler.handle(PodLost("default/worker-0"), NodeSeen(make_node("c", gpu=8, labels={RACK: "c1"})))
    scheduler.handle(PodSeen(make_role("worker", 1, gpu=1)[0]))

    assert racks(bound(scheduler.cycle(2.0))) == {"b1"}


def test_a_member_that_comes_back_goes_to_the_rack_of_its_part() -> None:
    gangs = [
        make_whole(minimum=2),
        make_part("x", 2, topology_request=IN_RACK),
        make_part("y", 2, topology_request=IN_RACK),
    ]
    x, y = make_part_members("x", 2, gpu=1), make_part_members("y", 2, gpu=1)
    pods = [*running(x, "a1-0", "a1-0"), *running(y, "b1-0", "b1-0")]
    scheduler = start(*gangs, nodes=rack_nodes({"a1": 1, "b1": 2, "c1": 2}), pods=pods)
    scheduler.cycle(1.0)

    scheduler.handle(PodLost("default/y-1"), PodSeen(y[1]))

    assert racks(bound(scheduler.cycle(2.0))) == {"b1"}


def test_a_member_that_comes_back_rather_goes_to_the_others_where_that_is_a_wish() -> None:
    gang = make_gang(minimum=2, topology_request=TopologyRequest(preferred=RACK))
    members = make_members(2, gpu=1)
    nodes = rack_nodes({"a1": 1, "b1": 2, "c1": 1}, gpu=1)
    scheduler = start(gang, nodes=nodes, pods=running(members, "b1-0", "b1-1"))
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/train-1"), PodSeen(members[1]))
    assert bound(scheduler.cycle(2.0)) == {"train-1": "b1-1"}

    scheduler.handle(PodLost("default/train-1"), PodSeen(make_pod("other", gpu=1, node="b1-1")), PodSeen(members[1]))
    assert len(bound(scheduler.cycle(3.0))) == 1, "elsewhere, if there is no room"


def test_a_member_that_comes_back_joins_its_slice() -> None:
    gang = make_gang(minimum=4, topology_request=TopologyRequest(slice_size=2, slice_level=RACK))
    members = make_members(4, gpu=1)
    tight = make_node("a0-0", gpu=1, labels={RACK: "a0"})
    scheduler = start(gang, nodes=[tight, *rack_nodes({"a1": 1, "b1": 1, "c1": 1})], pods=members)
    first = bound(scheduler.cycle(1.0))
    assert first["train-0"] == first["train-1"] != first["train-2"] == first["train-3"]

    scheduler.handle(PodLost("default/train-3"), PodSeen(members[3]))

    assert bound(scheduler.cycle(2.0)) == {"train-3": first["train-2"]}


# Fits that only trying can tell.


def test_slices_hold_for_members_that_may_not_share_a_node() -> None:
    apart = make_affinity(away=[make_pod_term(HOSTNAME, labels={"job": "train"})])
    gang = make_gang(minimum=4, topology_request=TopologyRequest(required=BLOCK, slice_size=2, slice_level=RACK))
    members = make_members(4, gpu=1, labels={"job": "train"}, affinity=apart)

    placed = bound(start(gang, nodes=rack_nodes({"a1": 1, "a2": 3, "a3": 2}), pods=members).cycle(1.0))

    by_rank = [placed[f"train-{i}"].partition("-")[0] for i in range(4)]
    assert by_rank[0] == by_rank[1] != by_rank[2] == by_rank[3]
    assert "a1" not in by_rank


def test_slices_that_have_to_be_near_each_other_are_taken_back_where_the_first_one_chose_badly() -> None:
    """The rack that a slice likes best is alone in its zone; the whole gang fits only in the other zone."""
    near = make_affinity(near=[make_pod_term(ZONE, labels={"job": "train"})])
    gang = make_gang(minimum=4, topology_request=TopologyRequest(required=BLOCK, slice_size=2, slice_level=RACK))
    members = make_members(4, gpu=1, labels={"job": "train"}, affinity=near)
    nodes = [
        make_node("lonely", gpu=2, zone="a", labels={RACK: "r0", BLOCK: "b"}),
        *(make_node(f"other-{i}", gpu=2, zone="b", labels={RACK: f"r{1 + i}", BLOCK: "b"}) for i in range(2)),
    ]

    for order in (nodes, nodes[::-1]):
        placed = bound(start(gang, nodes=order, pods=members).cycle(1.0))

        assert placed["train-0"] == placed["train-1"] != placed["train-2"] == placed["train-3"]
        assert "lonely" not in placed.values()


def test_a_role_with_a_place_of_its_own_is_taken_back_where_the_others_do_not_fit_beside_it() -> None:
    """The workers share a rack and the server has to be in their zone, which has room for it in one of two only."""
    near = make_affinity(near=[make_pod_term(ZONE, labels={"role": "worker"})])
    gang = make_gang(
        minimum=3, kind=VOLCANO_KIND, topology_request=IN_BLOCK, roles=(Role("ps", 1), Role("worker", 2, IN_RACK))
    )
    pods = [*make_role("ps", 1, gpu=2, affinity=near), *make_role("worker", 2, gpu=1, labels={"role": "worker"})]
    nodes = [
        make_node("tight", gpu=2, zone="a", labels={RACK: "r0", BLOCK: "b"}),
        *(make_node(f"wide-{i}", gpu=2, zone="b", labels={RACK: f"r{1 + i}", BLOCK: "b"}) for i in range(2)),
    ]

    for order in (nodes, nodes[::-1]):
        placed = bound(start(gang, nodes=order, pods=pods).cycle(1.0))

        assert len(placed) == 3
        assert placed["worker-0"] == placed["worker-1"] != placed["ps-0"]
        assert "tight" not in placed.values()


def test_neighbours_by_rank_are_near_each_other_though_they_are_tried_one_by_one() -> None:
    apart = make_affinity(away=[make_pod_term(HOSTNAME, labels={"job": "train"})])
    members = make_members(4, gpu=1, labels={"job": "train"}, affinity=apart)
    gang = make_gang(minimum=4, topology_request=TopologyRequest(required=BLOCK))
    scheduler = start(gang, nodes=rack_nodes({"a1": 2, "a2": 2}), pods=members)

    assert [node for _, node in sorted(bound(scheduler.cycle(1.0)).items())] == ["a1-0", "a1-1", "a2-0", "a2-1"]


def test_nodes_that_hold_as_many_of_each_kind_are_not_alike_for_both_together() -> None:
    """Both nodes hold one of three GPUs, and two of two: but only one of them holds one of each."""
    pods = [*make_members(1, gpu=3), *make_members(1, first=1, gpu=2), make_members(1, first=2, gpu=4)[0]]
    nodes = [make_node("a", gpu=4), make_node("b", gpu=5)]

    placed = bound(start(make_gang(minimum=3), nodes=nodes, pods=pods).cycle(1.0))

    assert placed == {"train-0": "b", "train-1": "b", "train-2": "a"}


def test_members_that_want_each_other_in_a_chain_are_placed_in_its_order() -> None:
    near_a, near_b = ([make_pod_term(HOSTNAME, labels={"role": role})] for role in "ab")
    pods = [
        *make_members(1, gpu=2, labels={"role": "c"}, affinity=make_affinity(near=near_b)),
        *make_members(1, first=1, gpu=1, labels={"role": "b"}, affinity=make_affinity(near=near_a)),
        *make_members(1, first=2, labels={"role": "a"}),
    ]
    nodes = [make_node("small", gpu=2), make_node("large", gpu=3)]

    assert set(bound(start(make_gang(minimum=3), nodes=nodes, pods=pods).cycle(1.0)).values()) == {"large"}


def test_what_was_refused_says_nothing_of_a_gang_with_other_roles() -> None:
    """Four members of one shape each: three and one do not fit into racks of their own, two and two do."""
    roles = (Role("ps", 1, IN_RACK), Role("worker", 1, IN_RACK))
    gangs = [
        make_gang(name, 4, kind=VOLCANO_KIND, roles=roles, created=created)
        for name, created in (("x", 0.0), ("y", 1.0))
    ]
    x = [*make_role("ps", 1, "x", gpu=1), *make_role("worker", 3, "x", gpu=1)]
    y = [
        make_pod(f"y-{pod.metadata.name}", gpu=1, annotations=pod.metadata.annotations)
        for pod in (*make_role("ps", 2, "y"), *make_role("worker", 2, "y"))
    ]
    decisions = start(*gangs, nodes=rack_nodes({"a1": 1, "a2": 1}), pods=[*x, *y]).cycle(1.0)

    assert set(waiting(decisions)) == {pod.metadata.name for pod in x}
    assert set(bound(decisions)) == {pod.metadata.name for pod in y}


def test_a_gang_takes_as_many_of_its_members_as_its_rack_holds() -> None:
    gang = make_gang(minimum=2, topology_request=IN_RACK)
    scheduler = start(gang, nodes=rack_nodes({"a1": 1, "a2": 2}), pods=make_members(6, gpu=1))

    placed = bound(scheduler.cycle(1.0))

    assert racks(placed) == {"a2"}
    assert set(placed) == {"train-0", "train-1", "train-2", "train-3"}


def test_a_gang_that_gives_up_its_wish_lets_spare_members_go_anywhere() -> None:
    scheduler = start(make_gang(minimum=2, topology_request=IN_RACK), nodes=rack_nodes({"a1": 1, "b1": 1}))
    scheduler.handle(*map(PodSeen, make_members(3, gpu=1)))
    assert len(bound(scheduler.cycle(1.0))) == 2

    scheduler.handle(GangSeen(make_gang(minimum=2)))

    assert set(bound(scheduler.cycle(2.0))) == {"train-2"}
