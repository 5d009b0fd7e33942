"""Nodes that draw the same number and score the same keep the order of their rows, whichever way pods are placed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stories import Story, assembled

from examples import examples
from mooring.state import nodes
from mooring.testing.builders import make_node, make_profile
from mooring.testing.random_clusters import random_world, seeded

PROFILES: dict[str, dict[str, Any] | None] = {
    "default": None,
    "spread": make_profile("PodTopologySpread", "NodeResourcesFit"),
    "affinity": make_profile("InterPodAffinity", "NodeResourcesFit"),
}


class SameNumbers:
    """Instead of zlib: few different checksums, so that many nodes share theirs."""

    @staticmethod
    def crc32(data: bytes, value: int = 0) -> int:
        return (len(data) + value) % 2 << 31


@contextmanager
def equal_numbers() -> Iterator[None]:
    with patch.object(nodes, "zlib", SameNumbers):
        yield


@pytest.mark.parametrize("name", PROFILES)
@given(
    seed=st.integers(0, 10_000),
    count=st.sampled_from([12, 40, 150, 300]),
    zones=st.integers(1, 4),
    racks=st.sampled_from([2, 7, 20]),
    pods=st.lists(st.sampled_from([5, 30, 130]), min_size=1, max_size=3),
)
@examples(15)
def test_equal_nodes_are_taken_in_order(
    name: str, seed: int, count: int, zones: int, racks: int, pods: list[int]
) -> None:
    choose = seeded(seed)
    world = random_world(choose, nodes=0, templates=2)
    for index in range(count):
        where: dict[str, Any] = {"zone": f"zone-{choose(zones)}", "rack": f"rack-{choose(racks)}"}
        node = make_node(f"node-{index:03}", cpu=4, pods=(110, 2, 3)[choose(3)], **where)
        world.nodes[node.name] = node
    with equal_numbers():
        story = Story(world, assembled(PROFILES[name]))
        for created in pods:
            story.tell(world.new_pods(world.templates[choose(2)], created))
            story.cycle()
        ties = story.fast.cluster.nodes.tie.values[:count].tolist()

    assert len(set(ties)) < len(ties)
