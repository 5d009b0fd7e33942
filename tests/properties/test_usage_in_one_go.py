"""What plugins by usage say in one go is what they say one by one, whichever rows they are asked about."""

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.actions.preempt.pods.crowd import SupposedRows
from mooring.engine.answers.usage import UsageAnswers
from mooring.model.api.pods import Pod
from mooring.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from mooring.state.cluster import Cluster
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.testing.builders import GPU, make_cluster, make_node, make_pod
from mooring.testing.random_clusters import Choose, seeded

STRATEGIES = {
    "default": {},
    "packed": {"scoringStrategy": {"type": "MostAllocated"}},
    "weighted": {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]}},
    "one resource": {"scoringStrategy": {"resources": [{"name": "memory", "weight": 1}]}},
    "by ratio": {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
        }
    },
}
IN_ONE_GO = ("default", "packed")


def used_cluster(choose: Choose, *, some_without_memory: bool = False) -> Cluster:
    """Nodes of uneven sizes with all kinds of pods on them, some fuller than full."""
    nodes = [
        make_node(
            f"node-{index}",
            cpu=f"{1 + choose(8000)}m",
            memory=str(0 if some_without_memory and not choose(3) else 1 + choose(1 << 34)),
            gpu=choose(3),
            pods=1 + choose(6),
        )
        for index in range(12)
    ]
    cluster = make_cluster(nodes=nodes)
    cluster.touched.catch_up()
    for index in range(choose(40)):
        cluster.observe_many([], [random_pod(choose, f"pod-{index}")])
        cluster.assume(f"default/pod-{index}", choose(len(nodes)))
    return cluster


def random_pod(choose: Choose, name: str) -> Pod:
    cpu = f"{choose(900)}m" if choose(4) else None
    memory = str(choose(1 << 32)) if choose(4) else None
    return make_pod(name, cpu=cpu, memory=memory, gpu=0 if choose(5) else 1)


def kinds_of_rows(cluster: Cluster, shape: Shape, choose: Choose) -> Iterator[NodeRows]:
    """All rows, some rows, rows that changed, rows with more pods than they have, rows with fewer."""
    table = cluster.nodes
    some = np.array([choose(len(table)) for _ in range(5)], np.intp)
    yield cluster.rows()
    yield cluster.rows(some)
    touched = cluster.touched.since(0)
    assert touched is not None
    yield touched
    yield NodeRows(table, some, np.arange(len(some), dtype=np.int64), shape)
    yield SupposedRows(cluster.rows(some), lambda amount: np.arange(len(some), dtype=np.int64))


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(seed=st.integers(0, 1 << 32), weights=st.tuples(st.integers(1, 3), st.integers(1, 3)), uneven=st.booleans())
def test_the_answers_are_the_same(strategy: str, seed: int, weights: tuple[int, int], uneven: bool) -> None:
    choose = seeded(seed)
    cluster = used_cluster(choose, some_without_memory=uneven)
    shape = cluster.shape_for(make_pod("new", cpu=f"{1 + choose(900)}m", memory=str(1 + choose(1 << 32))))
    fit = NodeResourcesFit(msgspec.convert(STRATEGIES[strategy], NodeResourcesFitArgs))
    balanced = NodeResourcesBalancedAllocation()
    filters = [(fit, fit.pre_filter(shape, cluster))]
    scores = [
        (fit, weights[0], fit.pre_score(shape, cluster, cluster.rows())),
        (balanced, weights[1], balanced.pre_score(shape, cluster, cluster.rows())),
    ]
    usage = UsageAnswers(shape, filters, scores)

    assert (fit.in_one_go(filters, scores) is not None) == (strategy in IN_ONE_GO)
    for nodes in kinds_of_rows(cluster, shape, choose):
        passed, totals = usage.ask(nodes)
        expected_passed, expected_totals = usage.ask_one_by_one(nodes)
        assert expected_passed is not None and totals is not None and expected_totals is not None
        assert (np.ones(len(nodes), np.bool_) if passed is None else passed).tolist() == expected_passed.tolist()
        assert totals[expected_passed].tolist() == expected_totals[expected_passed].tolist()
        assert totals.dtype == np.int64


def test_whoever_asks_for_more_than_the_default_is_answered_one_by_one() -> None:
    cluster = make_cluster(nodes=[make_node("a", gpu=2)])
    fit, balanced = NodeResourcesFit(), NodeResourcesBalancedAllocation()
    for pod, is_in_one_go in (
        (make_pod("plain", cpu=1, memory="1Gi"), True),
        (make_pod("device", cpu=1, memory="1Gi", gpu=1), True),
        (make_pod("one resource", cpu=1), False),
        (make_pod("best effort"), False),
    ):
        shape = cluster.shape_for(pod)
        rows = cluster.rows()
        filters = [(fit, fit.pre_filter(shape, cluster))]
        prepared = [
            (fit, 1, fit.pre_score(shape, cluster, rows)),
            (balanced, 1, balanced.pre_score(shape, cluster, rows)),
        ]
        scores = [score for score in prepared if shape.request("cpu") or score[0] is fit]
        assert (fit.in_one_go(filters, scores) is not None) == is_in_one_go
    assert GPU in cluster.nodes.resources.values
