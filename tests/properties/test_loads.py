"""Load is followed as everything else is: kept answers are those computed from nothing, in trials and after them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from drawing import choices, worlds
from hypothesis import given
from hypothesis import strategies as st
from stories import Story, assembled
from test_rollback import change_something

from mooring.model.events import Event, NodeLoadLost, NodeLoadSeen
from mooring.state import cluster as clusters
from mooring.state.cluster import Cluster
from mooring.state.load import RowLoad
from mooring.state.views import PodView
from mooring.testing.builders import make_profile
from mooring.testing.random_clusters import Choose, World, random_cluster, seeded
from mooring.testing.situations import random_loads

AGES = (0, 1, 2, 3)
LOAD_AWARE = {"nodeMetricExpirationSeconds": 2, "usageThresholds": {"cpu": 60, "memory": 70}}
PROFILES = {
    "packing": make_profile("TargetLoadPacking", "NodeResourcesFit"),
    "packing, for two seconds": make_profile(
        "TargetLoadPacking", "NodeResourcesFit", args={"TargetLoadPacking": {"metricsExpirationSeconds": 2}}
    ),
    "balancing": make_profile("LoadVariationRiskBalancing", "NodeResourcesFit"),
    "low risk": make_profile("LowRiskOverCommitment", "NodeResourcesFit"),
    "peaks": make_profile("Peaks", "NodeResourcesFit"),
    "GPUs": make_profile("GpuLoad", "NodeResourcesFit", args={"GpuLoad": {"expirationSeconds": 2}}),
    "pod state": make_profile("PodState", "NodeResourcesAllocatable", "NodeResourcesFit"),
    "load-aware": make_profile("LoadAwareScheduling", args={"LoadAwareScheduling": LOAD_AWARE}),
    "load-aware and all others": make_profile(args={"LoadAwareScheduling": LOAD_AWARE})
    | {"plugins": {"multiPoint": {"enabled": [{"name": "LoadAwareScheduling"}]}}},
}


def loads_of(world: World, choose: Choose, now: float) -> list[Event]:
    """News of some nodes; nothing more of others."""
    told: list[Event] = []
    for name in world.nodes:
        if choose(2):
            told.append(NodeLoadLost(name))
            told += map(NodeLoadSeen, random_loads(choose, name, (), now, AGES))
    return told


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("spare_shapes", [0, clusters.SPARE_SHAPES])
@given(world=worlds(), steps=st.lists(st.integers(1, 6), min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_decisions_by_load_are_those_computed_from_nothing(
    spare_shapes: int, profile: str, world: World, steps: list[int], seed: int
) -> None:
    choose = seeded(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "SPARE_SHAPES", spare_shapes)
        story = Story(world, assembled(PROFILES[profile]))
        for events in steps:
            story.tell(world.events(events) + loads_of(world, choose, story.now))
            story.cycle()


def counted(pods: Iterable[PodView], load: RowLoad) -> tuple[int, int]:
    return sum(pod.shape.request("cpu") for pod in pods), 0 if load.node is None else len(load.node.levels) + 1


def recounted(cluster: Cluster) -> list[list[int]]:
    load, rows = cluster.nodes.load, range(cluster.nodes.end)
    found = [counted(map(PodView.of, cluster.pods.on(row)), load.reported(row)) for row in rows]
    return [list(values) for values in zip(*found, strict=True)]


@given(choose=choices(), depths=st.lists(st.integers(0, 3), min_size=1, max_size=4), reads=st.integers(0, 7))
def test_facts_of_rows_are_what_a_plain_recount_finds_in_trials_and_after_them(
    choose: Choose, depths: list[int], reads: int
) -> None:
    cluster = random_cluster(choose, nodes=4, pods=10, templates=3)
    facts = cluster.row_facts("counted", 2, counted)

    def kept() -> Any:
        return facts.at(np.arange(cluster.nodes.end)).tolist()

    def try_out(depths: list[int]) -> None:
        with cluster.what_if():
            for _ in range(depths[0]):
                change_something(cluster, choose)
            if reads >> len(depths) & 1:
                assert kept() == recounted(cluster)
            if depths[1:]:
                try_out(depths[1:])
        assert kept() == recounted(cluster)

    try_out(depths)
    cluster.observe(*(NodeLoadSeen(report) for report in random_loads(choose, "node-0", ())))
    assert kept() == recounted(cluster)
