"""A gang gets all its nodes, in one place, or none; what is bought in vain goes again."""

from collections.abc import Callable

import pytest
from provider_world import Faults, World, catalogue, instance, node_pool

from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import PLAIN_KIND
from mooring.model.topology.requests import TopologyRequest

BLOCK = "example.com/block"
OPEN = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
POLICY = {
    "kind": "CapacityPolicy",
    "apiVersion": "config.mooring.dev/v1alpha1",
    "quietSeconds": 0,
    "retrySeconds": 300,
}
SIZE = 64


def capacity_type(*types: str) -> dict[str, object]:
    return {"spec": {"requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(types)}]}}


def world(faults: Faults | None = None, *, only_spot: bool = False) -> World:
    machine = instance("gpu", 8, labels={BLOCK: ["block-a", "block-b"]})
    machine["offerings"] = [
        {"zone": "zone-a", "capacityType": "spot", "price": 1},
        {"zone": "zone-a", "capacityType": "on-demand", "price": 3},
    ]
    pools = [node_pool("spot", weight=10, template=capacity_type("spot"), disruption=OPEN)]
    if not only_spot:
        pools.append(node_pool("reliable", template=capacity_type("on-demand"), disruption=OPEN))
    made = World([catalogue(machine), POLICY], pools, faults or Faults())
    made.begin()
    request = TopologyRequest(required=BLOCK)
    made.add_gang(Gang(gang_key(PLAIN_KIND, "default", "train"), "default/train", SIZE, topology_request=request))
    return made


def start(here: World) -> None:
    here.scale("train", SIZE, cpu="7", annotations={"mooring.dev/gang-name": "train"})


def blocks(here: World) -> set[str]:
    nodes = [here.nodes[pod.spec.node_name] for pod in here.pods.values()]
    return {(node.metadata.labels or {})[BLOCK] for node in nodes}


def sold_out_after(here: list[World], count: int) -> Callable[[str], bool]:
    def is_sold_out(name: str) -> bool:
        return name.startswith("spot") and sum(each.startswith("spot") for each in here[0].claims) > count

    return is_sold_out


def test_sixty_four_nodes_of_one_block_are_bought_together() -> None:
    here = world()
    start(here)
    here.run(60)
    assert not here.waiting
    assert len(here.nodes) == SIZE
    assert len(blocks(here)) == 1
    assert all(name.startswith("spot") for name in here.launched)


def test_after_a_shortage_the_next_pool_gives_all_of_them_and_nothing_is_left_idle() -> None:
    worlds: list[World] = []
    here = world(Faults(sold_out=sold_out_after(worlds, 40)))
    worlds.append(here)
    start(here)
    here.run(900)
    assert not here.waiting
    assert len(blocks(here)) == 1
    assert {pod.spec.node_name for pod in here.pods.values()} == set(here.nodes) == set(here.claims)
    assert len(here.nodes) == SIZE
    assert sum(name.startswith("reliable") for name in here.nodes) == 24, "what spot had is used, the rest is on-demand"


def test_without_another_pool_none_start_and_what_was_bought_goes() -> None:
    worlds: list[World] = []
    here = world(Faults(sold_out=sold_out_after(worlds, 40)), only_spot=True)
    worlds.append(here)
    start(here)
    here.run(250)
    assert len(here.waiting) == SIZE
    assert not here.nodes
    assert not here.claims


@pytest.mark.parametrize("at", [1, 20, 40])
def test_a_restart_in_between_buys_nothing_twice(at: int) -> None:
    here = world(Faults(delay=lambda: 30.0 + len(worlds[0].launched) % 7 if worlds else 30.0))
    worlds = [here]
    start(here)
    here.run(at, step=1.0)
    here.restart()
    here.run(120)
    assert not here.waiting
    assert len(here.launched) == SIZE
    assert len(blocks(here)) == 1
