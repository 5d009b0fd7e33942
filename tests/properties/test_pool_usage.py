"""What pools keep is counted right whatever happens, and cached answers about it are those computed from nothing."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from drawing import choices, worlds
from hypothesis import given
from hypothesis import strategies as st
from stories import Story, assembled
from test_rollback import change_something

from mooring.state import cluster as clusters
from mooring.state.cluster import Cluster
from mooring.state.nodes import PLACES
from mooring.state.partial_usage import PartialUsage
from mooring.state.pods import UNBOUND
from mooring.state.shapes import Shape
from mooring.testing.builders import make_profile
from mooring.testing.random_clusters import Choose, World, random_cluster

RESOURCES = ("cpu", "memory", "nvidia.com/gpu", PLACES)
ENABLED = {"multiPoint": {"enabled": [{"name": "NodePools", "weight": 100}]}}
POOLS: list[dict[str, Any]] = [
    {"name": "a", "nodeLabels": {"disk": "hdd"}, "namespaces": ["team-a"], "policy": "Dedicated"},
    {"name": "b", "nodeLabels": {"tier": "5"}, "podLabels": {"app": "web"}},
    {
        "name": "c",
        "nodeLabels": {"disk": "ssd"},
        "podLabels": {"tier": "front"},
        "policy": "Reserved",
        "reservedPercent": 60,
    },
]
BACK = [POOLS[0], *({**pool, "movesBack": True} for pool in POOLS[1:])]
PROFILES = {
    "pools": make_profile("NodePools", "NodeResourcesFit", args={"NodePools": {"pools": POOLS}}),
    "pools and all others": make_profile(args={"NodePools": {"pools": POOLS}}) | {"plugins": ENABLED},
    "and back": make_profile(args={"NodePools": {"pools": BACK, "mostMovesAtATime": 2}}) | {"plugins": ENABLED},
}


def is_counted(shape: Shape) -> bool:
    return shape.namespace == "default"


def recounted(cluster: Cluster) -> dict[str, list[int]]:
    """Row by row, pod by pod."""
    found = {resource: [0] * cluster.nodes.end for resource in RESOURCES}
    for record in cluster.pods.records.values():
        if record.row != UNBOUND and is_counted(record.shape):
            taken = Counter(record.shape.requests)
            taken[PLACES] += 1
            for resource in RESOURCES:
                found[resource][record.row] += taken[resource]
    return found


def kept(cluster: Cluster, usage: PartialUsage) -> dict[str, list[int]]:
    rows = np.arange(cluster.nodes.end)
    return {resource: usage.of(resource, rows).tolist() for resource in RESOURCES}


@given(choose=choices(), depths=st.lists(st.integers(0, 3), min_size=1, max_size=4), reads=st.integers(0, 7))
def test_what_some_pods_use_is_what_a_plain_recount_finds_in_trials_and_after_them(
    choose: Choose, depths: list[int], reads: int
) -> None:
    cluster = random_cluster(choose, nodes=4, pods=10, templates=3)
    usage = cluster.usage_of_some("some", is_counted)

    def try_out(depths: list[int]) -> None:
        with cluster.what_if():
            for _ in range(depths[0]):
                change_something(cluster, choose)
            if reads >> len(depths) & 1:
                assert kept(cluster, usage) == recounted(cluster)
            if depths[1:]:
                try_out(depths[1:])
        assert kept(cluster, usage) == recounted(cluster)

    try_out(depths)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("spare_shapes", [0, clusters.SPARE_SHAPES])
@given(world=worlds(), steps=st.lists(st.integers(1, 8), min_size=1, max_size=6))
def test_decisions_with_pools_are_those_computed_from_nothing_and_usage_follows_every_event(
    spare_shapes: int, profile: str, world: World, steps: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "SPARE_SHAPES", spare_shapes)  # with none, shapes are forgotten all the time
        story = Story(world, assembled(PROFILES[profile]))
        cluster = story.fast.cluster
        usage = cluster.usage_of_some("some", is_counted)
        for events in steps:
            story.tell(world.events(events))
            story.cycle()
            assert kept(cluster, usage) == recounted(cluster)
