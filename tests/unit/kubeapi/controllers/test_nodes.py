from typing import Any

from worlds import Object, World, template

from mooring.kubeapi.controllers.node_lifecycle import NodeLifecycle
from mooring.kubeapi.controllers.taint_eviction import TaintEviction
from mooring.kubeapi.nodes.gpu_cutter import GpuCutter


def make_world() -> World:
    return World(NodeLifecycle, TaintEviction)


def pod(name: str, *command: str, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {**template(*command)["spec"], **spec},
    }


def annotate(key: str, value: str | None) -> Any:
    def change(found: Object) -> None:
        annotations = found["metadata"]["annotations"]
        if value is None:
            annotations.pop(key)
        else:
            annotations[key] = value

    return change


def change_node(world: World, change: Any) -> None:
    node = world.api.get("nodes", None, "node-0")
    change(node)
    world.api.update("nodes", node)


def taints(world: World) -> set[tuple[str, str]]:
    found = world.api.get("nodes", None, "node-0")["spec"].get("taints") or ()
    return {(one["key"].rpartition("/")[2], one["effect"]) for one in found}


def ready(world: World) -> str:
    conditions = world.api.get("nodes", None, "node-0")["status"]["conditions"]
    return next(str(one["status"]) for one in conditions if one["type"] == "Ready")


def test_a_node_renews_its_lease_in_its_own_name() -> None:
    world = make_world()
    world.run(1)
    before = world.api.get("leases.coordination.k8s.io", "kube-node-lease", "node-0")["spec"]

    world.run(30)

    after = world.api.get("leases.coordination.k8s.io", "kube-node-lease", "node-0")["spec"]
    assert after["holderIdentity"] == "node-0"
    assert after["renewTime"] > before["renewTime"]


def test_a_failed_node_becomes_unknown_is_tainted_and_recovers() -> None:
    world = make_world()
    world.run(1)

    change_node(world, annotate("mooring.dev/failed", "true"))
    world.run(120)
    during = ready(world), taints(world)
    change_node(world, annotate("mooring.dev/failed", None))
    world.run(5)

    assert during == ("Unknown", {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")})
    assert (ready(world), taints(world)) == ("True", set())


def test_pods_of_a_failed_node_leave_when_it_is_back() -> None:
    world = make_world()
    tolerated = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    world.create("pods", pod("web", tolerations=[{**tolerated, "tolerationSeconds": 60}]))
    world.run(1)

    change_node(world, annotate("mooring.dev/failed", "true"))
    world.run(200)
    is_leaving = "deletionTimestamp" in world.get("pods", "web")["metadata"]
    change_node(world, annotate("mooring.dev/failed", None))
    world.run(5)

    assert is_leaving
    assert world.phases() == {}


def test_a_node_that_lost_power_starts_its_containers_again() -> None:
    world = make_world()
    world.create("pods", pod("web"))
    world.run(1)

    change_node(world, annotate("mooring.dev/failed", "crash"))
    world.run(5)
    change_node(world, annotate("mooring.dev/failed", None))
    world.run(5)

    (status,) = world.get("pods", "web")["status"]["containerStatuses"]
    assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 255)


def test_allocatable_follows_an_extended_resource_that_is_added_to_the_capacity() -> None:
    world = make_world()
    node = world.api.get("nodes", None, "node-0")
    node["status"]["capacity"]["example.com/widget"] = "7"

    world.api.update("nodes", node, subresource="status")
    world.run(1)

    assert world.api.get("nodes", None, "node-0")["status"]["allocatable"]["example.com/widget"] == "7"


def test_a_pod_whose_host_port_is_taken_is_refused() -> None:
    world = make_world()
    container = {"name": "main", "image": "web", "ports": [{"containerPort": 80, "hostPort": 8080}]}
    for name in ("first", "second"):
        world.create("pods", {"metadata": {"name": name}, "spec": {"containers": [container]}})
        world.run(1)

    assert world.phases() == {"first": "Running", "second": "Failed"}
    assert world.get("pods", "second")["status"]["reason"] == "NodePorts"


def test_instances_that_are_cut_on_demand_were_refused_for_want_of_a_plugin_that_registers_them() -> None:
    world = make_world()
    for name, resource in (("small", "nvidia.com/mig-1g.10gb"), ("large", "cpu")):
        resources = {"requests": {resource: "1000"}, "limits": {resource: "1000"}}
        container = {"name": "main", "image": "web", "resources": resources}
        world.create("pods", {"metadata": {"name": name}, "spec": {"containers": [container]}})
        world.run(1)

    assert world.phases() == {"small": "Running", "large": "Failed"}


def test_a_resize_is_acknowledged_when_there_is_room() -> None:
    world = make_world()
    asked: Object = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    spec = {"containers": [{"name": "main", "image": "web", "resources": asked}]}
    world.create("pods", {"metadata": {"name": "web", "generation": 1}, "spec": spec})
    world.run(1)

    def resize(cpu: str) -> tuple[Object, list[str]]:
        def change(found: Object) -> None:
            found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}

        world.change("pods", "web", change)
        world.run(1)
        status = world.get("pods", "web")["status"]
        pending = [one["reason"] for one in status["conditions"] if one["type"] == "PodResizePending"]
        return status["containerStatuses"][0]["allocatedResources"], pending

    assert resize("2") == ({"cpu": "2"}, [])
    assert resize("64") == ({"cpu": "2"}, ["Infeasible"])


def test_a_deferred_resize_is_granted_when_another_pod_leaves() -> None:
    world = make_world()
    capacity = int(world.api.get("nodes", None, "node-0")["status"]["allocatable"]["cpu"])

    def create(name: str, cpu: int) -> None:
        asked = {"requests": {"cpu": str(cpu)}, "limits": {"cpu": str(cpu)}}
        spec = {"containers": [{"name": "main", "image": "web", "resources": asked}]}
        world.create(
            "pods", pod(name) | {"metadata": {"name": name, "generation": 1}, "spec": pod(name)["spec"] | spec}
        )

    def grow(found: Object) -> None:
        cpu = str(capacity - 1)
        found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}

    def resize_state() -> tuple[Object, list[str]]:
        status = world.get("pods", "web")["status"]
        pending = [one["reason"] for one in status["conditions"] if one["type"] == "PodResizePending"]
        return status["containerStatuses"][0]["allocatedResources"], pending

    create("web", 1)
    create("batch", 2)
    world.run(1)
    world.change("pods", "web", grow)
    world.run(1)
    before = resize_state()
    world.api.delete("pods", "default", "batch")
    world.run(60)

    assert before == ({"cpu": "1"}, ["Deferred"])
    assert resize_state() == ({"cpu": str(capacity - 1)}, [])


def test_a_resize_that_takes_its_time_is_in_progress_until_it_is_done() -> None:
    world = make_world()
    asked: Object = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    spec = {"containers": [{"name": "main", "image": "web", "resources": asked, "resizePolicy": policy}]}
    metadata = {"name": "web", "generation": 1, "annotations": {"mooring.dev/resize-delay": "10s"}}
    world.create("pods", {"metadata": metadata, "spec": spec})
    world.run(1)

    def grow(found: Object) -> None:
        found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}

    def look() -> tuple[str, str, int, list[str]]:
        status = world.get("pods", "web")["status"]
        main = status["containerStatuses"][0]
        conditions = [one["type"] for one in status["conditions"] if one["type"].startswith("PodResize")]
        granted, has = main["allocatedResources"]["cpu"], main["resources"]["requests"]["cpu"]
        return granted, has, main["restartCount"], conditions

    world.change("pods", "web", grow)
    world.run(5)
    halfway = look()
    world.run(10)

    assert halfway == ("2", "1", 0, ["PodResizeInProgress"])
    assert look() == ("2", "2", 1, [])


def test_a_pod_waits_for_its_config_map() -> None:
    world = make_world()
    world.create("pods", pod("web", volumes=[{"name": "settings", "configMap": {"name": "settings"}}]))
    world.run(3)
    before = world.phases()

    world.create("configmaps", {"metadata": {"name": "settings"}})
    world.run(3)

    assert (before, world.phases()) == ({"web": "Pending"}, {"web": "Running"})


def test_a_changed_taint_drives_away_who_no_longer_tolerates_it() -> None:
    world = make_world()
    strict = {"key": "sla", "operator": "Gt", "value": "950", "effect": "NoExecute", "tolerationSeconds": 20}
    loose = {"key": "sla", "operator": "Gt", "value": "500", "effect": "NoExecute"}
    change_node(world, lambda node: node["spec"].update(taints=[{"key": "sla", "value": "990", "effect": "NoExecute"}]))
    world.create("pods", pod("strict", tolerations=[{**strict, "tolerationSeconds": None}]))
    world.create("pods", pod("loose", tolerations=[loose]))
    world.run(10)
    before = world.phases()

    change_node(world, lambda node: node["spec"].update(taints=[{"key": "sla", "value": "900", "effect": "NoExecute"}]))
    world.run(10)

    assert before == {"loose": "Running", "strict": "Running"}
    assert world.phases() == {"loose": "Running"}


def test_a_toleration_with_an_end_is_counted_from_the_taint_on() -> None:
    world = make_world()
    limited = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}
    world.create("pods", pod("web", tolerations=[limited]))
    world.run(5)
    change_node(world, lambda node: node["spec"].update(taints=[{"key": "maintenance", "effect": "NoExecute"}]))

    seen = []
    for _ in range(2):
        world.run(15)
        seen.append(world.phases())

    assert seen == [{"web": "Running"}, {}]


def test_events_tell_what_happened_to_a_pod() -> None:
    world = make_world()
    world.create("pods", pod("web", terminationGracePeriodSeconds=5))
    world.create("pods", {"metadata": {"name": "lost"}, "spec": {"containers": [{"name": "main", "image": "web:404"}]}})
    world.run(5)
    world.api.delete("pods", "default", "web")
    world.run(5)

    told = [(event["involvedObject"]["name"], event["reason"]) for event in world.api.list("events", "default")]

    assert sorted(told) == [
        ("lost", "BackOff"),
        ("lost", "Failed"),
        ("web", "Created"),
        ("web", "Killing"),
        ("web", "Pulled"),
        ("web", "Started"),
    ]


def test_an_annotation_that_cannot_be_read_is_said_so() -> None:
    world = make_world()
    world.create("pods", pod("web", annotations={"mooring.dev/duration": "soon"}))
    world.run(1)

    (event,) = [one for one in world.api.list("events", "default") if one["type"] == "Warning"]

    assert event["reason"] == "UnreadableAnnotation"
    assert event["message"].startswith("annotation mooring.dev/duration: expected a duration such as 90s")
    assert event["message"].endswith("found 'soon'")


CUT = "nos.nebuly.com/spec-gpu"


def instances(world: World) -> dict[str, dict[str, str]]:
    """By field of the status, the instances of GPUs that the node has."""
    status = world.api.get("nodes", None, "node-0")["status"]
    return {
        field: {name: amount for name, amount in status[field].items() if "mig-" in name}
        for field in ("capacity", "allocatable")
    }


def cut_on_demand(world: World) -> None:
    def change(node: Object) -> None:
        node["metadata"].setdefault("labels", {})["nos.nebuly.com/gpu-partitioning"] = "mig"

    change_node(world, change)


def test_a_node_offers_the_instances_that_its_gpus_are_told_to_be_cut_into() -> None:
    world = World(GpuCutter)
    cut_on_demand(world)
    for gpu, profile, count in ((0, "1g.10gb", "7"), (1, "1g.10gb", "1"), (1, "3g.40gb", "2"), (2, "3g.40gb", "lots")):
        change_node(world, annotate(f"{CUT}-{gpu}-{profile}", count))
    world.run(1)

    cut = {"nvidia.com/mig-1g.10gb": "8", "nvidia.com/mig-3g.40gb": "2"}
    assert instances(world) == {"capacity": cut, "allocatable": cut}

    change_node(world, annotate(f"{CUT}-1-3g.40gb", None))
    world.run(1)

    cut = {"nvidia.com/mig-1g.10gb": "8", "nvidia.com/mig-3g.40gb": "0"}
    assert instances(world) == {"capacity": cut, "allocatable": cut}


def test_a_node_that_has_failed_cuts_its_gpus_when_it_is_back() -> None:
    world = World(GpuCutter)
    cut_on_demand(world)
    change_node(world, annotate("mooring.dev/failed", "true"))
    change_node(world, annotate(f"{CUT}-0-7g.80gb", "1"))
    world.run(1)
    before = instances(world)
    change_node(world, annotate("mooring.dev/failed", None))
    world.run(1)

    cut = {"nvidia.com/mig-7g.80gb": "1"}
    assert (before, instances(world)) == ({"capacity": {}, "allocatable": {}}, {"capacity": cut, "allocatable": cut})


def test_a_node_whose_gpus_are_not_cut_on_demand_is_left_as_it_is() -> None:
    world = World(GpuCutter)
    change_node(world, annotate(f"{CUT}-0-7g.80gb", "1"))
    world.run(1)

    assert instances(world) == {"capacity": {}, "allocatable": {}}
