"""Topology trees: domains inside domains, as columns; kept while nothing changes that they are built from."""

from mooring.model.events import NodeLost, NodeSeen
from mooring.model.topology.requests import TopologyRequest
from mooring.state.cluster import Cluster
from mooring.state.nodes import MISSING
from mooring.state.topology import TopologyTree
from mooring.state.topology_trees import TopologyTrees
from mooring.testing.builders import HOSTNAME, RACK, ZONE, make_cluster, make_node
from mooring.testing.topology_builders import make_hypernode, make_tree


def names_by_row(tree: TopologyTree, level: str) -> list[str]:
    depth = tree.depth_of(level)
    assert depth is not None
    return ["" if code == MISSING else tree.name(depth, code) for code in tree.codes(level).tolist()]


def racks(cluster: Cluster, tree: TopologyTree) -> dict[str, str]:
    """By node, the path of its rack."""
    rows = cluster.nodes.row_of
    names = names_by_row(tree, RACK)
    return {name: names[row] for name, row in rows.items()}


def test_domains_of_one_name_in_different_parents_are_different() -> None:
    tree = make_tree(["block", "rack"], [("b", "1"), ("a", "1"), ("b", "1"), ("a", "0")])

    assert names_by_row(tree, "rack") == ["b/1", "a/1", "b/1", "a/0"]
    assert tree.codes("rack").tolist() == [2, 1, 2, 0]
    assert tree.codes("block").tolist() == [1, 0, 1, 0]
    assert [parents.tolist() for parents in tree.parents] == [[-1], [0, 0], [0, 0, 1], [0, 1, 2, 2]]
    assert [first.tolist() for first in tree.first_child] == [[0], [0, 2], [0, 1, 2]]


def test_rows_stand_by_path_then_by_the_name_of_the_node() -> None:
    tree = make_tree(["rack"], [("b",), ("a",), ("a",), ("b",)], names=["w", "z", "x", "v"])

    assert tree.rows.tolist() == [2, 1, 3, 0]
    assert tree.rows_of(1, 1).tolist() == [3, 0]


def test_a_node_without_a_label_of_some_level_is_not_in_the_topology() -> None:
    tree = make_tree(["block", "rack"], [("a", "1"), ("a", None), (None, "1")])

    assert tree.rows.tolist() == [0]
    assert tree.codes("block").tolist() == [0, MISSING, MISSING]


def test_with_gaps_it_is_in_a_domain_that_has_no_name() -> None:
    tree = make_tree(["block", "rack"], [("a", "1"), ("a", None), (None, "1"), (None, None)], with_gaps=True)

    assert sorted(tree.rows.tolist()) == [0, 1, 2]
    assert names_by_row(tree, "block") == ["a", "a", "", ""]
    assert names_by_row(tree, "rack") == ["a/1", "", "1", ""]


def test_a_topology_without_rows_is_a_whole_with_nothing_in_it() -> None:
    tree = make_tree(["block", "rack"], [])

    assert [tree.count(depth) for depth in range(4)] == [1, 0, 0, 0]
    assert len(tree) == 0
    assert tree.codes("rack").tolist() == []


def test_children_come_with_the_domain_that_they_belong_to() -> None:
    tree = make_tree(["block", "rack"], [("a", "1"), ("a", "2"), ("b", "1"), ("c", "1"), ("c", "2")])

    children, owner = tree.children(1, tree.codes("block")[[0, 3]].astype(int))

    assert [tree.name(2, child) for child in children.tolist()] == ["a/1", "a/2", "c/1", "c/2"]
    assert owner.tolist() == [0, 0, 1, 1]


def test_a_tree_of_labels_has_each_node_where_its_labels_say() -> None:
    cluster = make_cluster(
        nodes=[
            make_node("n0", zone="east", rack="r1"),
            make_node("n1", zone="west", rack="r1"),
            make_node("n2", zone="west"),
        ]
    )

    tree = TopologyTrees(cluster).by_labels((ZONE, RACK))

    assert racks(cluster, tree) == {"n0": "east/r1", "n1": "west/r1", "n2": ""}
    assert tree.titles == ("topology", "zone", "rack", "node")


def test_a_tree_is_kept_while_nodes_change_in_other_things() -> None:
    cluster = make_cluster(nodes=[make_node("n0", zone="east", rack="r1"), make_node("n1", zone="west", rack="r1")])
    trees = TopologyTrees(cluster)
    first = trees.by_labels((ZONE, RACK))

    cluster.observe(NodeSeen(make_node("n0", zone="east", rack="r1", cpu=64, unschedulable=True)))

    assert trees.by_labels((ZONE, RACK)) is first


def test_a_tree_follows_nodes_that_come_go_and_move() -> None:
    cluster = make_cluster(nodes=[make_node("n0", zone="east", rack="r1"), make_node("n1", zone="west", rack="r1")])
    trees = TopologyTrees(cluster)
    trees.by_labels((ZONE, RACK))

    cluster.observe(
        NodeSeen(make_node("n0", zone="east", rack="r2")), NodeSeen(make_node("n2", zone="west", rack="r3"))
    )
    assert racks(cluster, trees.by_labels((ZONE, RACK))) == {"n0": "east/r2", "n1": "west/r1", "n2": "west/r3"}


def test_a_node_that_takes_the_row_and_the_place_of_another_is_ranked_by_its_own_name() -> None:
    cluster = make_cluster(nodes=[make_node(name, zone="east", rack="r1") for name in ("n1", "n5")])
    trees = TopologyTrees(cluster)
    assert [cluster.nodes.name(row) for row in trees.by_labels((ZONE, RACK)).rows.tolist()] == ["n1", "n5"]

    cluster.observe(NodeLost("n1"), NodeSeen(make_node("n9", zone="east", rack="r1")))

    assert [cluster.nodes.name(row) for row in trees.by_labels((ZONE, RACK)).rows.tolist()] == ["n5", "n9"]


def test_a_tree_of_hypernodes_has_one_level_a_tier() -> None:
    cluster = make_cluster(nodes=[make_node(f"n{index}", rack=f"r{index // 2}") for index in range(6)])
    hypernodes = {
        found.metadata.name: found
        for found in (
            make_hypernode("spine", 2, hypernodes=["leaf-0", "leaf-1"]),
            make_hypernode("leaf-0", 1, nodes=["n0", "n1"], tier_name="leaf"),
            make_hypernode("leaf-1", 1, labels={RACK: "r1"}),
            make_hypernode("leaf-2", 1, patterns=["4$"]),
        )
    }
    trees = TopologyTrees(cluster)

    tree = trees.by_hypernodes(hypernodes)

    assert tree.levels == ("hypernode-tier/2", "hypernode-tier/1")
    assert tree.titles == ("topology", "HyperNode of tier 2", "leaf", "node")
    assert names_by_row(tree, "hypernode-tier/2")[:6] == ["spine"] * 4 + ["", ""]
    assert names_by_row(tree, "hypernode-tier/1")[:6] == [
        "spine/leaf-0",
        "spine/leaf-0",
        "spine/leaf-1",
        "spine/leaf-1",
        "leaf-2",
        "",
    ]
    assert trees.by_hypernodes(dict(hypernodes)) is tree

    cluster.observe(NodeSeen(make_node("n5", rack="r1")))
    assert names_by_row(trees.by_hypernodes(hypernodes), "hypernode-tier/1")[5] == "spine/leaf-1"

    hypernodes["leaf-0"] = make_hypernode("leaf-0", 1, nodes=["n0"])
    assert names_by_row(trees.by_hypernodes(hypernodes), "hypernode-tier/1")[1] == ""


def test_a_topology_request_finds_its_topology() -> None:
    trees = TopologyTrees(make_cluster(nodes=[make_node("n0", zone="east", rack="r1")]))
    topologies = {"rooms": ("example.com/room", RACK), "racks": (ZONE, RACK, HOSTNAME), "zones": (ZONE,)}
    hypernodes = {"leaf": make_hypernode("leaf", 1, nodes=["n0"])}

    def levels(topology_request: TopologyRequest) -> tuple[str, ...]:
        return trees.for_levels(topology_request.levels, topology_request.topology, topologies, hypernodes).levels

    assert levels(TopologyRequest(required=RACK)) == topologies["racks"]
    assert levels(TopologyRequest(required=RACK, topology="rooms")) == topologies["rooms"]
    assert levels(TopologyRequest(required=ZONE, slice_size=2, slice_level=RACK)) == topologies["racks"]
    assert levels(TopologyRequest(required="example.com/row", preferred=RACK)) == ("example.com/row", RACK)
    assert levels(TopologyRequest(required="hypernode-tier/1")) == ("hypernode-tier/1",)


def test_a_topology_that_is_named_and_unknown_has_no_nodes_whatever_their_labels() -> None:
    trees = TopologyTrees(make_cluster(nodes=[make_node("n0", rack="r1")]))

    tree = trees.for_levels((RACK,), "gone", {"racks": (RACK,)}, {})

    assert (tree.levels, len(tree)) == ((), 0)


def test_nodes_that_lack_optional_levels_are_in_the_tree_without_a_domain_of_theirs() -> None:
    nodes = [make_node("n0", zone="east", rack="r1"), make_node("n1", zone="east"), make_node("n2")]
    trees = TopologyTrees(make_cluster(nodes=nodes))

    def rows(optional: tuple[str, ...] | None, topologies: dict[str, tuple[str, ...]]) -> list[int]:
        return sorted(trees.for_levels((ZONE, RACK), "", topologies, {}, optional).rows.tolist())

    assert rows(None, {}) == rows((), {}) == [0]
    assert rows((RACK,), {}) == [0, 1]
    assert rows((ZONE, RACK), {}) == [0, 1, 2]
    tree = trees.for_levels((ZONE, RACK), "", {}, {}, (RACK,))
    assert names_by_row(tree, RACK)[:3] == ["east/r1", "", ""]

    described: dict[str, tuple[str, ...]] = {"dc": (ZONE, RACK)}
    assert rows((RACK,), described) == [0], "a Topology that is insisted on consists of those that have all its labels"
    assert rows((ZONE, RACK), described) == [0, 1, 2]


def test_a_tree_of_hypernodes_has_all_nodes_where_nothing_is_insisted_on() -> None:
    trees = TopologyTrees(make_cluster(nodes=[make_node("n0"), make_node("n1")]))
    hypernodes = {"leaf": make_hypernode("leaf", 1, nodes=["n1"])}

    strict = trees.for_levels(("hypernode-tier/1",), "", {}, hypernodes)
    free = trees.for_levels(("hypernode-tier/1",), "", {}, hypernodes, ("hypernode-tier/1",))

    assert (strict.rows.tolist(), sorted(free.rows.tolist())) == ([1], [0, 1])
    assert (strict.titles[0], free.titles[0]) == ("topology", "cluster")


def test_levels_are_called_by_their_whole_key_where_a_short_one_would_mean_two() -> None:
    trees = TopologyTrees(make_cluster(nodes=[make_node("n0")]))

    assert trees.by_labels(("a.example/rack", "b.example/rack", "example.com/node", ZONE, HOSTNAME)).titles == (
        "topology",
        "a.example/rack",
        "b.example/rack",
        "example.com/node",
        "zone",
        "node",
        "node",
    )
