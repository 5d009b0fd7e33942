"""Vectorised answers equal those of plain references, written separately, on random small clusters."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
import reference_affinity
import reference_nodes
import reference_resources
import reference_spread
from reference_world import PlainCluster, plain_cluster

from mooring.engine.plugin import FilterAnswers, Plugin
from mooring.engine.verdict import Rejection
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, TopologySpreadConstraint
from mooring.plugins.inter_pod_affinity import InterPodAffinity
from mooring.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from mooring.plugins.node_ports import NodePorts
from mooring.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.node_resources_fit import NodeResourcesFit
from mooring.plugins.pod_topology_spread import SYSTEM_DEFAULTS, PodTopologySpread
from mooring.plugins.taint_toleration import TaintToleration
from mooring.state.cluster import Cluster
from mooring.state.shapes import Shape
from mooring.testing.asking import asked_shapes, prepare
from mooring.testing.builders import GPU, HOSTNAME, ZONE, make_cluster, make_node, make_pod, make_pods, make_spread
from mooring.testing.random_clusters import Choose
from mooring.testing.situations import MakeObjects, Objects, Situation, random_objects

SEEDS = range(30)
DEFAULT_WEIGHTS = {"cpu": 1, "memory": 1}


def configured(plugin: type[Plugin], args: dict[str, Any] | None = None) -> Any:
    return plugin(msgspec.convert(args, plugin.args_type) if args else None)


def questions(
    plugin: Plugin, make: MakeObjects = random_objects
) -> Iterator[tuple[Situation, PlainCluster, Cluster, Shape]]:
    for seed in SEEDS:
        situation = Situation(seed, make)
        cluster = situation.cluster(plugin)
        plain = plain_cluster(situation.objects())
        for shape in asked_shapes(cluster):
            yield situation, plain, cluster, shape


def refusals(plugin: FilterAnswers, cluster: Cluster, shape: Shape) -> dict[str, Rejection]:
    """By the name of each node that is refused: how."""
    nodes = cluster.rows()
    codes = prepare(plugin, cluster, shape).codes(nodes).tolist()
    return {name: plugin.rejection(shape, code) for name, code in zip(nodes.names, codes, strict=True) if code}


def agree_on_refusals(
    plugin: FilterAnswers, reference: Callable[[PlainCluster, Pod, Node], tuple[tuple[str, ...], bool] | None]
) -> None:
    refused = accepted = 0
    for situation, plain, cluster, shape in questions(plugin):
        found = {
            name: (tuple(sorted(r.reasons)), r.unresolvable) for name, r in refusals(plugin, cluster, shape).items()
        }
        expected = {}
        for node in plain.nodes:
            answer = reference(plain, shape.sample, node)
            if answer is not None:
                expected[node.name] = answer
        assert found == expected, f"{plugin.name}{situation.about(shape)}"
        refused, accepted = refused + len(expected), accepted + len(plain.nodes) - len(expected)
    assert refused and accepted, f"{plugin.name}: {refused} refused, {accepted} accepted: the clusters say too little"


def agree_on_scores(
    plugin: Plugin,
    reference: Callable[[PlainCluster, Pod, Sequence[Node]], Sequence[int] | None],
    make: MakeObjects = random_objects,
) -> None:
    different = 0
    for situation, plain, cluster, shape in questions(plugin, make):
        rows = cluster.nodes.live_rows()
        for step in (1, 2):
            nodes = cluster.rows(rows[::step])
            feasible = [node for node in plain.nodes if node.name in set(nodes.names)]
            found = dict(zip(nodes.names, prepare(plugin, cluster, shape, nodes).final(nodes).tolist(), strict=True))
            answer = reference(plain, shape.sample, feasible)
            scores = [0] * len(feasible) if answer is None else answer
            expected = {node.name: score for node, score in zip(feasible, scores, strict=True)}
            assert found == expected, f"{plugin.name}{situation.about(shape)}"
            different += len(set(expected.values())) > 1
    assert different, f"{plugin.name}: all nodes score the same everywhere: the clusters say too little"


def each(score: Callable[[PlainCluster, Pod, Node], int | None]) -> Callable[..., Sequence[int] | None]:
    """A reference for one node as one for all feasible nodes, without normalising."""
    return lambda plain, pod, nodes: [score(plain, pod, node) or 0 for node in nodes]


def by_highest(
    score: Callable[[PlainCluster, Pod, Node], int], *, reverse: bool = False
) -> Callable[..., Sequence[int] | None]:
    def normalized(plain: PlainCluster, pod: Pod, nodes: Sequence[Node]) -> list[int]:
        raw = [score(plain, pod, node) for node in nodes]
        highest = max(raw, default=0)
        if not highest:
            return [100 if reverse else value for value in raw]
        scaled = [100 * value // highest for value in raw]
        return [100 - value for value in scaled] if reverse else scaled

    return normalized


# Resources.


def test_resources_fit_as_counted_node_by_node() -> None:
    agree_on_refusals(NodeResourcesFit(), reference_resources.fits)


def test_ignored_resources_are_left_out() -> None:
    plugin = configured(NodeResourcesFit, {"ignoredResources": [GPU]})
    agree_on_refusals(plugin, lambda plain, pod, node: reference_resources.fits(plain, pod, node, ignored=[GPU]))


def test_ignored_groups_of_resources_are_left_out() -> None:
    plugin = configured(NodeResourcesFit, {"ignoredResourceGroups": ["nvidia.com"]})
    agree_on_refusals(
        plugin, lambda plain, pod, node: reference_resources.fits(plain, pod, node, ignored_groups=["nvidia.com"])
    )


WEIGHTS = [
    pytest.param(DEFAULT_WEIGHTS, id="default"),
    pytest.param({"cpu": 3, GPU: 5}, id="cpu and gpu"),
    pytest.param({"memory": 1, "ephemeral-storage": 2}, id="memory and disk"),
]


def _strategy(kind: str, weights: dict[str, int], **more: Any) -> dict[str, Any]:
    resources = [{"name": name, "weight": weight} for name, weight in weights.items()]
    return {"scoringStrategy": {"type": kind, "resources": resources, **more}}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_least_allocated_scores(weights: dict[str, int]) -> None:
    plugin = configured(NodeResourcesFit, _strategy("LeastAllocated", weights))
    agree_on_scores(
        plugin, each(lambda plain, pod, node: reference_resources.least_allocated(plain, pod, node, weights))
    )


@pytest.mark.parametrize("weights", WEIGHTS)
def test_most_allocated_scores(weights: dict[str, int]) -> None:
    plugin = configured(NodeResourcesFit, _strategy("MostAllocated", weights))
    agree_on_scores(
        plugin, each(lambda plain, pod, node: reference_resources.most_allocated(plain, pod, node, weights))
    )


@pytest.mark.parametrize("shape", [[(0, 0), (100, 10)], [(10, 7), (35, 1), (90, 10)], [(20, 10), (60, 0)]])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_requested_to_capacity_ratio_scores(weights: dict[str, int], shape: list[tuple[int, int]]) -> None:
    points = [{"utilization": at, "score": score} for at, score in shape]
    ratio = {"requestedToCapacityRatio": {"shape": points}}
    plugin = configured(NodeResourcesFit, _strategy("RequestedToCapacityRatio", weights, **ratio))
    reference = reference_resources.requested_to_capacity_ratio
    agree_on_scores(plugin, each(lambda plain, pod, node: reference(plain, pod, node, weights, shape)))


@pytest.mark.parametrize("resources", [("cpu", "memory"), ("cpu", "memory", GPU), (GPU, "ephemeral-storage")])
def test_balanced_allocation_scores(resources: tuple[str, ...]) -> None:
    plugin = configured(NodeResourcesBalancedAllocation, {"resources": [{"name": name} for name in resources]})
    reference = reference_resources.balanced_allocation
    agree_on_scores(plugin, each(lambda plain, pod, node: reference(plain, pod, node, resources)))


# Nodes.


def test_taints_are_tolerated_or_not() -> None:
    def reference(plain: PlainCluster, pod: Pod, node: Node) -> tuple[tuple[str, ...], bool] | None:
        untolerated = reference_nodes.has_untolerated_taint(pod, node)
        return (("node(s) had untolerated taint(s)",), True) if untolerated else None

    agree_on_refusals(TaintToleration(), reference)


def test_taint_scores() -> None:
    reference = by_highest(lambda plain, pod, node: reference_nodes.disliked_taints(pod, node), reverse=True)
    agree_on_scores(TaintToleration(), reference)


def test_node_affinity_matches_or_not() -> None:
    def reference(plain: PlainCluster, pod: Pod, node: Node) -> tuple[tuple[str, ...], bool] | None:
        matches = reference_nodes.matches_required(pod, node)
        return None if matches else (("node(s) didn't match Pod's node affinity/selector",), True)

    agree_on_refusals(NodeAffinity(), reference)


TERM = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
ADDED = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]},
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": TERM}],
}


def test_node_affinity_that_the_profile_adds() -> None:
    plugin = configured(NodeAffinity, {"addedAffinity": ADDED})
    assert isinstance(plugin.args, NodeAffinityArgs) and plugin.args.added_affinity is not None
    added = plugin.args.added_affinity

    def reference(plain: PlainCluster, pod: Pod, node: Node) -> tuple[tuple[str, ...], bool] | None:
        assert added.required is not None
        if not any(reference_nodes.matches_term(term, node) for term in added.required.node_selector_terms):
            return ("node(s) didn't match scheduler-enforced node affinity",), True
        matches = reference_nodes.matches_required(pod, node)
        return None if matches else (("node(s) didn't match Pod's node affinity/selector",), True)

    agree_on_refusals(plugin, reference)
    agree_on_scores(plugin, by_highest(lambda plain, pod, node: _preferred(pod, node, added)))


def test_node_affinity_scores() -> None:
    agree_on_scores(NodeAffinity(), by_highest(lambda plain, pod, node: _preferred(pod, node, None)))


def _preferred(pod: Pod, node: Node, added: Any) -> int:
    own = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return reference_nodes.preferred_weight(node, [own, added])


def test_host_ports_collide_or_not() -> None:
    def reference(plain: PlainCluster, pod: Pod, node: Node) -> tuple[tuple[str, ...], bool] | None:
        collide = reference_nodes.ports_collide(plain, pod, node)
        return (("node(s) didn't have free ports for the requested pod ports",), False) if collide else None

    agree_on_refusals(NodePorts(), reference)


# Pods among pods.

LISTED = [make_spread(ZONE, max_skew=1), make_spread(HOSTNAME, max_skew=2, soft=True)]
DEFAULTS: list[Any] = [
    pytest.param(None, SYSTEM_DEFAULTS, id="system defaults"),
    pytest.param(
        {
            "defaultingType": "List",
            "defaultConstraints": [
                {"maxSkew": c.max_skew, "topologyKey": c.topology_key, "whenUnsatisfiable": c.when_unsatisfiable}
                for c in LISTED
            ],
        },
        LISTED,
        id="listed defaults",
    ),
]


@pytest.mark.parametrize(("args", "defaults"), DEFAULTS)
def test_spread_constraints_hold_or_not(
    args: dict[str, Any] | None, defaults: Sequence[TopologySpreadConstraint]
) -> None:
    reason = "node(s) didn't match pod topology spread constraints"

    def reference(plain: PlainCluster, pod: Pod, node: Node) -> tuple[tuple[str, ...], bool] | None:
        answer = reference_spread.filter_node(plain, pod, node, defaults)
        if answer == reference_spread.MISSING_LABEL:
            return (f"{reason} (missing required label)",), True
        return ((reason,), False) if answer else None

    agree_on_refusals(configured(PodTopologySpread, args), reference)


@pytest.mark.parametrize(("args", "defaults"), DEFAULTS)
def test_spread_scores(args: dict[str, Any] | None, defaults: Sequence[TopologySpreadConstraint]) -> None:
    def reference(plain: PlainCluster, pod: Pod, nodes: Sequence[Node]) -> Sequence[int] | None:
        return reference_spread.score_nodes(plain, pod, nodes, defaults, system_defaults=args is None)

    agree_on_scores(configured(PodTopologySpread, args), reference, with_hostnames_of_their_own)


def with_hostnames_of_their_own(choose: Choose) -> Objects:
    objects = random_objects(choose)
    for node in objects.nodes:
        node.metadata.labels = {**(node.metadata.labels or {}), HOSTNAME: node.name}
    return objects


def test_nodes_that_share_a_hostname_label_are_counted_apart_when_scoring() -> None:
    nodes = [make_node("a", labels={HOSTNAME: "same"}), make_node("b", labels={HOSTNAME: "same"}), make_node("c")]
    pods = [*make_pods(2, node="a", labels={"app": "web"}), make_pod("asked", labels={"app": "web"})]
    pods[-1].spec.topology_spread_constraints = [make_spread(HOSTNAME, labels={"app": "web"}, soft=True)]
    plugin = PodTopologySpread()
    cluster = make_cluster(nodes=nodes, pods=pods)

    scores = prepare(plugin, cluster, cluster.shape_for(pods[-1])).final(cluster.rows()).tolist()

    plain = plain_cluster(Objects(nodes, pods))
    assert scores == reference_spread.score_nodes(plain, pods[-1], nodes, SYSTEM_DEFAULTS, system_defaults=True)


def test_pod_affinity_holds_or_not() -> None:
    reasons = {
        reference_affinity.NOT_NEAR: (("node(s) didn't match pod affinity rules",), True),
        reference_affinity.NOT_AWAY: (("node(s) didn't match pod anti-affinity rules",), False),
        reference_affinity.UNWANTED: (("node(s) didn't satisfy existing pods anti-affinity rules",), False),
    }

    def reference(plain: PlainCluster, pod: Pod, node: Node) -> tuple[tuple[str, ...], bool] | None:
        answer = reference_affinity.filter_node(plain, pod, node)
        return None if answer is None else reasons[answer]

    agree_on_refusals(InterPodAffinity(), reference)


@pytest.mark.parametrize(("hard_weight", "ignore_existing"), [(1, False), (0, True), (100, False), (7, True)])
def test_pod_affinity_scores(hard_weight: int, ignore_existing: bool) -> None:
    args = {"hardPodAffinityWeight": hard_weight, "ignorePreferredTermsOfExistingPods": ignore_existing}

    def reference(plain: PlainCluster, pod: Pod, nodes: Sequence[Node]) -> Sequence[int]:
        return reference_affinity.score_nodes(
            plain, pod, nodes, hard_weight=hard_weight, ignore_existing=ignore_existing
        )

    agree_on_scores(configured(InterPodAffinity, args), reference)
