"""The provider of the embedded control plane: what becomes of NodeClaims, and what each of its settings changes."""

from functools import partial
from typing import Any

from worlds import Object, World

from mooring.config.catalogue import parse_whole_catalogue
from mooring.kubeapi.controllers.node_claims import CLAIMS, POOLS, NodeClaims, NodePools

SPOT, ON_DEMAND = "spot", "on-demand"


def make_world(*, quantity: int | None = None, **provider: Any) -> World:
    offerings: list[Object] = [
        {"zone": "zone-a", "capacityType": SPOT, "price": 0.1},
        {"zone": "zone-a", "capacityType": ON_DEMAND, "price": 0.3},
    ]
    if quantity is not None:
        offerings[0]["quantity"] = quantity
    document = {
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "InstanceTypeCatalogue",
        "provider": {"launchSeconds": 1, "registerSeconds": 2, **provider},
        "instanceTypes": [
            {"name": f"c-{cpus}", "capacity": {"cpu": cpus, "memory": "8Gi"}, "offerings": offerings} for cpus in (4, 2)
        ],
    }
    catalogue = parse_whole_catalogue(document, "catalogue")
    return World(NodePools, partial(NodeClaims, catalogue=catalogue), nodes=0)


def claim(world: World, name: str = "general-0", *capacity_types: str, types: tuple[str, ...] = ("c-2",)) -> None:
    required = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}]
    if capacity_types:
        required.append({"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(capacity_types)})
    world.create(
        CLAIMS,
        {
            "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "general"}},
            "spec": {"requirements": required},
        },
    )


def names(world: World, resource: str) -> list[str]:
    return sorted(each["metadata"]["name"] for each in world.api.list(resource))


def labels(world: World, name: str = "general-0") -> Object:
    found: Object = world.api.get("nodes", None, name)["metadata"]["labels"]
    return found


def reasons(world: World) -> set[str]:
    return {each["reason"] for each in world.api.list("events") if each["involvedObject"]["kind"] == "NodeClaim"}


def test_a_claim_becomes_a_machine_then_a_node_and_its_pool_counts_it() -> None:
    world = make_world(launchSeconds=5, registerSeconds=10)
    world.create(POOLS, {"metadata": {"name": "general"}, "spec": {}})
    claim(world)
    world.run(4)
    assert not world.api.get(CLAIMS, None, "general-0").get("status")
    world.run(2)
    assert world.api.get(CLAIMS, None, "general-0")["status"]["providerID"] == "mooring://zone-a/general-0"
    assert not names(world, "nodes")
    world.run(10)
    assert labels(world)["node.kubernetes.io/instance-type"] == "c-2"
    assert labels(world)["karpenter.sh/capacity-type"] == SPOT
    status = world.api.get(POOLS, None, "general")["status"]
    assert status["nodes"] == 1
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "True"


def test_a_claim_and_its_node_go_together() -> None:
    world = make_world()
    claim(world)
    claim(world, "general-1")
    world.run(5)
    world.api.delete(CLAIMS, None, "general-0")
    world.api.delete("nodes", None, "general-1")
    world.run(1)
    assert not names(world, "nodes")
    assert not names(world, CLAIMS)


def test_what_is_sold_out_is_replaced_by_what_else_the_claim_allows() -> None:
    world = make_world(quantity=1)
    claim(world, "general-0")
    world.run(5)
    claim(world, "general-1")
    claim(world, "general-2", SPOT)
    world.run(5)
    assert labels(world, "general-1")["karpenter.sh/capacity-type"] == ON_DEMAND
    assert names(world, CLAIMS) == ["general-0", "general-1"]
    assert reasons(world) == {"InsufficientCapacityError"}


def test_a_launch_can_fail() -> None:
    world = make_world(faults={"fail": 1})
    claim(world)
    world.run(5)
    assert not names(world, CLAIMS)
    assert reasons(world) == {"InsufficientCapacityError"}


def test_another_instance_type_can_come() -> None:
    world = make_world(faults={"wrongType": 1})
    claim(world)
    world.run(5)
    assert labels(world)["node.kubernetes.io/instance-type"] == "c-4"


def test_a_node_that_never_registers_is_given_up_in_time() -> None:
    world = make_world(faults={"neverRegister": 1}, registrationTimeoutSeconds=60)
    claim(world)
    world.run(50)
    assert names(world, CLAIMS) == ["general-0"]
    world.run(20)
    assert not names(world, CLAIMS)
    assert not names(world, "nodes")
    assert reasons(world) == {"RegistrationTimeout"}


def test_a_node_can_be_late() -> None:
    world = make_world(faults={"late": 1, "lateSeconds": 40})
    claim(world)
    world.run(30)
    assert not names(world, "nodes")
    world.run(20)
    assert names(world, "nodes") == ["general-0"]


def test_which_claims_fare_badly_is_drawn_by_a_seed() -> None:
    def failed(seed: int) -> list[str]:
        world = make_world(faults={"fail": 0.5, "seed": seed})
        for number in range(12):
            claim(world, f"general-{number}")
        world.run(5)
        return names(world, CLAIMS)

    assert failed(1) == failed(1)
    assert failed(1) != failed(2)


def test_spot_nodes_are_taken_back_after_a_notice_and_others_are_not() -> None:
    world = make_world(spotLifetimeSeconds=100, spotNoticeSeconds=30)
    claim(world, "general-0", SPOT)
    claim(world, "general-1", ON_DEMAND)
    world.run(60)
    assert not world.api.get("nodes", None, "general-0")["spec"].get("taints")
    world.run(25)
    assert world.api.get("nodes", None, "general-0")["spec"]["taints"][0]["key"] == "karpenter.sh/disrupted"
    world.run(30)
    assert names(world, "nodes") == ["general-1"]
    assert reasons(world) == {"SpotInterrupted", "SpotReclaimed"}


def test_it_is_written_when_pods_came_and_went() -> None:
    world = make_world()
    claim(world)
    world.run(5)
    pod = {"metadata": {"name": "one"}, "spec": {"nodeName": "general-0", "containers": [{"name": "main"}]}}
    world.create("pods", pod)
    world.run(1)
    came = world.api.get(CLAIMS, None, "general-0")["status"]["lastPodEventTime"]
    world.run(60)
    world.api.delete("pods", "default", "one", grace_period=0)
    world.run(10)
    assert world.api.get(CLAIMS, None, "general-0")["status"]["lastPodEventTime"] > came
