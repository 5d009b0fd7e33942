"""What ClusterQueues and LocalQueues say of themselves on a cluster."""

from control_plane import until
from kube import Kube, Object, condition, node
from test_live_queueing import GROUP, job, queueing, suspended, workload_of

__all__ = ["queueing"]


def status(cluster: Kube, path: str) -> Object:
    found: Object = cluster.call("GET", f"/apis/{GROUP}/{path}").get("status", {})
    return found


def counts(found: Object) -> tuple[int, ...]:
    return tuple(found.get(f"{name}Workloads", -1) for name in ("pending", "reserving", "admitted"))


def test_queues_say_who_waits_who_has_quota_and_what_is_used(queueing: Kube) -> None:
    queueing.create(node("n0", cpu=16))
    scheduler = queueing.run()
    queueing.create(job("first", "3"))
    until(lambda: suspended(queueing) == {"first": False}, 30, scheduler.tail)
    queueing.create(job("second", "2"))
    queue, local = "clusterqueues/team", "namespaces/default/localqueues/team"

    until(lambda: counts(status(queueing, queue)) == (1, 1, 1), 30, lambda: str(status(queueing, queue)))
    until(lambda: counts(status(queueing, local)) == (1, 1, 1), 30, lambda: str(status(queueing, local)))

    found = status(queueing, queue)
    used = [{"name": "default", "resources": [{"name": "cpu", "total": "3", "borrowed": "0"}]}]
    assert found["flavorsUsage"] == found["flavorsReservation"] == used
    assert status(queueing, local)["flavorsUsage"] == [
        {"name": "default", "resources": [{"name": "cpu", "total": "3"}]}
    ]
    active = condition({"status": found}, "Active")
    assert active is not None
    assert (active["status"], active["reason"], active["message"]) == ("True", "Ready", "Can admit new workloads")
    stop = {"spec": {"stopPolicy": "Hold"}}
    queueing.call("PATCH", f"/apis/{GROUP}/{queue}", stop, "application/merge-patch+json")
    until(lambda: (condition({"status": status(queueing, queue)}, "Active") or {}).get("reason") == "Stopped", 30)
    assert scheduler.stop() == 0
    assert "was not written" not in scheduler.log.read_text()


def test_a_job_is_told_of_its_workload(queueing: Kube) -> None:
    queueing.create(node("n0", cpu=16))
    scheduler = queueing.run()
    queueing.create(job("train", "3"))

    until(lambda: bool(workload_of(queueing, "train")), 30, scheduler.tail)
    name = workload_of(queueing, "train")["metadata"]["name"]
    until(lambda: ("CreatedWorkload", f"Created Workload: default/{name}") in queueing.events("train"), 30)
