"""The cluster: events in, columns right; assumptions made and undone."""

import pytest

from mooring.errors import InvariantBroken
from mooring.model.events import NodeLost, NodeSeen, ObjectSeen, PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.testing.builders import (
    GPU,
    HOSTNAME,
    ZONE,
    make_affinity,
    make_cluster,
    make_node,
    make_nodes,
    make_pod,
    make_pod_term,
    make_pods,
    make_service,
)


def cpu_taken(cluster: Cluster) -> dict[str, int]:
    rows = cluster.rows()
    return dict(zip(rows.names, rows.requested("cpu").tolist(), strict=True))


def test_pods_take_from_their_node_and_give_back() -> None:
    cluster = make_cluster(nodes=make_nodes(2), pods=[make_pod("a", cpu=2, node="node-0")])
    assert cpu_taken(cluster) == {"node-0": 2000, "node-1": 0}

    cluster.observe(PodLost("default/a"))

    assert cpu_taken(cluster) == {"node-0": 0, "node-1": 0}
    assert cluster.nodes.pod_count.values[:2].tolist() == [0, 0]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_finishes_gives_back(phase: str) -> None:
    cluster = make_cluster(nodes=[make_node("a")], pods=[make_pod("pod", cpu=2, node="a")])

    cluster.observe(PodSeen(make_pod("pod", cpu=2, node="a", phase=phase)))

    assert cpu_taken(cluster) == {"a": 0}
    assert not cluster.pods.records


def test_a_pod_whose_node_is_not_known_yet_counts_once_the_node_comes() -> None:
    cluster = make_cluster(pods=[make_pod("pod", cpu=2, node="late")])
    assert len(cluster.rows()) == 0

    cluster.observe(NodeSeen(make_node("late")))

    assert cpu_taken(cluster) == {"late": 2000}


def test_a_pod_gone_while_its_node_was_away_does_not_return_with_it() -> None:
    cluster = make_cluster(nodes=[make_node("a")], pods=[make_pod("pod", cpu=2, node="a")])

    cluster.observe(NodeLost("a"), PodLost("default/pod"), NodeSeen(make_node("a")))

    assert cpu_taken(cluster) == {"a": 0}


def test_the_row_of_a_lost_node_is_used_again_and_clean() -> None:
    cluster = make_cluster(
        nodes=[make_node("a", gpu=8, zone="x", unschedulable=True)], pods=[make_pod("pod", cpu=2, node="a")]
    )
    assert cluster.rows().has_label(ZONE).tolist() == [True]

    cluster.observe(NodeLost("a"), NodeSeen(make_node("b")))

    rows = cluster.rows()
    assert rows.index.tolist() == [0]
    assert (rows.names, rows.allocatable(GPU).tolist(), rows.requested("cpu").tolist()) == (["b"], [0], [0])
    assert (rows.has_label(ZONE).tolist(), rows.unschedulable.tolist(), rows.pod_count.tolist()) == (
        [False],
        [False],
        [0],
    )


def test_columns_grow_with_the_nodes_and_keep_what_they_held() -> None:
    cluster = make_cluster(nodes=make_nodes(60, cpu=3), pods=[make_pod("pod", cpu=1, node="node-7")])
    cluster.rows().has_label(HOSTNAME)

    cluster.observe(*map(NodeSeen, make_nodes(200, prefix="more", cpu=5)))

    rows = cluster.rows()
    assert rows.allocatable("cpu").tolist() == [3000] * 60 + [5000] * 200
    assert rows.requested("cpu").tolist() == [0] * 7 + [1000] + [0] * 252
    assert rows.has_label(HOSTNAME, "more-199").tolist() == [False] * 259 + [True]


def test_a_heartbeat_is_no_change_and_a_new_label_is() -> None:
    cluster = make_cluster(nodes=[make_node("a")])
    before = cluster.description

    cluster.observe(NodeSeen(make_node("a")))
    assert cluster.description == before

    cluster.observe(NodeSeen(make_node("a", labels={"disk": "ssd"})))
    assert cluster.description != before


def test_pods_that_differ_in_a_label_nobody_selects_share_a_shape_until_someone_does() -> None:
    pods = [make_pod(f"pod-{index}", labels={"index": str(index)}) for index in range(3)]
    cluster = make_cluster(pods=pods)
    assert len({record.shape.id for record in cluster.pods.records.values()}) == 1

    cluster.observe(ObjectSeen(make_service(selector={"index": "1"})))

    assert len({record.shape.id for record in cluster.pods.records.values()}) == 3


def test_terms_of_a_pod_make_the_labels_they_select_matter() -> None:
    cluster = make_cluster(pods=make_pods(2, labels={"app": "web"}))
    version = cluster.shapes_version

    cluster.observe(PodSeen(make_pod("far", affinity=make_affinity(away=[make_pod_term(labels={"app": "web"})]))))

    assert cluster.shapes_version > version
    assert cluster.pods.records[PodKey("default/pod-0")].shape.selected_labels == {"app": "web"}


def test_a_bound_pod_cannot_be_assumed_elsewhere() -> None:
    cluster = make_cluster(nodes=make_nodes(2), pods=[make_pod("pod", node="node-0")])

    with pytest.raises(InvariantBroken, match=r"default/pod is bound already, to node-0"):
        cluster.assume(PodKey("default/pod"), 1)


def test_rollback_undoes_what_was_assumed_and_released() -> None:
    cluster = make_cluster(nodes=make_nodes(2), pods=[make_pod("runs", cpu=2, node="node-0"), make_pod("waits", cpu=1)])
    before = cluster.nodes.fingerprint()

    with cluster.what_if():
        cluster.release(PodKey("default/runs"))
        cluster.assume(PodKey("default/waits"), 0)
        assert cpu_taken(cluster) == {"node-0": 1000, "node-1": 0}

    assert cluster.nodes.fingerprint() == before
    runs, waits = cluster.pods.records[PodKey("default/runs")], cluster.pods.records[PodKey("default/waits")]
    assert (runs.node_name, runs.assumed, waits.node_name, waits.assumed) == ("node-0", False, "", False)


def test_trials_end_in_the_order_they_were_nested() -> None:
    cluster = make_cluster(nodes=[make_node("a")])
    outer = cluster.what_if()
    outer.__enter__()
    cluster.what_if().__enter__()

    with pytest.raises(InvariantBroken, match=r"trial 1 ends while 2 are open"):
        outer.__exit__(None, None, None)


def test_what_raises_inside_a_trial_undoes_it_even_if_it_was_kept() -> None:
    cluster = make_cluster(nodes=[make_node("a")], pods=[make_pod("waits", cpu=1)])

    def keep_and_fail() -> None:
        with cluster.what_if() as trial:
            cluster.assume(PodKey("default/waits"), 0)
            trial.keep()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        keep_and_fail()

    assert cluster.pods.records[PodKey("default/waits")].node_name == "" and not cluster.is_trying


def test_host_ports_are_held_and_given_back() -> None:
    cluster = make_cluster(nodes=[make_node("a")], pods=[make_pod("pod", node="a", host_ports=[80])])
    assert cluster.nodes.fingerprint()["ports"] == {("TCP", 80): {0: {"0.0.0.0": 1}}}

    cluster.observe(PodLost("default/pod"))

    assert cluster.nodes.fingerprint()["ports"] == {}


def test_changes_are_told_since_a_position() -> None:
    cluster = make_cluster(nodes=make_nodes(2), pods=make_pods(2))
    position = cluster.pod_changes.position

    cluster.assume(PodKey("default/pod-0"), 1)
    cluster.release(PodKey("default/pod-0"))

    changes = cluster.pod_changes.since(position)
    assert changes is not None
    _, rows, signs = changes
    assert (rows.tolist(), signs.tolist()) == ([1, 1], [1, -1])


def test_without_a_seed_the_node_that_came_first_wins_ties_also_over_one_in_its_old_row() -> None:
    cluster = Cluster(seed=None)
    for name in ("b", "a", "c"):
        cluster.observe(NodeSeen(make_node(name)))
    cluster.observe(NodeLost("b"))
    cluster.observe(NodeSeen(make_node("b")))

    ties = {name: int(cluster.nodes.tie.values[row]) for name, row in cluster.nodes.row_of.items()}

    assert sorted(ties, key=ties.__getitem__, reverse=True) == ["a", "c", "b"]
