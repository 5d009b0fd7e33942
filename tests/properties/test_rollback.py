"""What-if leaves no trace: a rollback restores every column and every record, however deep the checkpoints nest."""

from typing import Any

from drawing import choices
from hypothesis import given
from hypothesis import strategies as st
from stories import without_empty_columns

from mooring.model.api.pods import Pod, ResourceRequirements
from mooring.model.gangs.membership import GANG
from mooring.model.keys import PodKey
from mooring.model.node_offer import NodeOffer
from mooring.model.pod_patch import PodPatch
from mooring.state.cluster import Cluster
from mooring.state.nodes import MISSING
from mooring.state.pods import UNBOUND
from mooring.testing.builders import make_node, make_toleration
from mooring.testing.random_clusters import Choose, one_in, one_of, random_cluster


def fingerprint(cluster: Cluster) -> dict[str, Any]:
    """Everything about nodes and pods that a what-if may touch."""
    check_labels(cluster)
    pods = cluster.pods
    return {
        "nodes": without_empty_columns(cluster.nodes.fingerprint()),
        "versions": (cluster.nodes_version, cluster.nodes.version, cluster.nodes.end, cluster.series),
        "records": {
            key: (
                (record.slot, record.row, record.node_name, record.assumed, record.shape.id, record.pod),
                (record.leaving, record.nominated, cluster.plan_of(key)),
            )
            for key, record in pods.records.items()
        },
        "rows": pods.row.values[: pods.end].tolist(),
        "shapes": pods.shape.values[: pods.end].tolist(),
        "on_row": {row: set(slots) for row, slots in pods.on_row.items()},
        "with_volumes": dict(pods.with_volumes),
        "gangs": {
            key: (list(gang.members), dict(gang.roles), dict(gang.ranks)) for key, gang in cluster.gangs.records.items()
        },
        "gang of": dict(cluster.gangs.of_pod),
        "numa": {key: cluster.numa.share_of(key) for key in pods.records},
        "claims": {key: cluster.claims.state(key) for pod in pods.records for key in claims_of(cluster, pod)},
    }


def check_labels(cluster: Cluster) -> None:
    """Check every column of labels against the nodes; a column exists from when its key is first read."""
    nodes = cluster.nodes
    for key, label in nodes._labels.items():
        for row, code in enumerate(label.codes.tolist()):
            node = nodes.nodes[row] if row < nodes.end and nodes.alive.values[row] else None
            expected = (node.metadata.labels or {}).get(key) if node else None
            assert (None if code == MISSING else label.interner.values[code]) == expected, f"{key} of row {row}"


def claims_of(cluster: Cluster, key: PodKey) -> list[str]:
    return [claim for claim, _ in cluster.claims.claims_of(cluster.pods.records[key].pod)]


def random_patch(choose: Choose, pod: Pod) -> PodPatch:
    """Change a little of everything that a patch can change."""
    container = pod.spec.containers[0]
    asked = dict((container.resources.requests if container.resources else None) or {})
    for name in ("cpu", "memory", *asked):
        if choose(2):
            asked[name] = str(1 + choose(4))
    return PodPatch.of(
        node_selector=one_of(choose, (None, {"disk": "ssd"})),
        tolerations=one_of(choose, ((), (make_toleration("dedicated", operator="Exists"),))),
        labels=one_of(choose, (None, {"app": "web"}, {"app": "other"})),
        annotations=one_of(choose, (None, {GANG: "one"}, {GANG: "other"})),
        removed_gates=one_of(choose, ((), ("wait",))),
        resources=one_of(choose, (None, {container.name: ResourceRequirements(requests=asked)})),
    )


def change_rows(cluster: Cluster, choose: Choose) -> None:
    """Open rows that no node has, or close a row."""
    empty = [row for row in cluster.nodes.live_rows().tolist() if not cluster.pods.on_row.get(row)]
    if empty and choose(2):
        cluster.close_row(empty[choose(len(empty))])
        return
    node = make_node("offer", cpu=4, gpu=one_of(choose, (0, 2)), zone=one_of(choose, ("zone-0", "zone-9", "")))
    rows = cluster.open_rows(NodeOffer(node), 1 + choose(80))
    assert all(cluster.nodes.alive.values[rows])


def change_something(cluster: Cluster, choose: Choose) -> None:
    """Let a waiting pod, or several of one shape, take a place, take a bound pod off its row, or change a pod."""
    records = list(cluster.pods.records.values())
    if records and one_in(choose, 3):
        record = records[choose(len(records))]
        cluster.amend(record.key, random_patch(choose, record.pod))
        return
    waiting = [record for record in records if record.row == UNBOUND and not record.node_name]
    bound = [record for record in records if record.row != UNBOUND]
    if one_in(choose, 4):
        change_rows(cluster, choose)
        return
    rows = cluster.nodes.live_rows()
    if not len(rows):
        return
    if waiting and (choose(2) or not bound):
        first = waiting[choose(len(waiting))]
        row = rows[choose(len(rows))]
        if choose(2):
            cluster.assume(first.key, int(row))
        else:
            equal = [record for record in waiting if record.shape is first.shape]
            cluster.assume_many(equal, rows[[choose(len(rows)) for _ in equal]])
    elif bound and choose(2):
        cluster.release(bound[choose(len(bound))].key)
    elif bound:
        release_and_restore(cluster, choose)


def release_and_restore(cluster: Cluster, choose: Choose) -> None:
    """Take bound pods off their rows, and bring all of them back, in another order."""
    bound = [record.key for record in cluster.pods.records.values() if record.row != UNBOUND]
    released = [cluster.release(key) for key in bound if choose(2)]
    while released:
        cluster.restore(released.pop(choose(len(released))))


@given(choose=choices())
def test_pods_that_are_restored_are_where_they_were(choose: Choose) -> None:
    cluster = random_cluster(choose, nodes=4, pods=10, templates=3)
    before = fingerprint(cluster)

    release_and_restore(cluster, choose)

    assert fingerprint(cluster) == before


@given(choose=choices(), depths=st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_a_rollback_restores_identical_columns(choose: Choose, depths: list[int]) -> None:
    cluster = random_cluster(choose, nodes=4, pods=10, templates=3)

    def try_out(depths: list[int]) -> None:
        before = fingerprint(cluster)
        with cluster.what_if():
            for _ in range(depths[0]):
                change_something(cluster, choose)
            if depths[1:]:
                try_out(depths[1:])
        assert fingerprint(cluster) == before

    try_out(depths)


@given(choose=choices(), changes=st.integers(1, 4))
def test_what_is_kept_inside_goes_with_the_outer_trial(choose: Choose, changes: int) -> None:
    cluster = random_cluster(choose, nodes=4, pods=10, templates=3)
    before = fingerprint(cluster)

    with cluster.what_if():
        change_something(cluster, choose)
        with cluster.what_if() as inner:
            for _ in range(changes):
                change_something(cluster, choose)
            inside = fingerprint(cluster)
            inner.keep()
        assert fingerprint(cluster) == inside

    assert fingerprint(cluster) == before
