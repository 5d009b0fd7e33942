"""NodeResourcesFit and NodeResourcesBalancedAllocation."""

from typing import Any

import pytest
from asking_plugins import configured, problems, refusals, remedies, scores

from mooring.engine.verdict import Rejection
from mooring.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.node_resources_fit import NodeResourcesFit
from mooring.testing.builders import GPU, make_cluster, make_node, make_pod, make_pods


def test_every_resource_that_is_short_is_a_reason() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=1, memory="1Gi", pods=0)])

    found = refusals(NodeResourcesFit(), cluster, make_pod(cpu=2, memory="2Gi"))

    assert found == {"a": Rejection(("Too many pods", "Insufficient cpu", "Insufficient memory"), unresolvable=True)}


def test_what_pods_have_taken_could_be_given_back() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=2)], pods=[make_pod("runs", cpu=1, node="a")])

    assert refusals(NodeResourcesFit(), cluster, make_pod(cpu=2)) == {"a": Rejection(("Insufficient cpu",))}


def test_a_pod_may_fill_a_node_to_the_brim() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=2, pods=2)], pods=[make_pod("runs", cpu=1, node="a")])

    assert refusals(NodeResourcesFit(), cluster, make_pod(cpu=1)) == {}


def test_a_pod_that_asks_for_nothing_fits_an_overcommitted_node() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=1)], pods=make_pods(2, cpu=1, node="a"))

    assert refusals(NodeResourcesFit(), cluster, make_pod()) == {}
    assert refusals(NodeResourcesFit(), cluster, make_pod(memory="1Gi")) == {}


def test_the_remedy_is_what_is_lacking_of_the_one_resource_that_is_short() -> None:
    nodes = [make_node("a", cpu=1), make_node("b", cpu="1500m"), make_node("c", cpu=1, memory="1Gi")]
    cluster = make_cluster(nodes=nodes)

    found = remedies(NodeResourcesFit(), cluster, make_pod(cpu=2, memory="2Gi"))

    assert found == {"give the node 500m more cpu": ["b"], "give the node 1 more cpu": ["a", "b"]}


def test_least_and_most_allocated_are_opposites() -> None:
    nodes = [make_node("empty", cpu=4, memory="4Gi"), make_node("half", cpu=4, memory="4Gi")]
    cluster = make_cluster(nodes=nodes, pods=[make_pod("runs", cpu=2, memory="2Gi", node="half")])
    pod = make_pod(cpu=1, memory="1Gi")

    assert scores(NodeResourcesFit(), cluster, pod) == {"empty": 75, "half": 25}
    most = configured(NodeResourcesFit, scoringStrategy={"type": "MostAllocated"})
    assert scores(most, cluster, pod) == {"empty": 25, "half": 75}


def test_containers_without_requests_count_a_little_when_scoring() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=1, memory="2000Mi")])

    assert scores(NodeResourcesFit(), cluster, make_pod()) == {"a": 90}


def test_balance_prefers_the_node_that_the_pod_evens_out() -> None:
    nodes = [make_node("cpu-heavy", cpu=4, memory="4Gi"), make_node("empty", cpu=4, memory="4Gi")]
    cluster = make_cluster(nodes=nodes, pods=[make_pod("runs", cpu=2, node="cpu-heavy")])

    assert scores(NodeResourcesBalancedAllocation(), cluster, make_pod(memory="2Gi")) == {"cpu-heavy": 87, "empty": 62}
    assert scores(NodeResourcesBalancedAllocation(), cluster, make_pod()) == {"cpu-heavy": 0, "empty": 0}


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"scoringStrategy": {"type": "Fullest"}}, "scoringStrategy.type"),
        ({"scoringStrategy": {"resources": [{"name": "cpu", "weight": 0}]}}, "scoringStrategy.resources[0].weight"),
        ({"scoringStrategy": {"resources": [{"name": "cpu"}, {"name": "cpu"}]}}, "scoringStrategy.resources[1].name"),
        ({"scoringStrategy": {"type": "RequestedToCapacityRatio"}}, "scoringStrategy.requestedToCapacityRatio"),
        ({"ignoredResourceGroups": ["nvidia.com/gpu"]}, "ignoredResourceGroups[0]"),
        ({"ignoredResources": [""]}, "ignoredResources[0]"),
    ],
)
def test_arguments_that_make_no_sense_are_named(args: dict[str, Any], field: str) -> None:
    assert [at for at, _, _ in problems(NodeResourcesFit, **args)] == [field]


def test_balanced_resources_have_no_weights() -> None:
    found = problems(NodeResourcesBalancedAllocation, resources=[{"name": GPU, "weight": 2}])

    assert found == [("resources[0].weight", "1, the only weight that is allowed", "2")]
