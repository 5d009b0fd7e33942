"""Bad days of queues: whatever fails, and whenever the scheduler dies, quota is never exceeded and nobody is lost."""

import contextlib
import random
import signal
import time
from collections.abc import Iterator

import pytest
from control_plane import until
from faulty_proxy import Faults, behind_proxy
from judge import GROUP, QUEUE, Judge
from kube import Kube, Object, Refused, node, pod
from test_live_queueing import install_kinds, job

QUOTAS = {"red": 4000, "blue": 4000}
"""Of two ClusterQueues, which lend to one another: thousandths of a CPU."""
MOST_WAVES = 10
PRIORITY = "kueue.x-k8s.io/priority-class"
QUICK = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)
"""Nobody waits for the lease of one that was killed for longer than it takes to tell."""


@pytest.fixture
def queues(cluster: Kube) -> Iterator[Kube]:
    """A cluster with room for everybody, and two queues with quota for some."""
    install_kinds(cluster)
    flavor = {"apiVersion": GROUP, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}}
    high = {"apiVersion": GROUP, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 100}
    cluster.create(flavor, high, *(node(f"n{i}", cpu=16) for i in range(4)))
    for name, quota in QUOTAS.items():
        flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": f"{quota}m"}]}]
        spec = {
            "namespaceSelector": {},
            "cohortName": "all",
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
        }
        cluster.create({"apiVersion": GROUP, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        metadata = {"name": name, "namespace": "default"}
        cluster.create(
            {"apiVersion": GROUP, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}}
        )
    yield cluster
    for plural in ("workloads", "localqueues"):
        cluster.call("DELETE", f"/apis/{GROUP}/namespaces/default/{plural}")
    for plural in ("clusterqueues", "resourceflavors", "workloadpriorityclasses"):
        cluster.call("DELETE", f"/apis/{GROUP}/{plural}")


def queued_pod(name: str, queue: str) -> Object:
    """A pod that queues by itself, as Kueue's webhook would have made it."""
    labels = {QUEUE: queue, "kueue.x-k8s.io/managed": "true"}
    found = pod(name, cpu="1", labels=labels, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    del found["spec"]["containers"][0]["resources"]["requests"]["memory"]  # of which the queues have none
    return found


def queued_wave(cluster: Kube, wave: int) -> None:
    """More than there is quota for, of which the later ones are more urgent."""
    priority = {PRIORITY: "high"} if wave else {}
    cluster.create(
        *(job(f"job-{wave}-{i}", "1", {QUEUE: ("red", "blue")[i % 2], **priority}) for i in range(4)),
        job(f"large-{wave}", "2", {QUEUE: "red", **priority}),
        *(queued_pod(f"pod-{wave}-{i}", ("red", "blue")[i % 2]) for i in range(2)),
    )


def finish_some(cluster: Kube) -> None:
    """Jobs that have quota are deleted, so that those who wait get their turn."""
    found = cluster.objects("/apis/batch/v1/namespaces/default/jobs")
    for each in [each for each in found if not each["spec"].get("suspend")][:2]:
        path = f"/apis/batch/v1/namespaces/default/jobs/{each['metadata']['name']}?propagationPolicy=Background"
        cluster.call("DELETE", path)
        # On a real cluster without controllers, nobody else takes its Workload away.
        for workload in cluster.objects(f"/apis/{GROUP}/namespaces/default/workloads"):
            if workload["metadata"]["ownerReferences"][0]["uid"] == each["metadata"]["uid"]:
                with contextlib.suppress(Refused):  # somebody has, on one with controllers
                    name = workload["metadata"]["name"]
                    cluster.call("DELETE", f"/apis/{GROUP}/namespaces/default/workloads/{name}")


@pytest.mark.parametrize(
    "faults",
    [
        Faults(conflict=0.1, error=0.15, lost_answer=0.15),
        Faults(too_many=0.15, slow=0.2, dropped_watch=0.2),
    ],
    ids=["refusals", "slowness"],
)
def test_no_quota_is_exceeded_though_answers_fail(queues: Kube, faults: Faults) -> None:
    with behind_proxy(queues) as proxy:
        scheduler = queues.run()
        scheduler.wait_until_it_says("scheduling for")
        with Judge(queues, {}, proxy, QUOTAS) as judge:
            proxy.faults = faults
            for wave in range(MOST_WAVES):  # how many faults a wave meets depends on how often the scheduler writes
                queued_wave(queues, wave)
                time.sleep(2)
                finish_some(queues)
                if wave >= 2 and sum(faults.counted.values()) > 5:
                    break
            assert sum(faults.counted.values()) > 5, faults.counted
            proxy.faults = Faults()
            judge.wait_until_sound()
        assert scheduler.is_running


def running_jobs(cluster: Kube) -> set[str]:
    found = cluster.objects("/apis/batch/v1/namespaces/default/jobs")
    return {each["metadata"]["name"] for each in found if not each["spec"].get("suspend")}


def admitted_jobs(cluster: Kube) -> set[str]:
    found = cluster.objects(f"/apis/{GROUP}/namespaces/default/workloads")
    return {each["metadata"]["ownerReferences"][0]["name"] for each in found if each.get("status", {}).get("admission")}


def test_who_may_not_be_stopped_keeps_its_quota_and_is_in_nobody_elses_way(queues: Kube) -> None:
    with behind_proxy(queues) as proxy:
        scheduler = queues.run()
        scheduler.wait_until_it_says("scheduling for")
        with Judge(queues, {}, proxy, QUOTAS) as judge:
            old = [f"old-{i}" for i in range(8)]
            jobs = [job(name, "1", {QUEUE: ("red", "blue")[i % 2]}) for i, name in enumerate(old)]
            for (
                found
            ) in jobs:  # they have quota and wait for a node: nothing but their Workloads tells that they hold it
                found["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "not-there-yet"}
            queues.create(*jobs)
            until(lambda: running_jobs(queues) == set(old), 30, scheduler.tail)
            proxy.faults = Faults(denied="/jobs/old-")
            new = [f"new-{i}" for i in range(4)]
            queues.create(*(job(name, "1", {QUEUE: "red", PRIORITY: "high"}) for name in new))
            until(lambda: proxy.faults.counted["403"] >= 6, 60, scheduler.tail)  # asked again, later and later
            assert admitted_jobs(queues) == set(old)
            finish_some(queues)
            until(lambda: len(admitted_jobs(queues) & set(new)) == 2, 30, scheduler.tail)
            proxy.faults = Faults()
            until(lambda: admitted_jobs(queues) > set(new), 60, scheduler.tail)
            queues.create(node("not-there-yet", cpu=16))
            judge.wait_until_sound()
        assert scheduler.is_running


def test_a_scheduler_that_is_killed_while_it_admits_leaves_no_job_between(queues: Kube) -> None:
    drawn = random.Random(17)
    with Judge(queues, {}, quotas=QUOTAS) as judge:
        for wave in range(4):
            scheduler = queues.run(*QUICK, name=f"scheduler-{wave}")
            scheduler.wait_until_it_says("admitting")
            queued_wave(queues, wave)
            time.sleep(drawn.uniform(0.0, 0.15))
            scheduler.send(signal.SIGKILL)
            finish_some(queues)
        queues.run(*QUICK, name="last")
        judge.wait_until_sound()
