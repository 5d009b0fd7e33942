"""What plugins by usage say in one go is what they say one by one, whichever rows they are asked about."""

from collections.abc import Iterator
from importlib.util import find_spec

import msgspec
import numpy as np
import pytest
from drawing import worlds
from hypothesis import given
from hypothesis import strategies as st
from stories import Story, assembled

from mooring.actions.preempt.pods.candidates import SupposedRows
from mooring.engine.answers.settled import Settled
from mooring.engine.answers.usage import UsageAnswers
from mooring.engine.ranking.blocks import INFEASIBLE
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.plugins import resources_compiled
from mooring.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from mooring.plugins.resources_compiled import load, load_if_worthwhile, unload
from mooring.plugins.resources_row_by_row import FEW_ROWS
from mooring.state.cluster import Cluster
from mooring.state.nodes import TIE_BITS
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.testing.builders import GPU, make_cluster, make_node, make_pod
from mooring.testing.random_clusters import Choose, World, seeded

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
        cluster.assume(PodKey(f"default/pod-{index}"), choose(len(nodes)))
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


def usage_of(cluster: Cluster, shape: Shape, strategy: str, weights: tuple[int, int]) -> UsageAnswers:
    fit = NodeResourcesFit(msgspec.convert(STRATEGIES[strategy], NodeResourcesFitArgs))
    balanced = NodeResourcesBalancedAllocation()
    filters = [(fit, fit.pre_filter(shape, cluster.view))]
    scores = [
        (fit, weights[0], fit.pre_score(shape, cluster.view, cluster.rows())),
        (balanced, weights[1], balanced.pre_score(shape, cluster.view, cluster.rows())),
    ]
    assert (fit.in_one_go(filters, scores) is not None) == (strategy in IN_ONE_GO)
    return UsageAnswers(shape, filters, scores)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(seed=st.integers(0, 1 << 32), weights=st.tuples(st.integers(1, 3), st.integers(1, 3)), uneven=st.booleans())
def test_the_answers_are_the_same(strategy: str, seed: int, weights: tuple[int, int], uneven: bool) -> None:
    choose = seeded(seed)
    cluster = used_cluster(choose, some_without_memory=uneven)
    shape = cluster.shape_for(make_pod("new", cpu=f"{1 + choose(900)}m", memory=str(1 + choose(1 << 32))))
    usage = usage_of(cluster, shape, strategy, weights)

    for nodes in kinds_of_rows(cluster, shape, choose):
        passed, totals = usage.ask(nodes)
        expected_passed, expected_totals = usage.ask_one_by_one(nodes)
        assert expected_passed is not None and totals is not None and expected_totals is not None
        assert (np.ones(len(nodes), np.bool_) if passed is None else passed).tolist() == expected_passed.tolist()
        assert totals[expected_passed].tolist() == expected_totals[expected_passed].tolist()
        assert totals.dtype == np.int64


@pytest.fixture(scope="module")
def compiled() -> Iterator[None]:
    pytest.importorskip("numba")
    assert load()
    yield
    unload()


@pytest.mark.parametrize("strategy", IN_ONE_GO)
@given(seed=st.integers(0, 1 << 32), weights=st.tuples(st.integers(1, 3), st.integers(1, 3)), uneven=st.booleans())
def test_compiled_or_not_the_keys_are_the_same(
    compiled: None, strategy: str, seed: int, weights: tuple[int, int], uneven: bool
) -> None:
    check_keys(strategy, seed, weights, uneven)


@pytest.mark.parametrize("strategy", IN_ONE_GO)
@given(
    seed=st.integers(0, 1 << 32), weights=st.tuples(st.integers(1, 3), st.integers(1, 1 << 29)), uneven=st.booleans()
)
def test_row_by_row_the_keys_are_the_same(strategy: str, seed: int, weights: tuple[int, int], uneven: bool) -> None:
    unload()
    check_keys(strategy, seed, weights, uneven)


def check_keys(strategy: str, seed: int, weights: tuple[int, int], uneven: bool) -> None:
    choose = seeded(seed)
    cluster = used_cluster(choose, some_without_memory=uneven)
    pod = make_pod("new", cpu=f"{1 + choose(900)}m", memory=str(1 + choose(1 << 32)), gpu=choose(2))
    usage = usage_of(cluster, cluster.shape_for(pod), strategy, weights)
    end = cluster.nodes.end
    is_row = np.array([bool(choose(4)) for _ in range(end)]) if choose(4) else np.ones(end, np.bool_)
    settled_keys = np.array([choose(1 << 40) for _ in range(end)], np.int64)
    settled = Settled(np.flatnonzero(is_row), is_row, bool(is_row.all()), settled_keys, (), frozenset())
    for rows in (cluster.nodes.live_rows(), np.array([choose(end) for _ in range(5)], np.intp)):
        keys = np.full(end, INFEASIBLE, np.int64)
        expected = keys.copy()
        asked = np.unique(rows[is_row[rows]])
        passed, totals = usage.ask_one_by_one(cluster.rows(asked))
        assert passed is not None and totals is not None
        expected[asked] = np.where(passed, settled_keys[asked] + (totals << TIE_BITS), INFEASIBLE)

        is_set = usage.set_keys(cluster.nodes, rows, settled, keys)

        assert is_set == cluster.nodes.has_all_everywhere(("cpu", "memory"))
        assert keys.tolist() == (expected.tolist() if is_set else [INFEASIBLE] * end)


@given(number=st.integers(0, FEW_ROWS + 1))
def test_many_rows_are_left_to_numpy(number: int) -> None:
    unload()
    cluster = used_cluster(seeded(0))
    usage = usage_of(cluster, cluster.shape_for(make_pod("new", cpu=1, memory="1Gi")), "default", (1, 1))
    everywhere = np.ones(cluster.nodes.end, np.bool_)
    keys = np.zeros(cluster.nodes.end, np.int64)
    settled = Settled(np.flatnonzero(everywhere), everywhere, True, keys.copy(), (), frozenset())
    assert usage.set_keys(cluster.nodes, np.zeros(number, np.intp), settled, keys) == (number <= FEW_ROWS)


@given(world=worlds(), steps=st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_compiled_answers_change_no_decision(compiled: None, world: World, steps: list[int]) -> None:
    story = Story(world, assembled(None))

    for events in steps:
        story.tell(world.events(events))
        story.cycle()


def test_a_small_cluster_loads_no_compiler_and_a_large_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    unload()
    cluster = make_cluster(nodes=[make_node("a"), make_node("b")])
    cluster.shape_for(make_pod("new", cpu=1))
    assert not load_if_worthwhile(cluster)
    monkeypatch.setattr(resources_compiled, "WORTHWHILE", 2)
    assert load_if_worthwhile(cluster) == (find_spec("numba") is not None)
    unload()


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
        filters = [(fit, fit.pre_filter(shape, cluster.view))]
        prepared = [
            (fit, 1, fit.pre_score(shape, cluster.view, rows)),
            (balanced, 1, balanced.pre_score(shape, cluster.view, rows)),
        ]
        scores = [score for score in prepared if shape.request("cpu") or score[0] is fit]
        assert (fit.in_one_go(filters, scores) is not None) == is_in_one_go
    assert GPU in cluster.nodes.resources.values
