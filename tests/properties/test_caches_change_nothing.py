"""Answers kept between pods, rankings and hints change no decision: the same as computing everything from nothing."""

from collections import Counter
from typing import Any

import other_peoples_plugins
import pytest
from drawing import worlds
from hypothesis import given
from hypothesis import strategies as st
from stories import Story, assembled

from examples import examples
from mooring.actions import batches
from mooring.engine.answers.answers import ShapeAnswers
from mooring.engine.plugin import Plugin
from mooring.engine.ranking.ranking import Ranking, is_row_filter, is_row_score
from mooring.state import cluster
from mooring.testing.builders import ZONE, make_node, make_profile
from mooring.testing.random_clusters import World, random_world, seeded

MOST = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": "nvidia.com/gpu", "weight": 5}]}
RATIO = {
    "type": "RequestedToCapacityRatio",
    "resources": [{"name": "memory", "weight": 3}, {"name": "cpu", "weight": 1}],
    "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 2}, {"utilization": 70, "score": 10}]},
}
ADDED = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]}]
    },
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 7, "preference": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}
    ],
}
STRICT = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]

PROFILES: dict[str, dict[str, Any] | None] = {
    "default": None,
    "one pod a batch": make_profile(args={"Batching": {"mode": "Fixed", "size": 1}}),
    "five pods a batch": make_profile(args={"Batching": {"mode": "Fixed", "size": 5}}),
    "packed": make_profile(args={"NodeResourcesFit": {"scoringStrategy": MOST}}),
    "NodeResourcesFit": make_profile("NodeResourcesFit"),
    "NodeResourcesFit by ratio": make_profile(
        "NodeResourcesFit", args={"NodeResourcesFit": {"scoringStrategy": RATIO}}
    ),
    "NodeResourcesBalancedAllocation": make_profile("NodeResourcesBalancedAllocation"),
    "balanced GPUs": make_profile(
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        args={"NodeResourcesBalancedAllocation": {"resources": [{"name": "cpu"}, {"name": "nvidia.com/gpu"}]}},
    ),
    "TaintToleration": make_profile("TaintToleration"),
    "TaintToleration and room": make_profile("TaintToleration", "NodeResourcesFit"),
    "NodeAffinity": make_profile("NodeAffinity"),
    "NodeAffinity for all": make_profile("NodeAffinity", args={"NodeAffinity": {"addedAffinity": ADDED}}),
    "NodePorts": make_profile("NodePorts"),
    "NodeName and NodeUnschedulable": make_profile("NodeName", "NodeUnschedulable"),
    "ImageLocality": make_profile("ImageLocality", "NodeResourcesFit"),
    "PodTopologySpread": make_profile("PodTopologySpread"),
    "PodTopologySpread and room": make_profile("PodTopologySpread", "NodeResourcesFit", "TaintToleration"),
    "PodTopologySpread for all": make_profile(
        "PodTopologySpread",
        args={"PodTopologySpread": {"defaultingType": "List", "defaultConstraints": STRICT}},
    ),
    "InterPodAffinity": make_profile("InterPodAffinity"),
    "InterPodAffinity and room": make_profile("InterPodAffinity", "NodeResourcesFit", "TaintToleration"),
    "InterPodAffinity, one side": make_profile(
        "InterPodAffinity",
        args={"InterPodAffinity": {"ignorePreferredTermsOfExistingPods": True, "hardPodAffinityWeight": 0}},
    ),
}


@pytest.mark.parametrize("profile", [pytest.param(profile, id=name) for name, profile in PROFILES.items()])
@given(world=worlds(), steps=st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_whatever_happens_the_decisions_are_those_computed_from_nothing(
    profile: dict[str, Any] | None, world: World, steps: list[int]
) -> None:
    story = Story(world, assembled(profile))

    for events in steps:
        story.tell(world.events(events))
        story.cycle()


@pytest.mark.parametrize("name", ["default", "PodTopologySpread and room", "InterPodAffinity and room"])
@given(world=worlds(), steps=st.lists(st.integers(1, 8), min_size=3, max_size=8))
def test_shapes_that_are_forgotten_and_numbers_that_are_given_again_change_no_decision(
    name: str, world: World, steps: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "SPARE_SHAPES", 0)
        story = Story(world, assembled(PROFILES[name]))
        for events in steps:
            story.tell(world.events(events))
            story.cycle()


@pytest.mark.parametrize("name", ["default", "packed", "PodTopologySpread and room", "InterPodAffinity and room"])
@given(
    seed=st.integers(0, 10_000),
    nodes=st.sampled_from([20, 150, 300]),
    zones=st.integers(1, 3),
    racks=st.integers(1, 6),
    pods=st.lists(st.sampled_from([10, 130, 260]), min_size=1, max_size=3),
)
@examples(10)
def test_large_batches_get_the_nodes_that_their_pods_would_have_got_one_by_one(
    name: str, seed: int, nodes: int, zones: int, racks: int, pods: list[int]
) -> None:
    choose = seeded(seed)
    world = random_world(choose, nodes=0, templates=2)
    for index in range(nodes):
        where: dict[str, Any] = {"zone": f"zone-{index % zones}", "rack": f"rack-{index % racks}"}
        node = make_node(f"node-{index}", cpu=1 + choose(2), pods=(110, 2, 3)[choose(3)], **where)
        world.nodes[node.name] = node
    story = Story(world, assembled(PROFILES[name]))

    for count in pods:
        story.tell(world.new_pods(world.templates[choose(2)], count) + world.events(choose(3)))
        story.cycle()


def test_such_stories_reach_every_way_of_choosing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would say less than they seem to."""
    seen = Counter[str]()
    ranking_kind = batches.ranking_kind

    def counted(answers: ShapeAnswers) -> Any:
        kind = ranking_kind(answers)
        seen["one by one" if kind is None else kind.__name__] += 1
        if kind is Ranking:
            by_row = [is_row_filter(answers, domain) for domain in answers.domain_filters]
            score_by_row = [is_row_score(answers, score) for score in answers.normalized_scores]
            seen["filters by row"] += any(by_row)
            seen["filters by group"] += not all(by_row)
            seen["scores by row"] += any(score_by_row)
            seen["scores by group"] += not all(score_by_row)
        return kind

    monkeypatch.setattr(batches, "ranking_kind", counted)
    for seed in range(150):
        choose = seeded(seed)
        world = random_world(choose, nodes=1 + choose(24), templates=1 + choose(3))
        story = Story(world, assembled(None))
        for _ in range(3):
            story.tell(world.events(1 + choose(5)))
            story.cycle()

    by_row_or_group = ("filters by row", "filters by group", "scores by row", "scores by group")
    ways = ("one by one", "Ranking", "ClassRanking", *by_row_or_group)
    assert {way: seen[way] > 0 for way in ways} == dict.fromkeys(ways, True)


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with the default plugins"])
@pytest.mark.parametrize("plugin", other_peoples_plugins.ALL)
@given(world=worlds(most_nodes=24), steps=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_nor_with_plugins_that_others_write(plugin: type[Plugin], alone: bool, world: World, steps: list[int]) -> None:
    profile = make_profile(plugin.__name__) if alone else None
    story = Story(world, assembled(profile, plugin), assembled(profile, plugin))

    for events in steps:
        story.tell(world.events(events))
        story.cycle()
