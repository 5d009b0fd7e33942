from typing import Any

import pytest
from worlds import Object, World, template

from mooring.kubeapi.controllers.disruption import Disruption
from mooring.kubeapi.controllers.replica_sets import ReplicaSets
from mooring.kubeapi.status import ApiError


def make_world(replicas: int = 4) -> World:
    world = World(Disruption, ReplicaSets)
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template()}
    world.create("replicasets.apps", {"metadata": {"name": "web", "generation": 1}, "spec": spec})
    world.run(1)
    return world


def budget(**spec: Any) -> Object:
    return {
        "metadata": {"name": "web", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [
        ({"minAvailable": 3}, 3, 1),
        ({"minAvailable": "60%"}, 3, 1),
        ({"maxUnavailable": 2}, 2, 2),
        ({"maxUnavailable": "10%"}, 3, 1),
        ({"maxUnavailable": 0}, 4, 0),
    ],
)
def test_a_budget_says_how_many_may_go(spec: Object, desired: int, allowed: int) -> None:
    world = make_world()
    world.create("poddisruptionbudgets.policy", budget(**spec))

    world.run(1)

    status = world.get("poddisruptionbudgets.policy", "web")["status"]
    status.pop("conditions")
    assert status == {
        "currentHealthy": 4,
        "desiredHealthy": desired,
        "expectedPods": 4,
        "disruptionsAllowed": allowed,
        "observedGeneration": 1,
    }


def test_an_eviction_beyond_the_budget_waits_for_the_replacement() -> None:
    world = make_world()
    world.create("poddisruptionbudgets.policy", budget(maxUnavailable=1))
    world.run(1)
    first, second, *_ = world.phases()

    world.api.create_sub("pods", "default", first, "eviction", {})
    with pytest.raises(ApiError, match="would violate the pod's disruption budget"):
        world.api.create_sub("pods", "default", second, "eviction", {})
    world.run(5)
    world.api.create_sub("pods", "default", second, "eviction", {})

    world.run(5)
    assert first not in world.phases() and second not in world.phases()
    assert len(world.phases()) == 4


def test_pods_of_nobody_cannot_be_counted() -> None:
    world = make_world(0)
    world.create("pods", {"metadata": {"name": "lone", "labels": {"app": "other"}}, "spec": template()["spec"]})
    world.create("poddisruptionbudgets.policy", budget(maxUnavailable=1, selector={"matchLabels": {"app": "other"}}))

    world.run(1)

    (condition,) = world.get("poddisruptionbudgets.policy", "web")["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "SyncFailed")
