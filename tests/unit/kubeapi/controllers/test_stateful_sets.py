from typing import Any

from worlds import Object, World, template

from mooring.kubeapi.controllers.garbage_collector import GarbageCollector
from mooring.kubeapi.controllers.stateful_sets import StatefulSets
from mooring.kubeapi.controllers.volume_protection import VolumeProtection
from mooring.kubeapi.controllers.volumes import Volumes, default_storage_class


def make_world() -> World:
    world = World(StatefulSets, Volumes, VolumeProtection, GarbageCollector)
    world.api.create("storageclasses.storage.k8s.io", default_storage_class())
    return world


def stateful_set(replicas: int = 3, **spec: Any) -> Object:
    return {
        "metadata": {"name": "db", "generation": 1},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
            **spec,
        },
    }


def claim_template() -> Object:
    spec = {
        "storageClassName": "standard",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"metadata": {"name": "data"}, "spec": spec}


def images(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in world.api.list("pods")}


def set_image(image: str) -> Any:
    def change(found: Object) -> None:
        found["spec"]["template"]["spec"]["containers"][0]["image"] = image

    return change


def test_pods_come_one_after_the_other_each_when_its_predecessor_is_ready() -> None:
    world = make_world()
    slow = template()
    slow["metadata"]["annotations"] = {"mooring.dev/ready-delay": "10s"}
    world.create("statefulsets.apps", stateful_set(template=slow))

    seen = []
    for _ in range(4):
        world.run(9.5)
        seen.append(sorted(world.phases()))

    assert seen == [["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"], ["db-0", "db-1", "db-2"]]
    status = world.get("statefulsets.apps", "db")["status"]
    assert {key: status[key] for key in ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas")} == {
        "replicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
    }


def test_parallel_pods_come_together_and_a_set_may_start_at_another_number() -> None:
    world = make_world()
    slow = template()
    slow["metadata"]["annotations"] = {"mooring.dev/ready-delay": "never"}
    world.create(
        "statefulsets.apps", stateful_set(template=slow, podManagementPolicy="Parallel", ordinals={"start": 5})
    )

    world.run(1)

    assert sorted(world.phases()) == ["db-5", "db-6", "db-7"]


def test_scaling_down_removes_the_last_first() -> None:
    world = make_world()
    world.create("statefulsets.apps", stateful_set())
    world.run(1)

    world.change("statefulsets.apps", "db", lambda found: found["spec"].update(replicas=1))
    world.run(5)

    assert sorted(world.phases()) == ["db-0"]


def test_a_partition_holds_the_rollout_back() -> None:
    world = make_world()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    world.create("statefulsets.apps", stateful_set(updateStrategy=strategy))
    world.run(1)

    world.change("statefulsets.apps", "db", set_image("busybox:2"))
    world.run(5)
    held = images(world)
    world.change(
        "statefulsets.apps", "db", lambda found: found["spec"].update(updateStrategy={"type": "RollingUpdate"})
    )
    world.run(5)

    assert held == {"db-0": "busybox:1.36", "db-1": "busybox:1.36", "db-2": "busybox:2"}
    assert set(images(world).values()) == {"busybox:2"}
    status = world.get("statefulsets.apps", "db")["status"]
    assert status["currentRevision"] == status["updateRevision"]


def test_with_on_delete_only_a_pod_that_goes_is_renewed() -> None:
    world = make_world()
    world.create("statefulsets.apps", stateful_set(2, updateStrategy={"type": "OnDelete"}))
    world.run(1)
    world.change("statefulsets.apps", "db", set_image("busybox:2"))
    world.run(5)
    before = images(world)

    world.api.delete("pods", "default", "db-1")
    world.run(5)

    assert set(before.values()) == {"busybox:1.36"}
    assert images(world) == {"db-0": "busybox:1.36", "db-1": "busybox:2"}


def test_each_pod_has_claims_of_its_own_that_stay_or_go_as_told() -> None:
    def claims_left(policy: Object) -> tuple[list[str], list[str]]:
        world = make_world()
        spec = {"volumeClaimTemplates": [claim_template()], "persistentVolumeClaimRetentionPolicy": policy}
        world.create("statefulsets.apps", stateful_set(2, **spec))
        world.run(5)
        world.change("statefulsets.apps", "db", lambda found: found["spec"].update(replicas=1))
        world.run(5)
        scaled = [claim["metadata"]["name"] for claim in world.api.list("persistentvolumeclaims")]
        world.api.delete("statefulsets.apps", "default", "db")
        world.run(60)
        return scaled, [claim["metadata"]["name"] for claim in world.api.list("persistentvolumeclaims")]

    assert claims_left({"whenScaled": "Retain", "whenDeleted": "Retain"}) == (
        ["data-db-0", "data-db-1"],
        ["data-db-0", "data-db-1"],
    )
    assert claims_left({"whenScaled": "Delete", "whenDeleted": "Retain"}) == (["data-db-0"], ["data-db-0"])
    assert claims_left({"whenScaled": "Retain", "whenDeleted": "Delete"}) == (["data-db-0", "data-db-1"], [])
