from typing import Any

from worlds import Object, World, template

from mooring.kubeapi.controllers.daemon_sets import DaemonSets


def daemon_set(**spec: Any) -> Object:
    return {
        "metadata": {"name": "agent", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec},
    }


def on_nodes(world: World) -> dict[str, str]:
    pods = world.api.list("pods")
    return {pod["spec"]["nodeName"]: pod["spec"]["containers"][0]["image"] for pod in pods}


def change_node(world: World, name: str, change: Any) -> None:
    node = world.api.get("nodes", None, name)
    change(node)
    world.api.update("nodes", node)


def set_image(found: Object) -> None:
    found["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:2"


def test_every_node_gets_one_pod() -> None:
    world = World(DaemonSets, nodes=3)
    world.create("daemonsets.apps", daemon_set())

    world.run(1)

    assert sorted(on_nodes(world)) == ["node-0", "node-1", "node-2"]
    assert world.get("daemonsets.apps", "agent")["status"] == {
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 3,
        "numberAvailable": 3,
        "updatedNumberScheduled": 3,
        "observedGeneration": 1,
    }


def test_a_daemon_follows_the_labels_of_nodes() -> None:
    world = World(DaemonSets, nodes=3)
    world.create("daemonsets.apps", daemon_set(template=template(nodeSelector={"color": "blue"})))
    world.run(1)
    before = on_nodes(world)

    change_node(world, "node-1", lambda node: node["metadata"]["labels"].update(color="blue"))
    world.run(1)
    labelled = sorted(on_nodes(world))
    change_node(world, "node-1", lambda node: node["metadata"]["labels"].update(color="green"))
    world.run(1)

    assert (before, labelled, on_nodes(world)) == ({}, ["node-1"], {})


def test_a_rolling_update_renews_one_node_at_a_time() -> None:
    world = World(DaemonSets, nodes=3)
    slow = template()
    slow["metadata"]["annotations"] = {"mooring.dev/ready-delay": "10s"}
    world.create("daemonsets.apps", daemon_set(template=slow))
    world.run(20)

    world.change("daemonsets.apps", "agent", set_image)
    seen = []
    for _ in range(3):
        world.run(9)
        seen.append(sorted(on_nodes(world).values()).count("busybox:2"))
    world.run(20)

    assert seen == [1, 2, 3]
    assert set(on_nodes(world).values()) == {"busybox:2"}


def test_a_surge_starts_the_new_pod_before_the_old_one_goes() -> None:
    world = World(DaemonSets, nodes=2)
    slow = template()
    slow["metadata"]["annotations"] = {"mooring.dev/ready-delay": "10s"}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    world.create("daemonsets.apps", daemon_set(template=slow, updateStrategy=strategy))
    world.run(20)

    world.change("daemonsets.apps", "agent", set_image)
    world.run(5)
    during = len(world.phases())
    world.run(60)

    assert during == 3
    assert list(on_nodes(world).values()) == ["busybox:2", "busybox:2"]


def test_a_failed_daemon_pod_is_replaced() -> None:
    world = World(DaemonSets, nodes=1)
    world.create("daemonsets.apps", daemon_set())
    world.run(1)
    (pod,) = world.api.list("pods")
    pod["status"]["phase"] = "Failed"

    world.api.update("pods", pod, subresource="status")
    world.run(3)

    assert list(world.phases().values()) == ["Running"]
    assert pod["metadata"]["name"] not in world.phases()
