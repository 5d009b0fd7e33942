"""ResourcePoolStatusRequests: answered once, from what slices and claims say at that moment."""

from typing import Any

from worlds import World

from mooring.kubeapi.controllers.pool_status_requests import CLAIMS, RESOURCE, SLICES, TAINT_RULES, PoolStatusRequests

Object = dict[str, Any]
DRIVER = "gpu.example.com"


def publish(
    world: World, name: str, devices: list[Object], *, count: int = 1, generation: int = 1, **spec: Any
) -> None:
    pool = {"name": spec.pop("pool", "p"), "generation": generation, "resourceSliceCount": count}
    body = {"driver": DRIVER, "pool": pool, "devices": devices, **spec}
    world.create(SLICES, {"metadata": {"name": name}, "spec": body})


def allocate(world: World, *results: Object) -> None:
    """Claims that have devices of the pool p."""
    for number, result in enumerate(results):
        found = {"request": "r", "driver": DRIVER, "pool": "p", **result}
        status = {"allocation": {"devices": {"results": [found]}}}
        world.create(CLAIMS, {"metadata": {"name": f"c{number}"}, "spec": {}, "status": status})


def ask(world: World, **spec: Any) -> Object | None:
    world.create(RESOURCE, {"metadata": {"name": "q"}, "spec": {"driver": DRIVER, **spec}})
    world.run()
    status: Object | None = world.get(RESOURCE, "q", "").get("status")
    return status


def devices(*names: str, **more: Any) -> list[Object]:
    return [{"name": name, **more} for name in names]


def test_devices_are_counted_by_whether_they_can_be_had() -> None:
    world = World(PoolStatusRequests)
    taint = {"key": "k", "effect": "NoExecute"}
    publish(world, "old", devices("x"), generation=0)
    publish(world, "s0", [*devices("a", "b", "c"), {"name": "d", "taints": [taint]}], count=2, nodeName="n")
    publish(world, "s1", devices("e", "f"), count=2, nodeName="n")
    selector = {"driver": DRIVER, "device": "e"}
    rule = {"deviceSelector": selector, "taint": {"key": "k", "effect": "NoSchedule"}}
    world.create(TAINT_RULES, {"metadata": {"name": "t"}, "spec": rule})
    allocate(world, {"device": "a"}, {"device": "a"}, {"device": "b", "adminAccess": True})

    status = ask(world)

    assert status is not None
    assert status["poolCount"] == 1
    assert status["pools"] == [
        {
            "driver": DRIVER,
            "poolName": "p",
            "generation": 1,
            "nodeName": "n",
            "resourceSliceCount": 2,
            "totalDevices": 6,
            "allocatedDevices": 1,
            "availableDevices": 3,
            "unavailableDevices": 2,
        }
    ]
    assert [(one["type"], one["status"], one["message"]) for one in status["conditions"]] == [
        ("Complete", "True", "Calculated status for 1 pools")
    ]


def test_a_pool_that_is_not_complete_is_waited_for() -> None:
    world = World(PoolStatusRequests)
    publish(world, "s0", devices("a"), count=2)

    assert ask(world) is None
    publish(world, "s1", devices("b"), count=2)
    world.run(10)

    assert world.get(RESOURCE, "q", "")["status"]["pools"][0]["totalDevices"] == 2


def test_pools_are_filtered_and_limited_by_name() -> None:
    world = World(PoolStatusRequests)
    for name in ("c", "a", "b"):
        publish(world, name, devices("d"), pool=name)

    status = ask(world, limit=2)
    world.create(RESOURCE, {"metadata": {"name": "one"}, "spec": {"driver": DRIVER, "poolName": "c"}})
    world.run()

    assert status is not None
    assert (status["poolCount"], [pool["poolName"] for pool in status["pools"]]) == (3, ["a", "b"])
    assert [pool["poolName"] for pool in world.get(RESOURCE, "one", "")["status"]["pools"]] == ["c"]


def partitions(**attribute: Any) -> list[Object]:
    def part(name: str, type_: str, amount: str) -> Object:
        cost = {"counterSet": "gpu", "counters": {"memory": {"value": amount}}}
        return {"name": name, "attributes": {"profile": {"string": type_}}, "consumesCounters": [cost], **attribute}

    return [part("full", "Full", "80Gi"), part("half-0", "Half", "40Gi"), part("half-1", "Half", "40Gi")]


COUNTERS = [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}}}]


def test_partitions_are_summed_up_by_type() -> None:
    world = World(PoolStatusRequests)
    publish(world, "s", partitions(), sharedCounters=COUNTERS, partitionTypeAttribute=f"{DRIVER}/profile")
    allocate(world, {"device": "half-0"})

    status = ask(world)

    assert status is not None
    assert status["pools"][0]["partitionSummary"] == [
        {"attribute": f"{DRIVER}/profile", "type": "Full", "total": 1, "allocatable": 0},
        {"attribute": f"{DRIVER}/profile", "type": "Half", "total": 2, "allocatable": 1},
    ]


def test_a_request_may_name_the_attribute_that_partitions_are_grouped_by() -> None:
    world = World(PoolStatusRequests)
    publish(world, "s", partitions(), sharedCounters=COUNTERS)

    status = ask(world, defaultPartitionTypeAttribute=f"{DRIVER}/colour")

    assert status is not None
    assert status["pools"][0]["validationError"].startswith('PartitionTypeMissing: device "full"')
    assert "partitionSummary" not in status["pools"][0]


def test_shared_devices_have_the_sum_of_their_capacities() -> None:
    world = World(PoolStatusRequests)
    shared = devices("a", "b", allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi"}})
    publish(world, "s", shared)
    allocate(world, {"device": "a", "consumedCapacity": {"memory": "4Gi"}})

    status = ask(world)

    assert status is not None
    assert status["pools"][0]["shareableSummary"] == {
        "fullyAvailableDevices": 1,
        "partiallyAvailableDevices": 1,
        "capacity": [{"name": "memory", "total": "20Gi", "consumed": "4Gi", "available": "16Gi"}],
    }


def test_an_answered_request_is_removed_after_an_hour() -> None:
    world = World(PoolStatusRequests)
    assert ask(world) is not None

    world.run(3500)
    assert world.api.find(RESOURCE, None, "q") is not None
    world.run(200)
    assert world.api.find(RESOURCE, None, "q") is None
