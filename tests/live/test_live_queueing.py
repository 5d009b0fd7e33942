"""Jobs that queue, on a cluster: started within their quota, stopped for more urgent ones, known after a restart."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from control_plane import until
from kube import Kube, Object, Refused, node

GROUP = "kueue.x-k8s.io/v1beta2"


def install_kinds(cluster: Kube) -> None:
    """Kueue's kinds, and no objects of theirs. On a real control plane they stay, for all tests that come later."""
    try:
        cluster.objects(f"/apis/{GROUP}/clusterqueues")
    except Refused:  # a real one, on which nobody has installed them
        kinds = Path(__file__).parents[2] / "deploy" / "crds" / "kueue.yaml"
        cluster.create(*yaml.safe_load_all(kinds.read_text()))
        until(lambda: has_kinds(cluster), 30)
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


def has_kinds(cluster: Kube) -> bool:
    try:
        return all(
            cluster.objects(f"/apis/{GROUP}/{plural}") == []
            for plural in ("clusterqueues", "localqueues", "workloads", "resourceflavors", "workloadpriorityclasses")
        )
    except Refused:
        return False


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
