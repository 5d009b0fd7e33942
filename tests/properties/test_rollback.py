"""What-if leaves no trace: a rollback restores every column and every record, however deep the checkpoints nest."""

from typing import Any

from drawing import choices
from hypothesis import given
from hypothesis import strategies as st

from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND
from mooring.testing.random_clusters import Choose, random_cluster


def fingerprint(cluster: Cluster) -> dict[str, Any]:
    """Everything about nodes and pods that a what-if may touch."""
    pods = cluster.pods
    return {
        "nodes": cluster.nodes.fingerprint(),
        "records": {
            key: (
                (record.slot, record.row, record.node_name, record.assumed, record.shape.id),
                (record.leaving, record.nominated, cluster.nomination_of(key)),
            )
            for key, record in pods.records.items()
        },
        "rows": pods.row.values[: pods.end].tolist(),
        "shapes": pods.shape.values[: pods.end].tolist(),
        "on_row": {row: set(slots) for row, slots in pods.on_row.items()},
        "with_volumes": dict(pods.with_volumes),
    }


def change_something(cluster: Cluster, choose: Choose) -> None:
    """Let a waiting pod, or several of one shape, take a place, or take a bound pod off its row."""
    records = list(cluster.pods.records.values())
    waiting = [record for record in records if record.row == UNBOUND and not record.node_name]
    bound = [record for record in records if record.row != UNBOUND]
    rows = cluster.nodes.live_rows()
    if waiting and (choose(2) or not bound):
        first = waiting[choose(len(waiting))]
        row = rows[choose(len(rows))]
        if choose(2):
            cluster.assume(first.key, int(row))
        else:
            equal = [record for record in waiting if record.shape is first.shape]
            cluster.assume_many(equal, rows[[choose(len(rows)) for _ in equal]])
    elif bound:
        cluster.release(bound[choose(len(bound))].key)


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
