"""Jobs that queue, on a cluster: started within their quota, stopped for more urgent ones, known after a restart."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from control_plane import until
from kube import Kube, Object, Refused, condition, node

GROUP = "kueue.x-k8s.io/v1beta2"
ADMISSION = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/mooring-admission"


def install_kinds(cluster: Kube) -> None:
    """Kueue's kinds, and no objects of theirs. On a real control plane they stay until a test wants none of them."""
    definitions = yaml.safe_load_all((Path(__file__).parents[2] / "deploy" / "crds" / "kueue.yaml").read_text())
    missing = [each for each in definitions if each and not is_served(cluster, each["spec"]["names"]["plural"])]
    if missing:  # a real control plane, on which no test has installed them
        cluster.create(*missing)
        until(lambda: all(is_served(cluster, each["spec"]["names"]["plural"]) for each in missing), 30)
    with suppress(Refused):  # nobody waits for a scheduler that ended with an earlier test
        cluster.call("DELETE", ADMISSION)
    for plural in ("workloads", "localqueues"):
        cluster.call("DELETE", f"/apis/{GROUP}/namespaces/default/{plural}")
    for plural in ("clusterqueues", "resourceflavors", "workloadpriorityclasses"):
        cluster.call("DELETE", f"/apis/{GROUP}/{plural}")


@pytest.fixture
def queueing(cluster: Kube) -> Kube:
    """A cluster with one queue for four CPUs."""
    install_kinds(cluster)
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]}]
    cluster.create(
        {"apiVersion": GROUP, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}},
        {
            "apiVersion": GROUP,
            "kind": "ClusterQueue",
            "metadata": {"name": "team"},
            "spec": {
                "namespaceSelector": {},
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            },
        },
        {
            "apiVersion": GROUP,
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"clusterQueue": "team"},
        },
        {"apiVersion": GROUP, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 100},
    )
    return cluster


def is_served(cluster: Kube, plural: str) -> bool:
    """Whether the API server answers for a kind of Kueue's."""
    try:
        cluster.objects(f"/apis/{GROUP}/{plural}")
    except Refused:
        return False
    return True


def job(name: str, cpu: str, labels: dict[str, str] | None = None) -> Object:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "team", **(labels or {})},
        },
        "spec": {
            "suspend": True,
            "parallelism": 1,
            "completions": 1,
            "template": {
                "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
            },
        },
    }


def suspended(cluster: Kube) -> dict[str, bool]:
    found = cluster.objects("/apis/batch/v1/namespaces/default/jobs")
    return {each["metadata"]["name"]: bool(each["spec"].get("suspend")) for each in found}


def true_conditions(cluster: Kube) -> dict[str, set[str]]:
    """By the job of each Workload."""
    said: dict[str, set[str]] = {}
    for each in cluster.objects(f"/apis/{GROUP}/namespaces/default/workloads"):
        conditions: list[Any] = each.get("status", {}).get("conditions", [])
        owner = each["metadata"]["ownerReferences"][0]["name"]
        said[owner] = {found["type"] for found in conditions if found["status"] == "True"}
    return said


def test_jobs_start_within_their_quota_and_give_way_to_more_urgent_ones(queueing: Kube) -> None:
    queueing.create(node("n0", cpu=16))
    first = queueing.run(name="first")
    queueing.create(job("one", "3"), job("two", "3"))
    until(lambda: sorted(suspended(queueing).values()) == [False, True], 30, first.tail)
    running = next(name for name, stopped in suspended(queueing).items() if not stopped)
    until(lambda: true_conditions(queueing).get(running) == {"QuotaReserved", "Admitted"}, 20, first.tail)
    assert first.stop() == 0
    second = queueing.run(name="second")
    second.wait_until_it_says("scheduling for")
    queueing.create(job("urgent", "4", {"kueue.x-k8s.io/priority-class": "high"}))
    until(lambda: suspended(queueing) == {"one": True, "two": True, "urgent": False}, 30, second.tail)
    until(lambda: "Evicted" in true_conditions(queueing)[running], 20, second.tail)


def workload_of(cluster: Kube, owner: str) -> Object:
    """The Workload of a job or pod; nothing if there is none."""
    found = cluster.objects(f"/apis/{GROUP}/namespaces/default/workloads")
    return next((each for each in found if each["metadata"]["ownerReferences"][0]["name"] == owner), {})


def said(cluster: Kube, owner: str, type_: str) -> tuple[str, str, str]:
    """The status, reason and message of a condition of its Workload."""
    found = condition(workload_of(cluster, owner), type_)
    return (found["status"], found["reason"], found["message"]) if found is not None else ("", "", "")


def reasons(cluster: Kube, owner: str) -> list[tuple[str, str]]:
    """The kinds and reasons of the events on its Workload, which must be about that very one."""
    workload = workload_of(cluster, owner)["metadata"]
    name = workload["name"]
    found = cluster.objects(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}")
    assert {each["involvedObject"]["uid"] for each in found} <= {workload["uid"]}
    return [(each["type"], each["reason"]) for each in found]


def finish(cluster: Kube, name: str, type_: str = "Complete") -> None:
    """Do what the job controller does at the end of a job."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[type_]
    times = {"lastProbeTime": now, "lastTransitionTime": now, "reason": "Over", "message": "that was it"}
    status: Object = {
        "startTime": now,
        "succeeded": int(type_ == "Complete"),
        "conditions": [{"type": each, "status": "True", **times} for each in (before, type_)],
    }
    if type_ == "Complete":
        status["completionTime"] = now
    path = f"/apis/batch/v1/namespaces/default/jobs/{name}/status"
    cluster.call("PATCH", path, {"status": status}, "application/merge-patch+json")


SHORT = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, {} more needed"


def test_who_waits_in_a_queue_has_a_workload_that_says_why(queueing: Kube) -> None:
    queueing.create(node("n0", cpu=16))
    scheduler = queueing.run()
    queueing.create(job("first", "3"))
    until(lambda: suspended(queueing) == {"first": False}, 30, scheduler.tail)
    queueing.create(job("second", "2"))
    wanted = ("False", "WaitingForQuota", SHORT.format(1))
    until(lambda: said(queueing, "second", "QuotaReserved") == wanted, 30, scheduler.tail)
    assert said(queueing, "second", "Evicted") == ("", "", "")
    until(lambda: reasons(queueing, "second") == [("Warning", "Pending")], 20, scheduler.tail)
    until(lambda: len(reasons(queueing, "first")) == 2, 20, scheduler.tail)
    assert sorted(reasons(queueing, "first")) == [("Normal", "Admitted"), ("Normal", "QuotaReserved")]
    # The job becomes another while it waits, and so does what it asks for.
    queueing.call(
        "PATCH",
        "/apis/batch/v1/namespaces/default/jobs/second",
        {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "elsewhere"}}},
        "application/merge-patch+json",
    )
    until(lambda: workload_of(queueing, "second")["spec"]["queueName"] == "elsewhere", 30, scheduler.tail)
    until(lambda: "elsewhere" in said(queueing, "second", "QuotaReserved")[2], 30, scheduler.tail)
    # Who deletes the Workload of a job that waits gets another.
    name, uid = (workload_of(queueing, "second")["metadata"][key] for key in ("name", "uid"))
    queueing.call("DELETE", f"/apis/{GROUP}/namespaces/default/workloads/{name}")
    until(lambda: workload_of(queueing, "second").get("metadata", {}).get("uid", uid) != uid, 30, scheduler.tail)
    until(lambda: "elsewhere" in said(queueing, "second", "QuotaReserved")[2], 30, scheduler.tail)


def test_workloads_of_jobs_that_are_over_say_how_they_ended(queueing: Kube) -> None:
    queueing.create(node("n0", cpu=16))
    scheduler = queueing.run()
    queueing.create(job("good", "1"), job("bad", "1"), job("late", "1"))
    until(lambda: not any(suspended(queueing).values()) and len(suspended(queueing)) == 3, 30, scheduler.tail)
    until(lambda: len(true_conditions(queueing)) == 3 and all(true_conditions(queueing).values()), 30, scheduler.tail)
    finish(queueing, "good")
    finish(queueing, "bad", "Failed")
    until(lambda: said(queueing, "good", "Finished") == ("True", "Succeeded", "that was it"), 30, scheduler.tail)
    until(lambda: said(queueing, "bad", "Finished") == ("True", "Failed", "that was it"), 30, scheduler.tail)
    # What ends while nobody looks is found by the next one.
    assert scheduler.stop() == 0
    finish(queueing, "late")
    second = queueing.run(name="second")
    until(lambda: said(queueing, "late", "Finished")[:2] == ("True", "Succeeded"), 30, second.tail)


def test_who_is_preempted_is_told_by_whom_and_why(queueing: Kube) -> None:
    queueing.create(node("n0", cpu=16))
    scheduler = queueing.run()
    queueing.create(job("low", "3"))
    until(lambda: suspended(queueing) == {"low": False}, 30, scheduler.tail)
    until(lambda: true_conditions(queueing).get("low") == {"QuotaReserved", "Admitted"}, 20, scheduler.tail)
    queueing.create(job("urgent", "4", {"kueue.x-k8s.io/priority-class": "high"}))
    until(lambda: suspended(queueing) == {"low": True, "urgent": False}, 30, scheduler.tail)
    uid = workload_of(queueing, "urgent")["metadata"]["uid"]
    status, reason, message = said(queueing, "low", "Evicted")
    assert (status, reason) == ("True", "Preempted")
    assert message.startswith(f"Preempted to accommodate a workload (UID: {uid}, JobUID: ")
    assert said(queueing, "low", "Preempted") == ("True", "InClusterQueue", message)
    until(lambda: ("Normal", "EvictedDueToPreempted") in reasons(queueing, "low"), 20, scheduler.tail)
    until(lambda: ("Normal", "Preempted") in reasons(queueing, "low"), 20, scheduler.tail)
    until(lambda: said(queueing, "low", "QuotaReserved")[1] == "WaitingForQuota", 30, scheduler.tail)
