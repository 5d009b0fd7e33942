"""`mooring run` as its users see it, on the embedded control plane and on a real one."""

from control_plane import until
from kube import Kube, condition, node, pod


def test_pods_are_bound_and_say_so(cluster: Kube) -> None:
    cluster.create(*(node(f"n{i}", cpu=4) for i in range(3)))
    cluster.run()
    cluster.create(*(pod(f"web-{i}", cpu="2") for i in range(6)))
    cluster.wait_until_bound(f"web-{i}" for i in range(6))
    assert cluster.by_node() == {"n0": 2, "n1": 2, "n2": 2}
    found = cluster.pods()["web-0"]
    scheduled = condition(found, "PodScheduled")
    assert scheduled is not None and scheduled["status"] == "True"
    place = found["spec"]["nodeName"]
    # Where nodes are simulated, their kubelets have something to say too.
    said = ("Scheduled", f"Successfully assigned default/web-0 to {place}")
    until(lambda: said in cluster.events("web-0"), 10)


def test_a_pod_that_fits_nowhere_says_why_in_kube_schedulers_words(cluster: Kube) -> None:
    cluster.create(node("n0", cpu=2), node("n1", cpu=2))
    cluster.run()
    cluster.create(pod("large", cpu="3"))

    def is_said() -> bool:
        said = condition(cluster.pods()["large"], "PodScheduled")
        return said is not None and said["status"] == "False"

    until(is_said, 30)
    said = condition(cluster.pods()["large"], "PodScheduled")
    assert said is not None
    message = said["message"]
    assert said["reason"] == "Unschedulable"
    assert message.startswith("0/2 nodes are available: 2 Insufficient cpu. ")
    assert message.endswith("preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.")
    until(lambda: cluster.events("large") == [("FailedScheduling", message)], 10)
    cluster.create(node("n2", cpu=4))
    assert cluster.wait_until_bound(["large"]) == {"large": "n2"}


def test_a_more_urgent_pod_takes_the_place_of_another(cluster: Kube) -> None:
    cluster.create(node("n0", cpu=2))
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 100,
    }
    cluster.create(urgent)
    cluster.run()
    cluster.create(pod("low", cpu="2"))
    cluster.wait_until_bound(["low"])
    cluster.create(pod("high", cpu="2", priorityClassName="urgent"))
    assert cluster.wait_until_bound(["high"]) == {"high": "n0"}
    assert set(cluster.pods()) == {"high"}
    until(lambda: any(reason == "Preempted" for reason, _ in cluster.events("low")), 10)


def test_a_gang_waits_until_it_fits_as_a_whole(cluster: Kube) -> None:
    cluster.create(node("n0", cpu=2))
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    cluster.run()
    cluster.create(group)
    members = [pod(f"train-{i}", cpu="2", schedulingGroup={"podGroupName": "train"}) for i in range(2)]
    cluster.create(*members)
    cluster.create(pod("probe", cpu="1"))
    cluster.wait_until_bound(["probe"])
    assert cluster.by_node() == {"n0": 1, "": 2}
    cluster.create(node("n1", cpu=2), node("n2", cpu=2))
    assert set(cluster.wait_until_bound(["train-0", "train-1"]).values()) == {"n1", "n2"}


def test_a_pod_keeps_waiting_while_no_scheduler_runs_and_is_placed_by_the_next(cluster: Kube) -> None:
    cluster.create(node("n0", cpu=2))
    first = cluster.run(name="first")
    cluster.create(pod("one", cpu="1"))
    cluster.wait_until_bound(["one"])
    assert first.stop() == 0
    cluster.create(pod("two", cpu="1"), pod("three", cpu="1"))
    cluster.run(name="second")
    until(lambda: cluster.by_node() == {"n0": 2, "": 1}, 30)
