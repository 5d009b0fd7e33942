"""Gangs that prefer a place which is not to be had, or name a topology that is not there."""

from gang_builders import BLOCK, RACK, bound, make_gang, make_members, make_role, rack_nodes, start, waiting

from mooring.model.api.kueue import Topology, TopologyLevel, TopologySpec
from mooring.model.api.meta import ObjectMeta
from mooring.model.events import ObjectSeen
from mooring.model.gangs.gang import Role
from mooring.model.gangs.membership import VOLCANO_KIND
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.builders import make_node
from mooring.testing.topology_builders import make_hypernode


def test_a_preference_for_labels_that_no_node_has_keeps_nobody_waiting() -> None:
    gang = make_gang(minimum=3, topology_request=TopologyRequest(preferred=RACK))
    nodes = [make_node("a", gpu=2), make_node("b", gpu=2)]

    assert len(bound(start(gang, nodes=nodes, pods=make_members(3, gpu=1)).cycle(1.0))) == 3


def test_a_preference_for_hypernodes_that_are_not_there_keeps_nobody_waiting() -> None:
    gang = make_gang(minimum=3, topology_request=TopologyRequest(preferred="hypernode-tier/1"))
    nodes = [make_node("a", gpu=2), make_node("b", gpu=2)]

    assert len(bound(start(gang, nodes=nodes, pods=make_members(3, gpu=1)).cycle(1.0))) == 3


def test_a_gang_that_is_larger_than_the_topology_it_prefers_goes_beyond_it() -> None:
    gang = make_gang(minimum=3, topology_request=TopologyRequest(preferred="hypernode-tier/1"))
    leaf = ObjectSeen(make_hypernode("leaf", 1, nodes=["b"]))
    nodes = [make_node("a", gpu=2), make_node("b", gpu=2)]
    scheduler = start(gang, nodes=nodes, pods=make_members(3, gpu=1))
    scheduler.handle(leaf)
    assert set(bound(scheduler.cycle(1.0)).values()) == {"a", "b"}

    scheduler = start(
        make_gang(minimum=2, topology_request=gang.topology_request), nodes=nodes, pods=make_members(2, gpu=1)
    )
    scheduler.handle(leaf)
    assert set(bound(scheduler.cycle(1.0)).values()) == {"b"}, "what the topology holds stays in it"


def test_neighbours_by_rank_stay_in_one_rack_though_some_have_to_go_where_there_is_none() -> None:
    gang = make_gang(minimum=8, topology_request=TopologyRequest(preferred=RACK))
    racks = {"c": "x", "a": "y", "d": "x", "b": "y"}
    nodes = [make_node(name, gpu=1, labels={RACK: rack}) for name, rack in racks.items()]

    placed = bound(start(gang, nodes=[make_node("bare", gpu=4), *nodes], pods=make_members(8, gpu=1)).cycle(1.0))

    by_rank = [racks.get(placed[f"train-{rank}"], "") for rank in range(8)]
    assert by_rank == ["", "", "", "", "x", "x", "y", "y"]


def test_a_preference_of_one_role_is_kept_though_that_of_another_cannot_be() -> None:
    near = TopologyRequest(preferred=RACK)
    gang = make_gang(minimum=7, kind=VOLCANO_KIND, roles=(Role("ps", 2, near), Role("worker", 5, near)))
    pods = [*make_role("ps", 2, gpu=2), *make_role("worker", 5, gpu=1)]
    nodes = [make_node("bare", gpu=5), *rack_nodes({"a1": 2})]

    placed = bound(start(gang, nodes=nodes, pods=pods).cycle(1.0))

    assert {node for pod, node in placed.items() if pod.startswith("ps")} == {"a1-0", "a1-1"}
    assert {node for pod, node in placed.items() if pod.startswith("worker")} == {"bare"}


def test_what_is_required_holds_though_what_is_preferred_cannot_be_had() -> None:
    gang = make_gang(minimum=3, topology_request=TopologyRequest(required=BLOCK, preferred="example.com/row"))

    placed = bound(start(gang, nodes=rack_nodes({"a1": 1, "b1": 2}), pods=make_members(3, gpu=1)).cycle(1.0))
    assert set(placed.values()) == {"b1-0", "b1-1"}

    decisions = start(gang, nodes=rack_nodes({"a1": 1, "b1": 1}), pods=make_members(3, gpu=1)).cycle(1.0)
    assert set(waiting(decisions).values()) == {"gang default/train: largest block holds 2 of 3 members"}


def test_a_gang_that_prefers_a_place_and_has_none_at_all_says_how_much_room_there_is() -> None:
    gang = make_gang(minimum=3, topology_request=TopologyRequest(preferred=RACK))
    decisions = start(gang, nodes=[make_node("a", gpu=2)], pods=make_members(3, gpu=1)).cycle(1.0)

    assert set(waiting(decisions).values()) == {"gang default/train: room for 2 of 3 members"}


def test_a_topology_that_does_not_exist_is_waited_for_whatever_labels_nodes_have() -> None:
    gang = make_gang(minimum=2, topology_request=TopologyRequest(required=RACK, topology="absent"))
    scheduler = start(gang, nodes=rack_nodes({"a1": 2}), pods=make_members(2, gpu=1))
    assert set(waiting(scheduler.cycle(1.0)).values()) == {"gang default/train: topology absent does not exist"}

    levels = TopologySpec([TopologyLevel(RACK)])
    scheduler.handle(ObjectSeen(Topology(metadata=ObjectMeta(name="absent"), spec=levels)))
    assert len(bound(scheduler.cycle(2.0))) == 2


def test_a_topology_that_does_not_exist_is_not_waited_for_where_it_is_only_preferred() -> None:
    somewhere = TopologyRequest(preferred=BLOCK, topology="absent")
    roles = (Role("ps", 1), Role("worker", 2, TopologyRequest(required=RACK)))
    gang = make_gang(minimum=3, kind=VOLCANO_KIND, topology_request=somewhere, roles=roles)
    pods = [*make_role("ps", 1, gpu=2), *make_role("worker", 2, gpu=2)]

    placed = bound(start(gang, nodes=rack_nodes({"a1": 1, "b1": 2}), pods=pods).cycle(1.0))

    assert placed == {"ps-0": "a1-0", "worker-0": "b1-0", "worker-1": "b1-1"}
