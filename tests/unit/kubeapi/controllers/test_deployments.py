from typing import Any

from worlds import Object, World, template

from mooring.kubeapi.controllers.deployments import Deployments
from mooring.kubeapi.controllers.replica_sets import ReplicaSets


def make_world() -> World:
    return World(Deployments, ReplicaSets)


def deployment(replicas: int = 3, strategy: str = "RollingUpdate", **spec: Any) -> Object:
    return {
        "metadata": {"name": "web", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": strategy},
            "template": template(),
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            **spec,
        },
    }


def images(world: World) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in world.api.list("pods"))


def sets(world: World) -> dict[str, int]:
    found = world.api.list("replicasets.apps")
    return {one["spec"]["template"]["spec"]["containers"][0]["image"]: one["spec"]["replicas"] for one in found}


def set_image(image: str) -> Any:
    def change(found: Object) -> None:
        found["spec"]["template"]["spec"]["containers"][0]["image"] = image

    return change


def test_a_deployment_runs_as_many_pods_as_asked() -> None:
    world = make_world()
    world.create("deployments.apps", deployment())

    world.run()

    status = world.get("deployments.apps", "web")["status"]
    conditions = {one["type"]: (one["status"], one["reason"]) for one in status.pop("conditions")}
    assert status == {
        "replicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "updatedReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }
    assert conditions == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }


def test_a_new_template_replaces_the_pods_and_keeps_the_old_revision() -> None:
    world = make_world()
    world.create("deployments.apps", deployment())
    world.run()

    world.change("deployments.apps", "web", set_image("busybox:2"))
    world.run(5)

    assert images(world) == ["busybox:2"] * 3
    assert sets(world) == {"busybox:1.36": 0, "busybox:2": 3}
    assert world.get("deployments.apps", "web")["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "2"}


def test_a_rollback_takes_the_old_revision_up_again() -> None:
    world = make_world()
    world.create("deployments.apps", deployment())
    world.run()
    world.change("deployments.apps", "web", set_image("busybox:2"))
    world.run(5)

    world.change("deployments.apps", "web", set_image("busybox:1.36"))
    world.run(5)

    assert sets(world) == {"busybox:1.36": 3, "busybox:2": 0}
    assert world.get("deployments.apps", "web")["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "3"}


def test_a_rollout_with_an_image_that_is_missing_keeps_enough_pods_and_times_out() -> None:
    world = make_world()
    world.create("deployments.apps", deployment(4, progressDeadlineSeconds=60))
    world.run()

    world.change("deployments.apps", "web", set_image("busybox:404"))
    world.run(100)

    status = world.get("deployments.apps", "web")["status"]
    conditions = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
    assert sets(world) == {"busybox:1.36": 3, "busybox:404": 2}
    assert conditions["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert conditions["Available"] == ("True", "MinimumReplicasAvailable")


def test_recreate_ends_all_old_pods_before_the_first_new_one() -> None:
    world = make_world()
    slow = template(terminationGracePeriodSeconds=30)
    slow["metadata"]["annotations"] = {"mooring.dev/stop-delay": "10s"}
    world.create("deployments.apps", deployment(strategy="Recreate", template=slow))
    world.run()

    world.change("deployments.apps", "web", set_image("busybox:2"))
    world.run(5)
    during = images(world)
    world.run(10)

    assert during == ["busybox:1.36"] * 3
    assert images(world) == ["busybox:2"] * 3


def test_a_paused_deployment_scales_but_does_not_roll_out() -> None:
    world = make_world()
    world.create("deployments.apps", deployment())
    world.run()

    def pause(found: Object) -> None:
        set_image("busybox:2")(found)
        found["spec"] |= {"paused": True, "replicas": 5}

    world.change("deployments.apps", "web", pause)
    world.run(5)

    assert images(world) == ["busybox:1.36"] * 5


def test_old_revisions_beyond_the_limit_are_removed() -> None:
    world = make_world()
    world.create("deployments.apps", deployment(revisionHistoryLimit=1))
    for number in range(4):
        world.run(5)
        world.change("deployments.apps", "web", set_image(f"busybox:{number}"))
    world.run(5)

    assert sets(world) == {"busybox:2": 0, "busybox:3": 3}


def test_an_orphaned_pod_that_matches_is_adopted() -> None:
    world = make_world()
    world.create("deployments.apps", deployment(1))
    world.run()
    (found,) = world.api.list("replicasets.apps")
    labels = found["spec"]["selector"]["matchLabels"]

    world.create("pods", {"metadata": {"name": "stray", "labels": labels}, "spec": template()["spec"]})
    world.run(5)

    assert len(world.api.list("pods")) == 1


def test_a_revision_is_noted_without_a_new_generation() -> None:
    world = make_world()
    world.create("deployments.apps", deployment())
    world.run()
    world.change("deployments.apps", "web", set_image("v2"))
    world.run()

    about = world.get("deployments.apps", "web")["metadata"]
    assert (about["annotations"]["deployment.kubernetes.io/revision"], about["generation"]) == ("2", 2)
