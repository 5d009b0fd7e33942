"""Trees are kept while nodes come, go and change, and are always what they would be if built anew."""

from hypothesis import given
from hypothesis import strategies as st

from mooring.model.events import NodeLost, NodeSeen
from mooring.model.topology.requests import HyperNode
from mooring.state.cluster import Cluster
from mooring.state.topology import TopologyTree
from mooring.state.topology_trees import TopologyTrees
from mooring.testing.builders import RACK, ZONE, make_node
from mooring.testing.topology_builders import make_hypernode

KEYS = (ZONE, RACK)
NAMES = tuple(f"node-{index}" for index in range(5))

places = st.sampled_from(("", "x", "y"))
"""Empty: without the label."""
changes = st.tuples(st.sampled_from(NAMES), places, places, st.integers(1, 3), st.booleans())


def hypernodes() -> dict[str, HyperNode]:
    found = (
        make_hypernode("top", 3, hypernodes=["west"], nodes=["node-4"]),
        make_hypernode("west", 2, labels={ZONE: "x"}, hypernode_patterns=["^leaf"]),
        make_hypernode("leaf", 1, patterns=["[01]$"]),
    )
    return {hypernode.metadata.name: hypernode for hypernode in found}


def facts(cluster: Cluster, tree: TopologyTree) -> list[tuple[str, ...]]:
    """The nodes in rank order, with their paths."""
    return [
        (cluster.nodes.name(row), *tree.path(tree.leaf + 1, position))
        for position, row in enumerate(tree.rows.tolist())
    ]


@given(st.lists(changes, max_size=12))
def test_a_kept_tree_is_what_a_new_one_would_be(story: list[tuple[str, str, str, int, bool]]) -> None:
    cluster = Cluster()
    trees = TopologyTrees(cluster)
    network = hypernodes()

    for name, zone, rack, cpu, is_lost in story:
        cluster.observe(NodeLost(name) if is_lost else NodeSeen(make_node(name, zone=zone, rack=rack, cpu=cpu)))

        anew = TopologyTrees(cluster)
        assert facts(cluster, trees.by_labels(KEYS)) == facts(cluster, anew.by_labels(KEYS))
        assert facts(cluster, trees.by_hypernodes(network)) == facts(cluster, anew.by_hypernodes(network))


@given(st.lists(changes, max_size=12))
def test_rows_share_a_domain_if_and_only_if_their_labels_agree_down_to_it(
    story: list[tuple[str, str, str, int, bool]],
) -> None:
    cluster = Cluster()
    for name, zone, rack, cpu, _ in story:
        cluster.observe(NodeSeen(make_node(name, zone=zone, rack=rack, cpu=cpu)))

    tree = TopologyTrees(cluster).by_labels(KEYS)

    paths = {}
    for row in cluster.nodes.live_rows().tolist():
        labels = cluster.nodes.node(row).metadata.labels or {}
        paths[row] = tuple(labels.get(key) for key in KEYS)
    inside = [row for row, path in paths.items() if None not in path]
    assert sorted(tree.rows.tolist()) == inside
    for depth, key in enumerate(KEYS, start=1):
        codes = tree.codes(key)
        assert all((codes[row] >= 0) == (row in inside) for row in paths)
        for one in inside:
            for other in inside:
                assert (codes[one] == codes[other]) == (paths[one][:depth] == paths[other][:depth])


@given(st.permutations(NAMES))
def test_the_order_in_which_nodes_came_does_not_matter(order: list[str]) -> None:
    cluster = Cluster()
    for name in order:
        cluster.observe(NodeSeen(make_node(name, zone=f"zone-{int(name[-1]) % 2}", rack="r")))

    tree = TopologyTrees(cluster).by_labels(KEYS)

    ranked = [cluster.nodes.name(row) for row in tree.rows.tolist()]
    assert ranked == ["node-0", "node-2", "node-4", "node-1", "node-3"]
