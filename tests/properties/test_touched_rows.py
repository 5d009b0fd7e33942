"""The rows that changed, side by side: each as it is now, whoever reads on from wherever."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mooring.model.events import NodeSeen
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.state.touched import SUPERSEDED, TouchedRows
from mooring.testing.builders import GPU, make_cluster, make_node, make_pod
from mooring.testing.random_clusters import Choose, seeded

NODES, PODS, ROOM = 6, 30, 8
NAMES = ("cpu", "memory")


def change(cluster: Cluster, choose: Choose) -> None:
    """A pod comes or goes, several come at once, a what-if is undone, or a node is another."""
    keys = [f"default/pod-{index}" for index in range(PODS)]
    records = [cluster.pods.records[PodKey(key)] for key in keys]
    waiting = [record for record in records if record.row < 0]
    bound = [record for record in records if record.row >= 0]
    kind = choose(12)
    if kind < 6 and waiting:
        cluster.assume(waiting[0].key, choose(NODES))
    elif kind < 8 and bound:
        cluster.release(bound[choose(len(bound))].key)
    elif kind < 9 and waiting:
        equal = [record for record in waiting if record.shape is waiting[0].shape][: 1 + choose(ROOM)]
        cluster.assume_many(equal, np.array([choose(NODES) for _ in equal], np.intp))
    elif kind < 11 and waiting:
        with cluster.what_if():
            cluster.assume(waiting[0].key, choose(NODES))
    elif kind == 11:
        cluster.observe(NodeSeen(make_node(f"node-{choose(NODES)}", cpu=1 + choose(9))))


@given(seed=st.integers(0, 1 << 32), steps=st.lists(st.integers(0, 6), min_size=1, max_size=30))
def test_every_row_that_changed_is_there_as_it_is_now(seed: int, steps: list[int]) -> None:
    choose = seeded(seed)
    pods = [make_pod(f"pod-{index}", cpu=1 + index % 3, memory="1Gi") for index in range(PODS)]
    cluster = make_cluster(nodes=[make_node(f"node-{index}", cpu=40) for index in range(NODES)], pods=pods)
    touched = TouchedRows(cluster.nodes, cluster.pod_changes, least_room=ROOM)
    log = cluster.pod_changes
    version, begun = cluster.nodes.version, log.position

    for changes in steps:
        for _ in range(changes):
            change(cluster, choose)
            if cluster.nodes.version != version:
                touched.catch_up()
                version, begun = cluster.nodes.version, log.position
        since = max(0, log.position - choose(2 * ROOM))
        found = touched.since(since)
        if found is None:
            assert log.position - since > ROOM // 2 or since < begun
            continue
        assert since >= begun
        rows = log.rows_since(since)
        assert rows is not None and found.index.tolist() == rows.tolist()
        targets = found.targets.tolist()
        useful = [position for position, target in enumerate(targets) if target != SUPERSEDED]
        assert sorted(targets[position] for position in useful) == sorted(set(rows.tolist()))
        for what in ("allocatable", "requested", "nonzero", "free", "spare"):
            now = cluster.rows(rows).stacked(what, NAMES)
            assert found.stacked(what, NAMES)[:, useful].tolist() == now[:, useful].tolist()


def test_a_resource_that_nobody_had_heard_of_is_there_too() -> None:
    pods = [make_pod("one", cpu=1), make_pod("two", cpu=1, gpu=1), make_pod("three", gpu=1)]
    cluster = make_cluster(nodes=[make_node("a", cpu=4)], pods=pods)
    cluster.touched.catch_up()
    cluster.assume(PodKey("default/one"), 0)
    assert cluster.touched.since(0) is not None

    cluster.nodes.resource_code("example.com/fifth")
    cluster.assume(PodKey("default/two"), 0)
    assert cluster.touched.since(0) is None  # all rows are to be looked at: there are more lines than were copied

    read_so_far = cluster.pod_changes.position
    cluster.assume(PodKey("default/three"), 0)
    found = cluster.touched.since(read_so_far)
    assert found is not None
    assert found.stacked("requested", ("cpu", GPU)).tolist() == [[2000], [2]]
